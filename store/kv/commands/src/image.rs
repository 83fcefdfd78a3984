// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images of all databases of a shard: its pairs as they were at one moment, written in steps
//! while commands execute. A server begins the images of all shards at the same moment.

use freeport_kv_keyspace::{Error, ImageEntry, ImageStep, Keyspace};

use crate::shard::Shard;

impl Shard {
    /// Begins an image of all databases; see [`Keyspace::begin_image`]. A database that gets its
    /// first key later is not in it.
    pub fn begin_image(&mut self) {
        for number in 0..self.options().databases {
            if let Some(keyspace) = self.database_mut(number) {
                keyspace.begin_image(number);
            }
        }
    }

    /// Appends entries of about `chains` chains of keys to `out`, and all entries of keys that have
    /// changed since the last call; see [`Keyspace::image_some`].
    pub fn image_some(&mut self, chains: usize, out: &mut Vec<u8>) -> ImageStep {
        let (mut chains, mut all) = (chains, ImageStep::Done);
        for number in 0..self.options().databases {
            let Some(keyspace) = self.database_mut(number) else { continue };
            match keyspace.image_some(chains, out) {
                ImageStep::Done => {}
                ImageStep::Broken => return ImageStep::Broken,
                // The others hand out what their changes have written.
                ImageStep::More => (chains, all) = (0, ImageStep::More),
            }
        }
        all
    }

    /// Bytes of entries that wait for the next step; see [`Keyspace::pending_image_bytes`].
    pub fn pending_image_bytes(&self) -> usize {
        self.sum_of(Keyspace::pending_image_bytes)
    }

    /// Bytes of memory that the image takes; see [`Keyspace::image_memory_bytes`].
    pub fn image_memory_bytes(&self) -> usize {
        self.sum_of(Keyspace::image_memory_bytes)
    }

    /// Gives up the image, if there is one.
    pub fn end_image(&mut self) {
        for number in 0..self.options().databases {
            if let Some(keyspace) = self.database_mut(number) {
                keyspace.end_image();
            }
        }
    }

    /// Stores the pair of an entry, which belongs to this shard, in place of any other.
    ///
    /// # Errors
    /// No memory is left; nothing has changed.
    ///
    /// # Panics
    /// There is no such database; the caller checks the number.
    pub fn load(&mut self, entry: ImageEntry<'_>) -> Result<(), Error> {
        // No time has passed for a load: values expire as those of the image's moment do.
        self.database_or_new(entry.database).insert(entry.key, entry.value, 0)
    }

    fn sum_of(&self, bytes: impl Fn(&Keyspace) -> usize) -> usize {
        (0..self.options().databases).filter_map(|number| self.database(number)).map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_keyspace::{Expiry, Options};
    use freeport_kv_types::Limits;

    use super::*;
    use crate::shard::ShardOptions;

    fn shard() -> Shard {
        Shard::new(ShardOptions { databases: 4, keyspace: Options::default() })
    }

    fn set(shard: &mut Shard, database: u16, key: &[u8], expiry: Expiry) {
        shard.database_or_new(database).set_string(key, b"value", expiry, 0).expect("memory");
    }

    fn written(shard: &mut Shard) -> Vec<u8> {
        let mut bytes = vec![];
        while shard.image_some(3, &mut bytes) == ImageStep::More {}
        bytes
    }

    #[test]
    fn an_image_has_the_databases_of_its_moment() {
        let mut shard = shard();
        for number in 0..500_u32 {
            set(&mut shard, number as u16 % 2, &number.to_le_bytes(), Expiry::AtMs(9));
        }
        shard.begin_image();
        shard.swap_databases(1, 3);
        set(&mut shard, 2, b"later", Expiry::Never);
        set(&mut shard, 0, b"later", Expiry::Never);
        let bytes = written(&mut shard);
        assert_eq!(shard.image_memory_bytes(), 0);
        let (mut loaded, mut rest) = (self::shard(), &bytes[..]);
        while let Some(entry) = ImageEntry::read(&mut rest, &Limits::default()).expect("sound") {
            loaded.load(entry).expect("there is memory");
        }
        let lengths = |shard: &Shard| {
            [0, 1, 2, 3].map(|number| shard.database(number).map_or(0, Keyspace::len))
        };
        assert_eq!(lengths(&loaded), [250, 250, 0, 0]);
        assert_eq!(lengths(&shard), [251, 0, 1, 250]);
    }

    #[test]
    fn a_shard_that_is_cleared_breaks_its_image() {
        let mut shard = shard();
        (0..500_u32).for_each(|key| set(&mut shard, 0, &key.to_le_bytes(), Expiry::Never));
        shard.begin_image();
        let mut bytes = vec![];
        assert_eq!(shard.image_some(3, &mut bytes), ImageStep::More);
        set(&mut shard, 0, &499_u32.to_le_bytes(), Expiry::Never);
        assert!(shard.pending_image_bytes() > 0);
        shard.database_or_new(0).clear();
        assert_eq!(shard.image_some(3, &mut bytes), ImageStep::Broken);
        shard.end_image();
        assert_eq!(shard.image_some(3, &mut bytes), ImageStep::Done);
        shard.begin_image();
        assert_eq!(written(&mut shard), []);
    }
}
