// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The value that `RESTORE` makes of a payload whose checksum is right, and that a key gets. It is
//! read from the key, and deserialized again.

use freeport_kv_engine::Options as EngineOptions;
use freeport_kv_keyspace::{Detached, Keyspace, Kind, Options};
use freeport_kv_types::Limits;

/// Reads the bytes as a value of the type that the first byte chooses, and stores it.
pub fn kv_detached(bytes: &[u8]) {
    let [number, ref value @ ..] = *bytes else { return };
    let kind = Kind::ALL[usize::from(number) % Kind::ALL.len()];
    let limits = Limits { hash_seed: 1, ..Limits::default() };
    let Ok(value) = Detached::deserialize(kind, value, &limits) else { return };
    let engine = EngineOptions { memory_bytes: 4 << 20, ..EngineOptions::default() };
    let options = Options { engine, limits };
    let mut keyspace = Keyspace::new(options).expect("the options are in their bounds");
    // Memory may be short.
    if keyspace.insert(b"key", value, 1).is_err() {
        return;
    }
    assert_eq!(keyspace.kind(b"key", 1), Some(kind));
    let copy = keyspace.copy(b"key", 1).expect("the key was just stored");
    if keyspace.insert(b"copy", copy, 1).is_ok() {
        assert!(keyspace.rename(b"copy", b"key", 1).expect("no memory is taken"));
    }
    assert_eq!((keyspace.len(), keyspace.kind(b"key", 1)), (1, Some(kind)));
}
