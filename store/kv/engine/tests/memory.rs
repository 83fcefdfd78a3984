// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of an engine: what a pair takes, and what the options allow.

use freeport_kv_engine::{Engine, Index, Options, OptionsError, OutOfMemory};

/// A growing index keeps its fill, and a pair of 100 bytes takes at most 125.
#[test]
fn a_pair_of_100_bytes_takes_at_most_a_quarter_more() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    let pairs = 200_000_u32;
    for number in 0..pairs {
        let key = format!("key:{number:012}");
        engine.put(key.as_bytes(), &[7; 84]).expect("there is memory");
    }
    let statistics = engine.statistics();
    let bytes = statistics.used_bytes() as f64 / f64::from(pairs);
    assert!((100.0..125.0).contains(&bytes), "{bytes} bytes a pair");
    assert!((0.6..0.75).contains(&statistics.fill), "fill {}", statistics.fill);
}

/// Ten bytes fill more than 55 % of the memory.
#[test]
fn pairs_of_ten_bytes_fill_more_than_55_percent() {
    let options = Options {
        memory_bytes: 16 << 20,
        index: Index::Fixed { ratio: 0.6 },
        inline_threshold: 10,
        seed: 3,
    };
    let mut engine = Engine::new(options).expect("options are sound");
    let mut number = 0_u64;
    while engine.put(&number.to_le_bytes(), b"va").is_ok() {
        number += 1;
    }
    let utilisation = engine.statistics().utilisation();
    assert!(utilisation > 0.55, "{utilisation}");
    assert_eq!(engine.len() as u64, number);
}

#[test]
fn a_full_engine_takes_puts_again_after_deletes() {
    let options = Options { memory_bytes: 1 << 20, ..Options::default() };
    let mut engine = Engine::new(options).expect("options are sound");
    for round in 0..20_u32 {
        let size = 40 + 60 * (round as usize % 7);
        let mut keys = 0_u32;
        while engine.put(&keys.to_le_bytes(), &vec![round as u8; size]).is_ok() {
            keys += 1;
        }
        let most = (1 << 20) / (size + 6);
        assert!(keys as usize > most * 6 / 10, "round {round}: {keys} of at most {most}");
        (0..keys).for_each(|key| assert!(engine.delete(&key.to_le_bytes())));
    }
}

/// A store at its limit is emptied by smaller values as well as by deletes.
#[test]
fn a_full_engine_takes_smaller_values() {
    let options = Options { memory_bytes: 1 << 20, ..Options::default() };
    let mut engine = Engine::new(options).expect("options are sound");
    let mut keys = 0_u32;
    let mut large = 0;
    // Each size takes what is left by the larger ones.
    for size in [300, 200, 90, 30, 14] {
        while engine.put(&keys.to_le_bytes(), &vec![1; size]).is_ok() {
            keys += 1;
        }
        if size == 300 {
            large = keys;
        }
    }
    for size in [200, 90, 30, 3] {
        for key in 0..large {
            engine.put(&key.to_le_bytes(), &vec![2; size]).expect("it is smaller");
        }
    }
    assert_eq!(engine.len(), keys as usize);
}

#[test]
fn clearing_leaves_an_engine_as_new() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    let fresh = engine.statistics();
    for number in 0..50_000_u32 {
        engine.put(&number.to_le_bytes(), &[1; 50]).expect("there is memory");
    }
    engine.clear();
    assert_eq!(engine.statistics(), fresh);
    assert!(engine.get(&7_u32.to_le_bytes()).is_none());
    engine.put(b"key", b"value").expect("there is memory");
    assert_eq!(engine.get(b"key").map(|value| value.bytes), Some(&b"value"[..]));
}

#[test]
fn tags_are_kept_with_values_of_every_form() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    for length in [0, 3, 10, 40, 600, 70_000] {
        for is_tagged in [true, false, true] {
            engine.put_tagged(b"key", &vec![1; length], is_tagged).expect("there is memory");
            let value = engine.get(b"key").expect("it is there");
            assert_eq!((value.bytes.len(), value.is_tagged), (length, is_tagged));
        }
    }
}

#[test]
fn options_that_make_no_engine_are_refused_with_the_reason() {
    let refuse = |options: Options| Engine::new(options).err().expect("refused").to_string();
    let options = Options::default();
    let memory_bytes = 1 << 10;
    assert!(refuse(Options { memory_bytes, ..options }).contains("1 MiB"));
    let index = Index::Fixed { ratio: 1.0 };
    assert!(refuse(Options { index, ..options }).contains("between 0 and 1"));
    let index = Index::Growing { fill: f64::NAN };
    assert!(refuse(Options { index, ..options }).contains("between 0 and 1"));
    assert!(refuse(Options { inline_threshold: 51, ..options }).contains("holds 50"));
    let engine = Engine::new(Options { memory_bytes, ..options });
    assert!(matches!(engine, Err(OptionsError::Memory(1_024))));
}

#[test]
fn values_above_512_mib_are_refused_before_memory_is_taken() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    // Zero pages that nothing touches.
    let value = vec![0; (512 << 20) + 1];
    assert_eq!(engine.put(b"key", &value), Err(OutOfMemory));
    assert!(engine.is_empty());
}

#[test]
fn memory_of_pairs_is_their_share_of_buckets_and_their_blocks() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    engine.put(b"key", b"1234567").expect("there is memory");
    engine.put(b"long", &[1; 94]).expect("there is memory");
    // Two of ten slots of a line, and one with a block of 112 bytes.
    assert_eq!(engine.memory_of(b"key"), Some(13));
    assert_eq!(engine.memory_of(b"long"), Some(7 + 112));
    assert_eq!(engine.memory_of(b"none"), None);
}
