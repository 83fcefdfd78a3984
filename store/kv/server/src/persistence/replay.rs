// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fills the shards of a server from a snapshot and the log behind it, before its workers start.
//!
//! Units are executed one after the other, on a store that has all shards. So the number of workers
//! may differ from run to run.

use freeport_kv_commands::{Effects, Shard, ShardOptions, Store};
use freeport_kv_journal::Replay;

use super::applying::Applier;

/// Kinds of entries of a snapshot, in their first byte: pairs, as images write them, or records.
pub const PAIRS: u8 = 0;
/// See [`PAIRS`].
pub const RECORDS: u8 = 1;

/// Shards that are being filled.
pub struct Loader {
    store: Store,
    effects: Effects,
    /// Executes the units.
    pub applier: Applier,
    /// Number of units.
    pub units: u64,
}

impl Loader {
    /// A number of empty shards.
    pub fn new(count: usize, options: &ShardOptions) -> Self {
        let mut store = Store::new(count);
        for number in 0..count {
            let mut shard = Box::new(Shard::new(options.clone()));
            shard.set_stretched(true);
            store.insert(number, shard);
        }
        let applier = Applier::new(options.databases);
        Self { store, effects: Effects::default(), applier, units: 0 }
    }

    /// Number of keys in all shards.
    pub fn keys(&self) -> usize {
        self.store.shards().map(Shard::keys).sum()
    }

    /// The shards, in their order.
    #[expect(clippy::vec_box, reason = "shards move between threads in boxes")]
    pub fn into_shards(mut self) -> Vec<Box<Shard>> {
        self.store.shards_mut().for_each(|shard| shard.set_stretched(false));
        (0..self.store.count()).filter_map(|number| self.store.take(number)).collect()
    }

    fn apply(&mut self, records: &[u8]) -> Result<(), String> {
        self.applier.apply((&mut self.store, &mut self.effects), records)?;
        // Nobody waits for keys yet.
        self.effects.has_ready_keys = false;
        Ok(())
    }
}

impl Replay for Loader {
    fn entry(&mut self, bytes: &[u8]) -> Result<(), String> {
        match bytes.split_first() {
            Some((&PAIRS, pairs)) => self.applier.load_pairs(&mut self.store, pairs),
            Some((&RECORDS, records)) => self.apply(records),
            Some((kind, _)) => Err(format!("an entry of an unknown kind, {kind}")),
            None => Err("an empty entry".into()),
        }
    }

    fn unit(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.units += 1;
        self.apply(bytes)
    }
}
