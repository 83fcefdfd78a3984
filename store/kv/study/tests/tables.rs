// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every table against a map of the standard library: random puts, gets and deletes of random
//! sizes, nearly empty and full. Refused puts change nothing.

use std::collections::HashMap;

use fastrand::Rng;
use freeport_kv_study::rivals::{Cuckoo, Fetch, Hopscotch, KEY_BYTES, Options, VALUE_BYTES};
use freeport_kv_study::table::{Put, Refused, Table};
use freeport_testbed::{seed, usual_or_long};

/// A table over memory of 64 KiB, with the given share for the index.
type Make = fn(f64) -> Box<dyn Table>;

const RIVALS: [Make; 2] = [
    |ratio| Box::new(Cuckoo::new(&options(ratio)).expect("valid options")),
    |ratio| Box::new(Hopscotch::new(&options(ratio), Fetch::Lines).expect("valid options")),
];

fn options(index_ratio: f64) -> Options {
    Options { memory_bytes: 1 << 16, index_ratio, smallest_block_bytes: 32, seed: 1 }
}

#[test]
fn tables_behave_as_maps() {
    let steps = usual_or_long(20_000, 200_000);
    for seed in seed()..seed() + usual_or_long(2, 10) {
        for make in RIVALS {
            for (ratio, keys) in [(0.1, 60_000), (0.3, 30), (0.7, 20_000)] {
                compare(make(ratio).as_mut(), keys, steps, seed);
            }
        }
    }
}

/// Compares `steps` operations on `keys` keys with a map.
fn compare(table: &mut dyn Table, keys: u32, steps: u32, seed: u64) {
    let name = table.name();
    let place = |step| format!("{name}, {keys} keys, FREEPORT_SEED={seed}, step {step}");
    let mut random = Rng::with_seed(seed);
    let mut model: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut found = vec![];
    let mut refused = 0;
    for step in 0..steps {
        let number = random.u32(..keys).to_le_bytes();
        let key = &[&number[..], &number[..]].concat()[..random.usize(3..=KEY_BYTES)];
        match random.u8(..10) {
            0..5 => {
                let bytes = if random.u8(..8) == 0 { random.usize(..=VALUE_BYTES) } else { 20 };
                let value: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
                match table.put(key, &value) {
                    Ok(put) => {
                        let old = model.insert(key.to_vec(), value);
                        let expected = if old.is_some() { Put::Replaced } else { Put::Inserted };
                        assert_eq!(put, expected, "{}", place(step));
                    }
                    Err(_) => refused += 1,
                }
            }
            5..8 => {
                let is_found = table.get(key, &mut found);
                let expected = model.get(key);
                assert_eq!(is_found.then_some(&found), expected, "{}", place(step));
            }
            _ => {
                let expected = model.remove(key).is_some();
                assert_eq!(table.delete(key), expected, "{}", place(step));
            }
        }
        assert_eq!(table.pairs(), model.len() as u64, "{}", place(step));
    }
    assert_eq!(refused > 0, keys > 1000, "{}: {refused} refused", place(steps));
    let bytes = model.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum::<u64>();
    assert_eq!(table.pair_bytes(), bytes, "{}", place(steps));
    for (key, value) in &model {
        assert!(table.get(key, &mut found) && found == *value, "{}", place(steps));
    }
}

#[test]
fn pairs_that_no_table_takes_are_refused() {
    for make in RIVALS {
        let mut table = make(0.5);
        let (long_key, long_value) = ([1; KEY_BYTES + 1], [1; VALUE_BYTES + 1]);
        assert_eq!(table.put(&long_key, b"value"), Err(Refused::KeyBytes(KEY_BYTES + 1)));
        assert_eq!(table.put(b"key", &long_value), Err(Refused::ValueBytes(VALUE_BYTES + 1)));
        assert!(!table.get(&long_key, &mut vec![]) && !table.delete(&long_key));
        assert_eq!((table.pairs(), table.pair_bytes(), table.utilisation()), (0, 0, 0.0));
    }
}
