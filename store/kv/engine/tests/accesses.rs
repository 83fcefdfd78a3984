// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory accesses of each operation, as the formulas of the publication have them: a store with
//! few pairs, so that no bucket is chained.

use freeport_kv_engine::{Cause, Counting, Engine, Index, Options};

fn engine(inline_threshold: usize) -> Engine<Counting> {
    let options = Options {
        memory_bytes: 64 << 20,
        index: Index::Fixed { ratio: 0.5 },
        inline_threshold,
        seed: 11,
    };
    Engine::with_meter(options, Counting::default()).expect("options are sound")
}

/// Reads and writes of the index and of blocks: bucket, bucket, data, data.
fn accesses(
    engine: &mut Engine<Counting>,
    operation: impl FnOnce(&mut Engine<Counting>),
) -> [u64; 4] {
    engine.meter().reset();
    operation(engine);
    let meter = engine.meter();
    assert_eq!((meter.reads(Cause::Chain), meter.writes(Cause::Chain)), (0, 0), "no chains");
    [
        meter.reads(Cause::Bucket),
        meter.writes(Cause::Bucket),
        meter.reads(Cause::Data),
        meter.writes(Cause::Data),
    ]
}

fn put(key: &'static [u8], value: &'static [u8]) -> impl FnOnce(&mut Engine<Counting>) {
    move |engine| {
        engine.put(key, value).expect("there is memory");
    }
}

fn get(key: &'static [u8]) -> impl FnOnce(&mut Engine<Counting>) {
    move |engine| {
        engine.get(key);
    }
}

fn delete(key: &'static [u8]) -> impl FnOnce(&mut Engine<Counting>) {
    move |engine| {
        engine.delete(key);
    }
}

#[test]
fn an_inline_pair_costs_one_access_to_get_and_two_to_put() {
    let mut engine = engine(10);
    assert_eq!(accesses(&mut engine, put(b"key12", b"value")), [1, 1, 0, 0], "insert");
    assert_eq!(accesses(&mut engine, get(b"key12")), [1, 0, 0, 0], "get");
    assert_eq!(accesses(&mut engine, put(b"key12", b"VALUE")), [1, 1, 0, 0], "update");
    assert_eq!(accesses(&mut engine, put(b"key12", b"val")), [1, 1, 0, 0], "shorter");
    assert_eq!(accesses(&mut engine, get(b"other")), [1, 0, 0, 0], "miss");
    let atomic = |engine: &mut Engine<Counting>| {
        engine.update(b"key12", |value| value.bytes[0] += 1);
    };
    assert_eq!(accesses(&mut engine, atomic), [1, 1, 0, 0], "atomic");
    assert_eq!(accesses(&mut engine, delete(b"key12")), [1, 1, 0, 0], "delete");
}

#[test]
fn a_pair_in_a_block_costs_one_access_more() {
    let mut engine = engine(10);
    assert_eq!(accesses(&mut engine, put(b"key", &[1; 59])), [1, 1, 0, 1], "insert");
    assert_eq!(accesses(&mut engine, get(b"key")), [1, 0, 1, 0], "get");
    assert_eq!(accesses(&mut engine, put(b"key", &[2; 59])), [1, 0, 1, 1], "same class");
    assert_eq!(accesses(&mut engine, put(b"key", &[2; 200])), [1, 1, 1, 1], "other class");
    assert_eq!(accesses(&mut engine, put(b"key", &[2; 3])), [1, 1, 1, 0], "inline from now on");
    assert_eq!(accesses(&mut engine, put(b"key", &[2; 200])), [1, 1, 0, 1], "and back");
    assert_eq!(accesses(&mut engine, delete(b"key")), [1, 1, 1, 0], "delete");
    assert_eq!(accesses(&mut engine, delete(b"key")), [1, 0, 0, 0], "nothing to delete");
}

/// The secondary hash keeps all but one in 512 other keys from being read, and those are
/// compared in full.
#[test]
fn one_lookup_in_512_reads_a_wrong_key() {
    let options = Options {
        memory_bytes: 64 << 20,
        index: Index::Fixed { ratio: 0.01 },
        inline_threshold: 0,
        seed: 11,
    };
    let mut engine = Engine::with_meter(options, Counting::default()).expect("options are sound");
    let pairs = 40_000_u32;
    for number in 0..pairs {
        engine.put(&number.to_le_bytes(), &[0; 20]).expect("there is memory");
    }
    engine.meter().reset();
    let lookups = 1_000_000;
    for number in pairs..pairs + lookups {
        assert!(engine.get(&number.to_le_bytes()).is_none());
    }
    let buckets = (options.memory_bytes / 100 / 64) as f64;
    // A miss compares with all pairs of its chain.
    let expected = f64::from(lookups) * f64::from(pairs) / buckets / 512.0;
    let share = engine.meter().reads(Cause::Data) as f64 / expected;
    assert!((0.9..1.1).contains(&share), "{share} of what 1/512 gives");
}
