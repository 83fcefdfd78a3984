// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of an image: which chains it has. A bitmap has one bit for each bucket of the index,
//! and so 1/512 of their bytes. The index may grow meanwhile: a new bucket inherits the bit of the
//! bucket that its pairs come from.

/// Progress of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageStep {
    /// More steps are needed.
    More,
    /// All pairs have been handed out; or no image was begun.
    Done,
    /// The keyspace was cleared before all pairs were handed out. The image cannot be completed.
    Broken,
}

/// The image of a keyspace, if one is being written.
#[derive(Default)]
pub(crate) enum ImageState {
    /// There is none.
    #[default]
    None,
    /// It is being written.
    Running(Box<Image>),
    /// It can no longer be completed.
    Broken,
}

/// An image that is being written.
pub(crate) struct Image {
    /// Number of the database that entries name.
    pub database: u16,
    /// A bit for each bucket: its pairs are in the image.
    written: Vec<u64>,
    /// Buckets that have a bit.
    buckets: usize,
    /// The next bucket that a step looks at; all below are written.
    next: usize,
    /// Entries of chains that were about to change.
    pub pending: Vec<u8>,
}

const WORD_BITS: usize = u64::BITS as usize;

impl ImageState {
    /// An image that is not complete never will be.
    pub fn break_off(&mut self) {
        if let Self::Running(_) = self {
            *self = Self::Broken;
        }
    }
}

impl Image {
    /// An image in which no pairs are.
    pub fn new(database: u16, buckets: usize) -> Self {
        let written = vec![0; buckets.div_ceil(WORD_BITS)];
        Self { database, written, buckets, next: 0, pending: vec![] }
    }

    /// The pairs of a bucket are in the image.
    pub fn is_written(&self, bucket: usize) -> bool {
        self.written[bucket / WORD_BITS] >> (bucket % WORD_BITS) & 1 != 0
    }

    /// The pairs of a bucket are in the image now.
    pub fn set_written(&mut self, bucket: usize) {
        self.written[bucket / WORD_BITS] |= 1 << (bucket % WORD_BITS);
    }

    /// Gives bits to the buckets that the index has got since the last call.
    pub fn follow(&mut self, buckets: usize) {
        self.written.resize(buckets.div_ceil(WORD_BITS), 0);
        for bucket in self.buckets..buckets {
            let origin = bucket & !(1 << bucket.ilog2());
            if self.is_written(origin) {
                self.set_written(bucket);
            }
        }
        self.buckets = buckets;
    }

    /// Bytes of memory that the image takes.
    pub fn memory_bytes(&self) -> usize {
        self.written.capacity() * size_of::<u64>() + self.pending.capacity()
    }

    /// The next bucket whose pairs are not in the image.
    pub fn next_unwritten(&mut self) -> Option<usize> {
        while self.next < self.buckets {
            let left = !self.written[self.next / WORD_BITS] >> (self.next % WORD_BITS);
            match left.trailing_zeros() {
                0 => return Some(self.next),
                u64::BITS => self.next = (self.next / WORD_BITS + 1) * WORD_BITS,
                zeros => self.next += zeros as usize,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_buckets_inherit_the_bit_of_their_origin() {
        let mut image = Image::new(0, 64);
        image.set_written(3);
        image.follow(70);
        let written: Vec<usize> = (0..70).filter(|bucket| image.is_written(*bucket)).collect();
        assert_eq!(written, [3, 67]);
        image.set_written(67);
        image.set_written(4);
        image.follow(200);
        let written: Vec<usize> = (0..200).filter(|bucket| image.is_written(*bucket)).collect();
        // Bucket 68 was there before its origin was written.
        assert_eq!(written, [3, 4, 67, 131, 132, 195]);
        assert_eq!((image.next_unwritten(), image.next), (Some(0), 0));
    }

    #[test]
    fn the_next_chain_is_the_lowest_that_is_not_written() {
        let mut image = Image::new(0, 200);
        (0..130).for_each(|bucket| image.set_written(bucket));
        assert_eq!(image.next_unwritten(), Some(130));
        (130..199).for_each(|bucket| image.set_written(bucket));
        assert_eq!(image.next_unwritten(), Some(199));
        image.set_written(199);
        assert_eq!(image.next_unwritten(), None);
        // Bits behind the last bucket are no buckets, until the index grows.
        image.follow(201);
        assert_eq!((image.is_written(200), image.next_unwritten()), (true, None));
    }
}
