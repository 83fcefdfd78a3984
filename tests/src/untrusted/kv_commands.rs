// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection of a Redis client: requests are read and executed on a store of three shards,
//! without sockets. Each request has one reply, unless its client would wait.

use freeport_kv_commands::{Call, Effects, FAMILIES, Session, Shard, ShardOptions, Store, Table};
use freeport_kv_engine::Options as EngineOptions;
use freeport_kv_keyspace::Options;
use freeport_kv_protocol::resp::{Read, RequestLimits, RequestReader, Version};

use super::resp::is_one_value;

const SHARDS: usize = 3;
/// Milliseconds since 1970 of the first request.
const BEGIN_MS: u64 = 1_700_000_000_000;

/// Executes requests. The first byte gives the version of the protocol.
pub fn kv_commands(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let table = Table::new(FAMILIES.iter().copied().flatten().copied());
    let (mut store, mut effects) = (store(), Effects::default());
    let mut session = Session::new(1);
    session.version = if first % 2 == 0 { Version::Two } else { Version::Three };
    let mut reader = RequestReader::new(RequestLimits::default());
    let (mut start, mut now_ms) = (0, BEGIN_MS);
    while let Ok(Read::Complete(request)) = reader.read(&bytes[start..]) {
        start += request.bytes();
        now_ms += 1;
        let arguments: Vec<&[u8]> = request.iter().collect();
        let Some(command) = arguments.first().and_then(|name| table.get(name)) else { continue };
        let keys = &command.spec.keys;
        let visit = |at: usize| assert!(at < arguments.len(), "keys are arguments");
        if command.spec.check_arity(arguments.len()).is_err()
            || keys.visit(&arguments, visit).is_err()
        {
            continue;
        }
        let mut output = vec![];
        let parts = (&mut store, &mut effects);
        command.execute(&mut Call::new(&arguments, session, parts, now_ms, &mut output));
        let waits = effects.block.take().is_some();
        assert!(
            if waits { output.is_empty() } else { is_one_value(&output) },
            "{} replies {}",
            command.spec.name,
            String::from_utf8_lossy(&output)
        );
    }
}

fn store() -> Store {
    let engine = EngineOptions { memory_bytes: 4 << 20, ..EngineOptions::default() };
    let keyspace = Options { engine, ..Options::default() };
    let mut store = Store::new(SHARDS);
    for number in 0..SHARDS {
        let options = ShardOptions { databases: 2, keyspace: keyspace.clone() };
        store.insert(number, Box::new(Shard::new(options)));
    }
    store
}
