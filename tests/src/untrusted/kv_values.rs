// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Snapshots of values of a key-value store. Bytes that are read as a value are written again, and
//! read as the same value.

use freeport_kv_types::{Hash, Limits, List, Set, Stream, ZSet};

/// The snapshot of a value that was read, and its number of elements.
type Again = (Vec<u8>, u64);

/// Reads the bytes as a value of the type that the first byte chooses.
pub fn kv_values(bytes: &[u8]) {
    let [kind, ref snapshot @ ..] = *bytes else { return };
    let limits = Limits { hash_seed: 1, ..Limits::default() };
    // Reads bytes, and returns the snapshot of the value with its number of elements.
    macro_rules! reader {
        ($type:ident) => {
            |bytes: &[u8]| {
                let value = $type::deserialize(bytes, &limits).ok()?;
                let mut written = vec![];
                value.view().serialize(&mut written);
                Some((written, value.view().len() as u64))
            }
        };
    }
    let read: &dyn Fn(&[u8]) -> Option<Again> = match kind % 5 {
        0 => &reader!(Hash),
        1 => &reader!(List),
        2 => &reader!(Set),
        3 => &reader!(ZSet),
        _ => &reader!(Stream),
    };
    if let Some((written, length)) = read(snapshot) {
        let (again, length_again) = read(&written).expect("a written snapshot is read");
        assert_eq!((&again, length_again), (&written, length), "kind {}", kind % 5);
    }
}

/// A snapshot of each type, packed and large, as the reader takes them.
pub fn samples() -> Vec<Vec<u8>> {
    let limits = Limits { hash_seed: 1, ..Limits::default() };
    let mut samples = vec![];
    for count in [1, 5, 300] {
        let texts: Vec<Vec<u8>> = (0..count).map(|it| format!("{it}x").into_bytes()).collect();
        let (mut hash, mut list, mut set) = (Hash::default(), List::default(), Set::default());
        for text in &texts {
            hash.set(&limits, text, b"value");
            list.push(&limits, freeport_kv_types::list::End::Back, text);
            set.add(&limits, text);
        }
        let mut sorted: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        sorted.sort_unstable();
        let scored: Vec<(&[u8], f64)> = sorted.into_iter().map(|text| (text, 1.5)).collect();
        let zset = ZSet::from_sorted(&limits, &scored).expect("members are sorted");
        let mut stream = Stream::default();
        for at in 0..count {
            let id = freeport_kv_types::stream::NewId::parse(b"*").expect("an id");
            stream.add(&limits, id, &[b"field", b"value"], 1_000 + at as u64).expect("ids grow");
        }
        let mut push = |kind: u8, write: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = vec![kind];
            write(&mut bytes);
            samples.push(bytes);
        };
        push(0, &|out| hash.view().serialize(out));
        push(1, &|out| list.view().serialize(out));
        push(2, &|out| set.view().serialize(out));
        push(3, &|out| zset.view().serialize(out));
        push(4, &|out| stream.view().serialize(out));
    }
    samples
}
