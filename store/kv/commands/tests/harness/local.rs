// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands executed in this process.

use std::time::{SystemTime, UNIX_EPOCH};

use freeport_kv_commands::{
    Call, Effects, Error, FAMILIES, Run, Session, Shard, ShardOptions, Store, Table,
};
use freeport_kv_engine::Options as EngineOptions;
use freeport_kv_keyspace::Options;
use freeport_kv_protocol::resp::Writer;

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

    /// An empty store of several shards, each with this much memory.
    pub fn with_memory(shards: usize, memory_bytes: usize) -> Self {
        let engine = EngineOptions { memory_bytes, ..EngineOptions::default() };
        let keyspace = Options { engine, ..Options::default() };
        let mut store = Store::new(shards);
        for number in 0..shards {
            let options = ShardOptions { databases: 16, keyspace: keyspace.clone() };
            store.insert(number, Box::new(Shard::new(options)));
        }
        Self {
            table: Table::new(FAMILIES.iter().copied().flatten().copied()),
            store,
            session: Session::new(1),
            effects: Effects { listened: u16::MAX, ..Effects::default() },
            now_ms: None,
        }
    }

    /// The reply to a command whose arguments are separated by single spaces.
    pub fn line(&mut self, line: &str) -> Vec<u8> {
        self.call(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
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
        let now_ms = self.now_ms.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
            since.as_millis() as u64
        });
        let parts = (&mut self.store, &mut self.effects);
        let mut call = Call::new(arguments, self.session, parts, now_ms, &mut output);
        command.execute(&mut call);
        output
    }
}
