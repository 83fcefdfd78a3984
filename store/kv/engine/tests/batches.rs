// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches whose operations meet on one key, and on one bucket.

use freeport_kv_engine::{
    Counting, Engine, Index, Options, OutOfMemory, Replies, Request, Stored, Value, ValueMut,
};

/// Adds to counters, and keeps what gets returned.
#[derive(Default)]
struct Adding {
    values: Vec<Option<Vec<u8>>>,
}

impl Replies for Adding {
    fn get(&mut self, _: usize, value: Option<Value<'_>>) {
        self.values.push(value.map(|value| value.bytes.to_vec()));
    }

    fn put(&mut self, _: usize, stored: Result<Stored, OutOfMemory>) {
        stored.expect("there is memory");
    }

    fn delete(&mut self, _: usize, _: bool) {}

    fn update(&mut self, _: usize, value: Option<ValueMut<'_>>) {
        let value = value.expect("the counter is there");
        let counter: &mut [u8; 8] = value.bytes.try_into().expect("counters have 8 bytes");
        *counter = (u64::from_le_bytes(*counter) + 1).to_le_bytes();
    }
}

#[test]
fn fetch_and_add_on_one_key_counts_every_one() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    engine.put(b"counter", &0_u64.to_le_bytes()).expect("there is memory");
    let requests = vec![Request::Update(b"counter"); 100_000];
    engine.run(&requests, &mut Adding::default());
    let value = engine.get(b"counter").expect("it is there");
    assert_eq!(value.bytes, 100_000_u64.to_le_bytes());
}

#[test]
fn operations_on_one_key_in_flight_are_forwarded_without_a_search() {
    let options =
        Options { memory_bytes: 1 << 20, index: Index::Fixed { ratio: 0.5 }, ..Options::default() };
    let mut engine = Engine::with_meter(options, Counting::default()).expect("options are sound");
    engine.put(b"counter", &0_u64.to_le_bytes()).expect("there is memory");
    engine.meter().reset();
    engine.run(&[Request::Get(b"counter"); 1_000], &mut Adding::default());
    assert_eq!(engine.meter().total(), 1, "one search for all of them");
}

#[test]
fn a_batch_sees_its_own_effects_in_order() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    let long = [5; 300];
    let requests = [
        Request::Get(b"a"),
        Request::Put(b"a", b"1"),
        Request::Get(b"a"),
        Request::Put(b"a", &long),
        Request::Get(b"a"),
        Request::Delete(b"a"),
        Request::Get(b"a"),
        Request::Put(b"a", b"2"),
        Request::Get(b"a"),
    ];
    let mut replies = Adding::default();
    engine.run(&requests, &mut replies);
    let expected = [None, Some(b"1".to_vec()), Some(long.to_vec()), None, Some(b"2".to_vec())];
    assert_eq!(replies.values, expected);
}

#[test]
fn an_empty_batch_and_an_empty_key_are_fine() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    let mut replies = Adding::default();
    engine.run(&[], &mut replies);
    engine.run(&[Request::Put(b"", b""), Request::Get(b"")], &mut replies);
    assert_eq!(replies.values, [Some(Vec::new())]);
}

/// A put may let the index grow, which moves pairs, also the one that was just stored.
#[test]
fn a_pair_is_found_by_the_operation_after_the_one_that_made_it() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    let keys: Vec<[u8; 8]> = (0..50_000_u64).map(u64::to_le_bytes).collect();
    let pairs = |key| [Request::Put(key, key), Request::Get(key)];
    let requests: Vec<Request<'_>> = keys.iter().flat_map(|key| pairs(key)).collect();
    let mut replies = Adding::default();
    engine.run(&requests, &mut replies);
    assert_eq!(replies.values.len(), keys.len());
    for (value, key) in replies.values.iter().zip(&keys) {
        assert_eq!(value.as_deref(), Some(&key[..]));
    }
}
