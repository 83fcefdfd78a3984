// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The value that `RESTORE` makes of a payload whose checksum is right, and that a key gets. It is
//! read from the key, and deserialized again. Entries of images are such values with a key.

use freeport_kv_engine::Options as EngineOptions;
use freeport_kv_keyspace::{Detached, ImageEntry, ImageStep, Keyspace, Kind, Options};
use freeport_kv_types::Limits;

/// Reads the bytes as a value of the type that the first byte chooses, and stores it.
pub fn kv_detached(bytes: &[u8]) {
    read_as_entry(bytes);
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
    let mut image = vec![];
    keyspace.begin_image(3);
    while keyspace.image_some(100, &mut image) == ImageStep::More {}
    let entry = ImageEntry::read(&mut &image[..], keyspace.limits()).expect("it was written");
    let entry = entry.expect("there is a pair");
    assert_eq!((entry.database, entry.key), (3, &b"key"[..]));
}

/// Reads the bytes as the entry of an image, and as such behind a length that is right.
fn read_as_entry(bytes: &[u8]) {
    let limits = Limits { hash_seed: 1, ..Limits::default() };
    let _ = ImageEntry::read(&mut &bytes[..], &limits);
    let with_length = [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat();
    let mut rest = &with_length[..];
    if let Ok(entry) = ImageEntry::read(&mut rest, &limits) {
        assert!(entry.is_some() && rest.is_empty());
    }
}
