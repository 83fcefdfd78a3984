// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands executed in this process.

use std::time::{SystemTime, UNIX_EPOCH};

use freeport_kv_commands::{
    Call, Class, Database, Effects, Error, Event, FAMILIES, Run, Session, Shard, ShardOptions,
    Store, Table,
};
use freeport_kv_engine::Options as EngineOptions;
use freeport_kv_keyspace::Options;
use freeport_kv_protocol::resp::{Value, Writer};

use super::events::event_text;
use super::parsed;

/// Classes of events that are noted: as `A` means them, neither new keys nor those not found.
const USUAL: u16 = !(Class::New as u16 | Class::Miss as u16);

/// A store and a client.
pub struct Local {
    pub table: Table<Run>,
    pub store: Store,
    pub session: Session,
    pub effects: Effects,
    /// Time of the next command, if it is not the present.
    pub now_ms: Option<u64>,
}

impl Local {
    /// An empty store of one shard.
    pub fn new() -> Self {
        Self::with_shards(1)
    }

    /// An empty store of several shards.
    pub fn with_shards(shards: usize) -> Self {
        Self::with_memory(shards, 256 << 20)
    }

    /// An empty store of several shards, each of whose databases may use this memory.
    pub fn with_memory(shards: usize, memory_bytes: usize) -> Self {
        let engine = EngineOptions { memory_bytes, ..EngineOptions::default() };
        Self::with_options(shards, &Options { engine, ..Options::default() })
    }

    /// An empty store of several shards, each of whose databases has these options.
    pub fn with_options(shards: usize, keyspace: &Options) -> Self {
        let mut store = Store::new(shards);
        for number in 0..shards {
            let options = ShardOptions { databases: 16, keyspace: keyspace.clone() };
            store.insert(number, Box::new(Shard::new(options)));
        }
        Self {
            table: Table::new(FAMILIES.iter().copied().flatten().copied()),
            store,
            session: Session::new(1),
            effects: Effects { listened: USUAL, ..Effects::default() },
            now_ms: None,
        }
    }

    /// The reply to a command whose arguments are separated by single spaces.
    pub fn line(&mut self, line: &str) -> Vec<u8> {
        self.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// Takes the events since the last call, as [`event_text`] has them.
    pub fn events(&mut self) -> Vec<String> {
        let text = |event: Event| event_text(event.database, event.name, &event.key);
        self.effects.events.drain(..).map(text).collect()
    }

    /// Takes the events since the last call; only their names.
    pub fn event_names(&mut self) -> Vec<&'static str> {
        self.effects.events.drain(..).map(|event| event.name).collect()
    }

    /// Time of expiry of a key, as [`Database::expires_ms`] has it.
    pub fn expires_ms(&mut self, key: &[u8]) -> Option<Option<u64>> {
        let now_ms = self.now_ms.unwrap_or_else(now_ms);
        let number = self.session.database;
        Database::new(&mut self.store, &mut self.effects, number, now_ms).expires_ms(key)
    }

    /// The reply to a command.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        let mut output = vec![];
        let Some(command) = self.table.get(arguments[0]) else {
            let error = Error::new(format!(
                "ERR unknown command '{}'",
                String::from_utf8_lossy(arguments[0])
            ));
            Writer::new(&mut output, self.session.version).error(error.text());
            return output;
        };
        if let Err(error) = command.spec.check_arity(arguments.len()) {
            Writer::new(&mut output, self.session.version).error(error.text());
            return output;
        }
        let now_ms = self.now_ms.unwrap_or_else(now_ms);
        let parts = (&mut self.store, &mut self.effects);
        let mut call = Call::new(arguments, self.session, parts, now_ms, &mut output);
        command.execute(&mut call);
        output
    }
}

/// Stores strings until no memory is left, large ones first.
pub fn fill(local: &mut Local) {
    let mut number = 0;
    for bytes in [100_000, 10_000, 1_000, 100, 1] {
        let value = "f".repeat(bytes);
        while local.line(&format!("SET fill{number} {value}")).starts_with(b"+OK") {
            number += 1;
        }
    }
}

/// All that a scan returns. `line` is command and key, and `between` is called between two steps.
pub fn scanned(
    local: &mut Local,
    line: &str,
    words: &str,
    mut between: impl FnMut(&mut Local),
) -> Vec<Vec<u8>> {
    let (mut cursor, mut found) = (b"0".to_vec(), vec![]);
    loop {
        let reply = local.line(&format!("{line} {} {words}", cursor.escape_ascii()));
        let Value::Array(parts) = parsed(&reply) else { panic!("no array") };
        let [Value::Bulk(next), Value::Array(elements)] = &parts[..] else {
            panic!("{parts:?} is no part of a scan")
        };
        for element in elements {
            let Value::Bulk(element) = element else { panic!("{element} is no element") };
            found.push(element.clone());
        }
        if next == b"0" {
            return found;
        }
        cursor.clone_from(next);
        between(local);
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    since.as_millis() as u64
}
