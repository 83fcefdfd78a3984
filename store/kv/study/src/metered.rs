// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The engine as a [`Table`]: an engine with a fixed index whose meter counts.

use freeport_kv_engine::{Counting, Engine, Index, Options, OptionsError, Stored};

use crate::access::{Accesses, Cause, Direction, Layout};
use crate::table::{Put, Refused, Table};

/// Bytes of a unit of the engine's blocks, up to 32 GiB of memory.
const UNIT_BYTES: usize = 16;
/// Blocks of up to this many bytes have the short header.
const SHORT_BLOCK_BYTES: usize = 512;

impl Layout {
    /// The engine's layout: ten slots of 5 bytes, and blocks of up to eight units of 16 bytes, or
    /// with four sizes to a doubling. Pairs with keys of more than 31 bytes are never inline, which
    /// the model does not know.
    pub const ENGINE: Layout = Layout { block_bytes: engine_block_bytes, ..Layout::PUBLISHED };
}

/// Bytes of the engine's block for a pair with its two bytes of header.
fn engine_block_bytes(bytes: usize) -> usize {
    let bytes = match bytes {
        0..=SHORT_BLOCK_BYTES => bytes,
        // Large blocks have a header of eight bytes.
        _ => bytes + 6,
    };
    let units = bytes.div_ceil(UNIT_BYTES).max(1);
    let step = if units <= 8 { 1 } else { 1 << ((units - 1).ilog2() - 2) };
    units.next_multiple_of(step) * UNIT_BYTES
}

/// An engine that counts its accesses.
///
/// The engine's allocator counts lines between its stacks without their direction. They count as
/// reads here.
pub struct Metered {
    engine: Engine<Counting>,
    /// Lines of the allocator that were counted already.
    slab_lines: u64,
}

impl Metered {
    /// An empty engine whose index has a fixed share of memory.
    ///
    /// # Errors
    /// The engine's: see [`OptionsError`].
    pub fn new(
        memory_bytes: usize,
        index_ratio: f64,
        inline_threshold: usize,
        seed: u64,
    ) -> Result<Metered, OptionsError> {
        let index = Index::Fixed { ratio: index_ratio };
        Metered::with_options(Options { memory_bytes, index, inline_threshold, seed })
    }

    /// An empty engine with any options.
    ///
    /// # Errors
    /// The engine's: see [`OptionsError`].
    pub fn with_options(options: Options) -> Result<Metered, OptionsError> {
        let engine = Engine::with_meter(options, Counting::default())?;
        Ok(Metered { engine, slab_lines: 0 })
    }

    /// The engine.
    pub fn engine(&self) -> &Engine<Counting> {
        &self.engine
    }
}

impl Table for Metered {
    fn name(&self) -> &'static str {
        "engine"
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> bool {
        let Some(found) = self.engine.get(key) else {
            return false;
        };
        value.clear();
        value.extend_from_slice(found.bytes);
        true
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<Put, Refused> {
        match self.engine.put(key, value) {
            Ok(Stored::Created) => Ok(Put::Inserted),
            Ok(Stored::Replaced) => Ok(Put::Replaced),
            Err(_) => Err(Refused::Memory),
        }
    }

    fn delete(&mut self, key: &[u8]) -> bool {
        self.engine.delete(key)
    }

    fn pairs(&self) -> u64 {
        self.engine.len() as u64
    }

    fn pair_bytes(&self) -> u64 {
        self.engine.pair_bytes() as u64
    }

    fn memory_bytes(&self) -> u64 {
        self.engine.options().memory_bytes as u64
    }

    fn take_accesses(&mut self) -> Accesses {
        use freeport_kv_engine::Cause as Engines;

        let meter = self.engine.meter();
        let mut accesses = Accesses::default();
        for theirs in Engines::ALL {
            let ours = match theirs {
                Engines::Bucket => Cause::Bucket,
                Engines::Chain => Cause::Chain,
                Engines::Data => Cause::Data,
            };
            accesses.count_many(ours, Direction::Read, meter.reads(theirs));
            accesses.count_many(ours, Direction::Write, meter.writes(theirs));
        }
        meter.reset();
        let slab_lines = self.engine.statistics().slab_lines;
        accesses.count_many(Cause::Slab, Direction::Read, slab_lines - self.slab_lines);
        self.slab_lines = slab_lines;
        accesses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_of_the_simple_cases_are_those_of_the_publication() {
        let mut table = Metered::new(1 << 20, 0.5, 10, 1).expect("valid");
        let mut cost = |operation: &mut dyn FnMut(&mut Metered)| {
            table.take_accesses();
            operation(&mut table);
            let accesses = table.take_accesses();
            (accesses.all_reads(), accesses.all_writes())
        };
        let insert = cost(&mut |table| assert_eq!(table.put(b"key", b"value"), Ok(Put::Inserted)));
        let hit = cost(&mut |table| assert!(table.get(b"key", &mut vec![])));
        let update = cost(&mut |table| assert_eq!(table.put(b"key", b"other"), Ok(Put::Replaced)));
        let grow = cost(&mut |table| assert_eq!(table.put(b"key", &[1; 99]), Ok(Put::Replaced)));
        let block = cost(&mut |table| assert!(table.get(b"key", &mut vec![])));
        let delete = cost(&mut |table| assert!(table.delete(b"key")));
        let miss = cost(&mut |table| assert!(!table.get(b"key", &mut vec![])));
        assert_eq!(
            [insert, hit, update, grow, block, delete, miss],
            [(1, 1), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (1, 0)]
        );
    }

    #[test]
    fn sizes_of_blocks_are_the_engines() {
        for bytes in (1..1500).step_by(7) {
            let mut table = Metered::new(1 << 20, 0.1, 0, 1).expect("valid");
            table.put(b"", &vec![7; bytes]).expect("there is room");
            let found = table.engine.statistics().block_bytes;
            assert_eq!(Layout::ENGINE.pair_block_bytes(bytes), found, "a pair of {bytes}");
        }
        let blocks = [1, 14, 16, 17, 128, 129, 160, 161, 254 + 2, 512].map(engine_block_bytes);
        assert_eq!(blocks, [16, 16, 16, 32, 128, 160, 160, 192, 256, 512]);
        assert_eq!([513, 634, 635, 1100].map(engine_block_bytes), [640, 640, 768, 1280]);
    }
}
