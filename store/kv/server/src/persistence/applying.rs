// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Executes the units of a log again, each at the time at which it was executed first: at the start
//! of a server, and on a replica.

use freeport_kv_commands::{
    Call, Command, Database, Effects, FAMILIES, Run, Session, Store, Table,
};
use freeport_kv_keyspace::{ImageEntry, RawEntry};

use super::record::{Reader, Record};

/// Executes units, one after the other, on a store that has all shards.
pub struct Applier {
    table: Table<Run>,
    databases: u16,
    /// The reply of the last command.
    reply: Vec<u8>,
    /// Time of the last command.
    now_ms: u64,
    /// The latest time of a command.
    pub latest_ms: u64,
    /// Version and bytes of the functions, if a unit had any.
    pub functions: Option<(u64, Vec<u8>)>,
}

impl Applier {
    /// Executes commands on a number of databases. Functions of a user are not needed: the log has
    /// their results.
    pub fn new(databases: u16) -> Self {
        Self {
            table: Table::new(FAMILIES.iter().copied().flatten().copied()),
            databases,
            reply: vec![],
            now_ms: 0,
            latest_ms: 0,
            functions: None,
        }
    }

    /// Executes the records of a unit.
    ///
    /// # Errors
    /// They are no records, or a command does not have the result that it had before.
    pub fn apply(
        &mut self,
        (store, effects): (&mut Store, &mut Effects),
        unit: &[u8],
    ) -> Result<(), String> {
        let mut reader = Reader::new(unit);
        while let Some(record) = reader.next()? {
            match record {
                Record::Time(now_ms) => {
                    self.now_ms = now_ms;
                    self.latest_ms = self.latest_ms.max(now_ms);
                }
                Record::Command { database, arguments, has_succeeded } => {
                    self.check_database(database)?;
                    let expected = (database, has_succeeded);
                    self.execute((store, effects), &arguments, expected)?;
                    effects.block = None;
                }
                Record::Removal { database, key } => {
                    self.check_database(database)?;
                    Database::new(store, effects, database, self.now_ms).remove(key);
                }
                Record::Functions { version, dump } => self.set_functions(version, dump),
                Record::Pairs(pairs) => self.load_pairs(store, pairs)?,
            }
        }
        Ok(())
    }

    /// Stores keys with their values, as images write them.
    ///
    /// # Errors
    /// The bytes are no such keys, or there is no memory for them.
    pub fn load_pairs(&self, store: &mut Store, mut pairs: &[u8]) -> Result<(), String> {
        while let Some(RawEntry { key, bytes, .. }) =
            RawEntry::read(&mut pairs).map_err(|error| error.to_string())?
        {
            let shard = store.shard_mut(store.shard_of(key));
            let limits = &shard.options().keyspace.limits;
            let entry = ImageEntry::read(&mut &*bytes, limits).map_err(|it| it.to_string())?;
            let Some(entry) = entry else { return Ok(()) };
            self.check_database(entry.database)?;
            shard.load(entry).map_err(|error| too_small(&error.to_string()))?;
        }
        Ok(())
    }

    fn execute(
        &mut self,
        parts: (&mut Store, &mut Effects),
        arguments: &[&[u8]],
        (database, has_succeeded): (u16, bool),
    ) -> Result<(), String> {
        let name = || String::from_utf8_lossy(arguments[0]).into_owned();
        let unknown = || format!("a command that this version does not know: {}", name());
        let command: Command = *self.table.get(arguments[0]).ok_or_else(unknown)?;
        command.spec.check_arity(arguments.len()).map_err(|error| error.text().to_owned())?;
        let session = Session { database, may_block: false, ..Session::new(0) };
        self.reply.clear();
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

    /// The server has a database of that number.
    ///
    /// # Errors
    /// It has not.
    pub fn check_database(&self, number: u16) -> Result<(), String> {
        if number < self.databases {
            return Ok(());
        }
        Err(format!(
            "database {number}, but there are only {}; start the server with more (--databases)",
            self.databases
        ))
    }
}

/// The reason of an error that more memory would avoid.
fn too_small(reason: &str) -> String {
    format!(
        "{reason}. The memory is too small for the stored keys; start the server with more \
             (--memory), or with fewer workers"
    )
}
