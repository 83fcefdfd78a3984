// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fills the shards of a server from a snapshot and the log behind it, before its workers start.
//!
//! Units are executed one after the other, each at the time at which it was executed first, on a
//! store that has all shards. So the number of workers may differ from run to run.

use freeport_kv_commands::{
    Call, Command, Database, Effects, FAMILIES, Run, Session, Shard, ShardOptions, Store, Table,
};
use freeport_kv_journal::Replay;
use freeport_kv_keyspace::ImageEntry;

use super::record::{Reader, Record};

/// Kinds of entries of a snapshot, in their first byte: pairs, as images write them, or records.
pub const PAIRS: u8 = 0;
/// See [`PAIRS`].
pub const RECORDS: u8 = 1;

/// Shards that are being filled.
pub struct Loader {
    table: Table<Run>,
    store: Store,
    effects: Effects,
    databases: u16,
    /// The reply of the last command.
    reply: Vec<u8>,
    /// Time of the last command.
    now_ms: u64,
    /// The latest time of a command.
    pub latest_ms: u64,
    /// Version and bytes of the functions.
    pub functions: Option<(u64, Vec<u8>)>,
    /// Number of units.
    pub units: u64,
}

impl Loader {
    /// A number of empty shards. Functions of a user are not needed: the log has their results.
    pub fn new(count: usize, options: &ShardOptions) -> Self {
        let mut store = Store::new(count);
        for number in 0..count {
            let mut shard = Box::new(Shard::new(options.clone()));
            shard.set_stretched(true);
            store.insert(number, shard);
        }
        Self {
            table: Table::new(FAMILIES.iter().copied().flatten().copied()),
            store,
            effects: Effects::default(),
            databases: options.databases,
            reply: vec![],
            now_ms: 0,
            latest_ms: 0,
            functions: None,
            units: 0,
        }
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

    fn load_pairs(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        loop {
            // The shards have the same limits.
            let limits = &self.store.shard(0).options().keyspace.limits;
            let entry = ImageEntry::read(&mut bytes, limits).map_err(|it| it.to_string())?;
            let Some(entry) = entry else { return Ok(()) };
            self.check_database(entry.database)?;
            let shard = self.store.shard_of(entry.key);
            let loaded = self.store.shard_mut(shard).load(entry);
            loaded.map_err(|error| too_small(&error.to_string()))?;
        }
    }

    fn apply_records(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut reader = Reader::new(bytes);
        while let Some(record) = reader.next()? {
            match record {
                Record::Time(now_ms) => {
                    self.now_ms = now_ms;
                    self.latest_ms = self.latest_ms.max(now_ms);
                }
                Record::Command { database, arguments, has_succeeded } => {
                    self.check_database(database)?;
                    self.execute(database, &arguments, has_succeeded)?;
                }
                Record::Removal { database, key } => {
                    self.check_database(database)?;
                    let (store, effects) = (&mut self.store, &mut self.effects);
                    Database::new(store, effects, database, self.now_ms).remove(key);
                }
                Record::Functions { version, dump } => self.set_functions(version, dump),
                Record::Pairs(pairs) => self.load_pairs(pairs)?,
            }
            self.forget_effects();
        }
        Ok(())
    }

    fn execute(
        &mut self,
        database: u16,
        arguments: &[&[u8]],
        has_succeeded: bool,
    ) -> Result<(), String> {
        let name = || String::from_utf8_lossy(arguments[0]).into_owned();
        let unknown = || format!("a command that this version does not know: {}", name());
        let command: Command = *self.table.get(arguments[0]).ok_or_else(unknown)?;
        command.spec.check_arity(arguments.len()).map_err(|error| error.text().to_owned())?;
        let session = Session { database, may_block: false, ..Session::new(0) };
        self.reply.clear();
        let parts = (&mut self.store, &mut self.effects);
        let mut call = Call::new(arguments, session, parts, self.now_ms, &mut self.reply);
        if command.execute(&mut call) == has_succeeded {
            return Ok(());
        }
        let reply = String::from_utf8_lossy(&self.reply);
        let reply = reply.trim_end().trim_start_matches('-');
        let text = format!("{} does not have the result that it had before: {reply}", name());
        Err(if reply.starts_with("OOM") { too_small(&text) } else { text })
    }

    /// Versions count, because workers append changes of functions in any order.
    fn set_functions(&mut self, version: u64, dump: &[u8]) {
        if self.functions.as_ref().is_none_or(|(present, _)| *present < version) {
            self.functions = Some((version, dump.to_vec()));
        }
    }

    fn forget_effects(&mut self) {
        self.effects.block = None;
        self.effects.has_ready_keys = false;
    }

    fn check_database(&self, number: u16) -> Result<(), String> {
        if number < self.databases {
            return Ok(());
        }
        Err(format!(
            "database {number}, but there are only {}; start the server with more (--databases)",
            self.databases
        ))
    }
}

fn too_small(reason: &str) -> String {
    format!(
        "{reason}. The memory is too small for the stored keys; start the server with more \
             (--memory), or with fewer workers"
    )
}

impl Replay for Loader {
    fn entry(&mut self, bytes: &[u8]) -> Result<(), String> {
        match bytes.split_first() {
            Some((&PAIRS, pairs)) => self.load_pairs(pairs),
            Some((&RECORDS, records)) => self.apply_records(records),
            Some((kind, _)) => Err(format!("an entry of an unknown kind, {kind}")),
            None => Err("an empty entry".into()),
        }
    }

    fn unit(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.units += 1;
        self.apply_records(bytes)
    }
}
