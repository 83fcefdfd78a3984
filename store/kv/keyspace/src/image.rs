// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images: the pairs of a keyspace as they were at one moment, written in steps while it changes.
//!
//! There is no second copy. The unit is the chain of a bucket of the index. A bitmap, one bit for
//! each bucket and so 1/512 of their bytes, has the chains whose pairs are in the image. A change
//! of a key whose chain is not yet among them first writes all pairs of that chain to the *pending*
//! bytes, which the next step hands out. The index may grow meanwhile: a new bucket inherits the
//! bit of the bucket that its pairs come from.
//!
//! While no image is written, a change costs one branch.

use crate::entry;
use crate::header::Stored;
use crate::keyspace::Keyspace;

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
    database: u16,
    /// A bit for each bucket: its pairs are in the image.
    written: Vec<u64>,
    /// Buckets that have a bit.
    buckets: usize,
    /// The next bucket that a step looks at; all below are written.
    next: usize,
    /// Entries of chains that were about to change.
    pending: Vec<u8>,
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
    fn new(database: u16, buckets: usize) -> Self {
        let written = vec![0; buckets.div_ceil(WORD_BITS)];
        Self { database, written, buckets, next: 0, pending: vec![] }
    }

    fn is_written(&self, bucket: usize) -> bool {
        self.written[bucket / WORD_BITS] >> (bucket % WORD_BITS) & 1 != 0
    }

    fn set_written(&mut self, bucket: usize) {
        self.written[bucket / WORD_BITS] |= 1 << (bucket % WORD_BITS);
    }

    /// Gives bits to the buckets that the index has got since the last call.
    fn follow(&mut self, buckets: usize) {
        self.written.resize(buckets.div_ceil(WORD_BITS), 0);
        for bucket in self.buckets..buckets {
            let origin = bucket & !(1 << bucket.ilog2());
            if self.is_written(origin) {
                self.set_written(bucket);
            }
        }
        self.buckets = buckets;
    }

    /// The next bucket whose pairs are not in the image.
    fn next_unwritten(&mut self) -> Option<usize> {
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

    /// Appends the pairs of a chain, which are now in the image.
    fn write(&mut self, keyspace: &Keyspace, bucket: usize, out: &mut Vec<u8>) {
        keyspace.engine.visit_chain(bucket, &mut |key, value| {
            let stored = Stored::read(value);
            let (expires_ms, value) = (stored.header.expires_ms, keyspace.value_of(stored));
            entry::write((self.database, key), expires_ms, value, out);
        });
        self.set_written(bucket);
    }
}

impl Keyspace {
    /// Begins an image of the pairs that are there now, also of those whose time has passed.
    /// `database` is the number that its entries name, also if databases are exchanged before it
    /// is complete. An image that was begun before is given up.
    pub fn begin_image(&mut self, database: u16) {
        let image = Image::new(database, self.engine.buckets());
        self.image = ImageState::Running(Box::new(image));
    }

    /// Appends entries to `out`: those of chains that have changed since the last call, and those
    /// of up to `chains` more. [`ImageEntry::read`](crate::ImageEntry::read) reads them. The image
    /// has ended if the result is not [`ImageStep::More`].
    pub fn image_some(&mut self, chains: usize, out: &mut Vec<u8>) -> ImageStep {
        let mut image = match std::mem::take(&mut self.image) {
            ImageState::None => return ImageStep::Done,
            ImageState::Broken => return ImageStep::Broken,
            ImageState::Running(image) => image,
        };
        // The capacity is given back as well: a large value may have needed much.
        out.append(&mut std::mem::take(&mut image.pending));
        image.follow(self.engine.buckets());
        for _ in 0..chains {
            let Some(bucket) = image.next_unwritten() else { break };
            image.write(self, bucket, out);
        }
        if image.next_unwritten().is_none() {
            return ImageStep::Done;
        }
        self.image = ImageState::Running(image);
        ImageStep::More
    }

    /// Bytes of entries that changes have written and no step has handed out. A server that cannot
    /// write them as fast as they come has to delay changes.
    pub fn pending_image_bytes(&self) -> usize {
        match &self.image {
            ImageState::Running(image) => image.pending.len(),
            ImageState::None | ImageState::Broken => 0,
        }
    }

    /// Gives up the image, if there is one.
    pub fn end_image(&mut self) {
        self.image = ImageState::None;
    }

    /// Bytes of memory that the image takes: its bitmap and pending entries.
    pub fn image_memory_bytes(&self) -> usize {
        match &self.image {
            ImageState::Running(image) => {
                image.written.capacity() * size_of::<u64>() + image.pending.capacity()
            }
            ImageState::None | ImageState::Broken => 0,
        }
    }

    /// Has to be called before the value of a key changes in any way, or a key is made.
    #[inline(always)]
    pub(crate) fn before_change(&mut self, key: &[u8]) {
        if let ImageState::Running(_) = self.image {
            self.write_chain_of(key);
        }
    }

    #[cold]
    fn write_chain_of(&mut self, key: &[u8]) {
        let ImageState::Running(mut image) = std::mem::take(&mut self.image) else { return };
        image.follow(self.engine.buckets());
        let bucket = self.engine.bucket_of(key);
        if !image.is_written(bucket) {
            let mut pending = std::mem::take(&mut image.pending);
            image.write(self, bucket, &mut pending);
            image.pending = pending;
        }
        self.image = ImageState::Running(image);
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
