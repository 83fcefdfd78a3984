// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images: the pairs of a keyspace as they were at one moment, written in steps while it changes.
//!
//! There is no second copy. The unit is the chain of a bucket of the index. A change of a key whose
//! chain is not yet in the image first writes all pairs of that chain to the *pending* bytes, which
//! the next step hands out. While no image is written, a change costs one branch.

use freeport_kv_engine::Engine;

use crate::entry;
use crate::header::Stored;
use crate::image::{Image, ImageState, ImageStep};
use crate::keyspace::Keyspace;
use crate::large::LargeValues;

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
            image.write_chain((&self.engine, &self.large), bucket, out);
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
            ImageState::Running(image) => image.memory_bytes(),
            ImageState::None | ImageState::Broken => 0,
        }
    }

    /// Has to be called before the value of a key changes in any way, or a key is made.
    #[inline(always)]
    pub(crate) fn before_change(&mut self, key: &[u8]) {
        self.image.before_change(&self.engine, &self.large, key);
    }
}

impl ImageState {
    /// See [`Keyspace::before_change`].
    #[inline(always)]
    pub(crate) fn before_change(&mut self, engine: &Engine, large: &LargeValues, key: &[u8]) {
        if let Self::Running(image) = self {
            image.write_chain_of((engine, large), key);
        }
    }
}

impl Image {
    #[cold]
    fn write_chain_of(&mut self, (engine, large): (&Engine, &LargeValues), key: &[u8]) {
        self.follow(engine.buckets());
        let bucket = engine.bucket_of(key);
        if !self.is_written(bucket) {
            let mut pending = std::mem::take(&mut self.pending);
            self.write_chain((engine, large), bucket, &mut pending);
            self.pending = pending;
        }
    }

    /// Appends the pairs of a chain, which are then in the image.
    fn write_chain(
        &mut self,
        (engine, large): (&Engine, &LargeValues),
        bucket: usize,
        out: &mut Vec<u8>,
    ) {
        engine.visit_chain(bucket, &mut |key, value| {
            let stored = Stored::read(value);
            let (expires_ms, value) = (stored.header.expires_ms, large.value_of(stored));
            entry::write((self.database, key), expires_ms, value, out);
        });
        self.set_written(bucket);
    }
}
