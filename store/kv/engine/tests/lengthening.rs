// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that become longer where they lie.

use freeport_kv_engine::{Engine, Options};
use freeport_testbed::seed;

/// The value is the same as that of a put, and so are the counts.
#[test]
fn a_longer_value_ends_with_zeros() {
    let mut random = fastrand::Rng::with_seed(seed());
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    let mut other = Engine::new(Options::default()).expect("options are sound");
    let (mut lengthened, mut refused) = (0, 0);
    for number in 0..3_000_u32 {
        let key = vec![b'k'; random.usize(1..300)];
        let mut value = vec![b'v'; random.usize(0..3_000) >> random.u32(0..10)];
        let is_tagged = random.bool();
        // Bytes that lay there before are not seen.
        engine.put(&key, &vec![0xFF; value.len() + 200]).expect("there is memory");
        engine.put_tagged(&key, &value, is_tagged).expect("there is memory");
        value.resize(value.len() + random.usize(0..60), 0);
        let is_longer = engine.lengthen(&key, value.len());
        match is_longer {
            true => lengthened += 1,
            false => {
                refused += 1;
                engine.put_tagged(&key, &value, is_tagged).expect("there is memory");
            }
        }
        other.put_tagged(&key, &value, is_tagged).expect("there is memory");
        assert_eq!(engine.get(&key), other.get(&key), "value {number}");
        assert_eq!(engine.pair_bytes(), other.pair_bytes());
    }
    assert!(lengthened > 300 && refused > 300, "{lengthened} and {refused}");
}

/// A value that grows by a byte at a time is moved rarely.
#[test]
fn a_growing_value_is_moved_once_in_a_fifth_of_its_length() {
    let mut engine = Engine::new(Options::default()).expect("options are sound");
    let mut value = vec![7; 600];
    engine.put(b"key", &value).expect("there is memory");
    let mut moves = 0;
    while value.len() < 100_000 {
        value.push(0);
        if !engine.lengthen(b"key", value.len()) {
            engine.put(b"key", &value).expect("there is memory");
            moves += 1;
        }
    }
    assert_eq!(engine.get(b"key").map(|value| value.bytes), Some(&value[..]));
    assert!(moves < 35, "{moves} moves");
    assert!(!engine.lengthen(b"key", 99_999) && !engine.lengthen(b"none", 5));
}
