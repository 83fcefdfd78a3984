// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random operations on an engine and on a map, one at a time and in batches: every result is
//! equal, and so is what is left.

use std::collections::HashMap;

use freeport_kv_engine::{
    Engine, Index, Options, OutOfMemory, Replies, Request, Stored, Value, ValueMut,
};
use freeport_testbed::{seed, usual_or_long};

/// An operation with its key and value.
#[derive(Clone, Debug)]
enum Step {
    Get(Vec<u8>),
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Increment(Vec<u8>),
}

/// A result of either.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Value(Option<Vec<u8>>),
    Put(Result<Stored, OutOfMemory>),
    Deleted(bool),
}

/// Adds one to the first byte, and returns what was there: an atomic that does not commute with
/// puts.
fn increment(value: &mut [u8]) -> Vec<u8> {
    let original = value.to_vec();
    if let Some(first) = value.first_mut() {
        *first = first.wrapping_add(1);
    }
    original
}

#[derive(Default)]
struct Outcomes(Vec<Outcome>);

impl Outcomes {
    fn push(&mut self, number: usize, outcome: Outcome) {
        assert_eq!(number, self.0.len(), "results come in the order of the requests");
        self.0.push(outcome);
    }
}

impl Replies for Outcomes {
    fn get(&mut self, number: usize, value: Option<Value<'_>>) {
        self.push(number, Outcome::Value(value.map(|value| value.bytes.to_vec())));
    }

    fn put(&mut self, number: usize, stored: Result<Stored, OutOfMemory>) {
        self.push(number, Outcome::Put(stored));
    }

    fn delete(&mut self, number: usize, is_deleted: bool) {
        self.push(number, Outcome::Deleted(is_deleted));
    }

    fn update(&mut self, number: usize, value: Option<ValueMut<'_>>) {
        let original = value.map(|value| increment(value.bytes));
        self.push(number, Outcome::Value(original));
    }
}

fn run_one(engine: &mut Engine, step: &Step) -> Outcome {
    match step {
        Step::Get(key) => Outcome::Value(engine.get(key).map(|value| value.bytes.to_vec())),
        Step::Put(key, value) => Outcome::Put(engine.put(key, value)),
        Step::Delete(key) => Outcome::Deleted(engine.delete(key)),
        Step::Increment(key) => Outcome::Value(engine.update(key, |value| increment(value.bytes))),
    }
}

fn run_batch(engine: &mut Engine, steps: &[Step]) -> Vec<Outcome> {
    let requests: Vec<Request<'_>> = steps
        .iter()
        .map(|step| match step {
            Step::Get(key) => Request::Get(key),
            Step::Put(key, value) => Request::Put(key, value),
            Step::Delete(key) => Request::Delete(key),
            Step::Increment(key) => Request::Update(key),
        })
        .collect();
    let mut outcomes = Outcomes::default();
    engine.run(&requests, &mut outcomes);
    outcomes.0
}

/// Result of the map. A put that the engine refused must have changed nothing, so it is not
/// made here either.
fn run_model(model: &mut HashMap<Vec<u8>, Vec<u8>>, step: &Step, outcome: &Outcome) -> Outcome {
    match step {
        Step::Get(key) => Outcome::Value(model.get(key).cloned()),
        Step::Put(..) if *outcome == Outcome::Put(Err(OutOfMemory)) => outcome.clone(),
        Step::Put(key, value) => Outcome::Put(Ok(match model.insert(key.clone(), value.clone()) {
            Some(_) => Stored::Replaced,
            None => Stored::Created,
        })),
        Step::Delete(key) => Outcome::Deleted(model.remove(key).is_some()),
        Step::Increment(key) => Outcome::Value(model.get_mut(key).map(|value| increment(value))),
    }
}

/// How keys and values are drawn.
#[derive(Clone, Copy)]
struct Draw {
    keys: u64,
    longest_key: usize,
    longest_value: usize,
}

impl Draw {
    fn key(&self, random: &mut fastrand::Rng) -> Vec<u8> {
        // Half of the draws go to a few keys, so that operations in flight meet.
        let number = if random.bool() { random.u64(0..self.keys) } else { random.u64(0..8) };
        let length = 1 + (number as usize * 7) % self.longest_key;
        let mut key = vec![(number >> 8) as u8; length];
        key[length - 1] = number as u8;
        key[0] ^= (number >> 16) as u8;
        key
    }

    fn value(&self, random: &mut fastrand::Rng) -> Vec<u8> {
        // Mostly short ones, as in the tables of the publication.
        let length = match random.u8(0..10) {
            0..6 => random.usize(0..=self.longest_value.min(12)),
            6..9 => random.usize(0..=self.longest_value.min(120)),
            _ => random.usize(0..=self.longest_value),
        };
        vec![random.u8(..); length]
    }

    fn step(&self, random: &mut fastrand::Rng, puts: u8) -> Step {
        let key = self.key(random);
        match random.u8(0..100) {
            draw if draw < puts => Step::Put(key, self.value(random)),
            draw if draw < puts + 20 => Step::Delete(key),
            draw if draw < puts + 35 => Step::Increment(key),
            _ => Step::Get(key),
        }
    }
}

fn compare(seed: u64, options: Options, draw: Draw, operations: usize) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut engine = Engine::new(Options { seed, ..options }).expect("options are sound");
    let mut model = HashMap::new();
    let (mut done, mut refused) = (0, 0);
    while done < operations {
        // Times of growth and of shrinkage.
        let puts = if done / 20_000 % 2 == 0 { 50 } else { 15 };
        let count = if random.bool() { 1 } else { random.usize(1..200) };
        let steps: Vec<Step> = (0..count).map(|_| draw.step(&mut random, puts)).collect();
        let outcomes = match &steps[..] {
            [step] => vec![run_one(&mut engine, step)],
            steps => run_batch(&mut engine, steps),
        };
        assert_eq!(outcomes.len(), steps.len(), "seed {seed}");
        for (step, outcome) in steps.iter().zip(&outcomes) {
            let expected = run_model(&mut model, step, outcome);
            assert_eq!(*outcome, expected, "seed {seed}, operation {done}: {step:?}");
            refused += usize::from(*outcome == Outcome::Put(Err(OutOfMemory)));
            done += 1;
        }
        assert_eq!(engine.len(), model.len(), "seed {seed}, operation {done}");
    }
    let bytes: usize = model.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert_eq!(engine.pair_bytes(), bytes, "seed {seed}");
    for (key, value) in &model {
        assert_eq!(engine.get(key).map(|value| value.bytes), Some(&value[..]), "seed {seed}");
    }
    for key in model.keys() {
        assert!(engine.delete(key), "seed {seed}");
    }
    let left = engine.statistics();
    assert_eq!((left.block_bytes, left.chained_buckets), (0, 0), "seed {seed}: all is given back");
    assert_eq!((left.pairs, left.fill, left.pair_bytes), (0, 0.0, 0), "seed {seed}");
    refused
}

const SMALL: Draw = Draw { keys: 4_000, longest_key: 24, longest_value: 30 };
const MIXED: Draw = Draw { keys: 3_000, longest_key: 60, longest_value: 700 };

/// 10^7 operations together; ten times as many in a long run.
#[test]
fn every_result_is_that_of_a_map() {
    let share = usual_or_long(1_000_000, 10_000_000);
    let growing = |fill| Index::Growing { fill };
    let settings = [
        (growing(0.7), 20, SMALL),
        (growing(0.95), 50, SMALL),
        (growing(0.3), 10, MIXED),
        (growing(0.8), 0, MIXED),
        (Index::Fixed { ratio: 0.01 }, 25, SMALL),
        (Index::Fixed { ratio: 0.002 }, 50, MIXED),
        (Index::Fixed { ratio: 0.3 }, 15, SMALL),
        (Index::Fixed { ratio: 0.0001 }, 20, SMALL),
    ];
    for (number, (index, inline_threshold, draw)) in settings.into_iter().enumerate() {
        let options = Options { memory_bytes: 64 << 20, index, inline_threshold, seed: 0 };
        let refused = compare(seed() + number as u64, options, draw, share);
        assert_eq!(refused, 0, "there is memory enough in setting {number}");
    }
}

#[test]
fn a_put_without_memory_changes_nothing() {
    let share = usual_or_long(1_000_000, 10_000_000);
    for (number, index) in
        [Index::Growing { fill: 0.7 }, Index::Fixed { ratio: 0.2 }].into_iter().enumerate()
    {
        let options = Options { memory_bytes: 1 << 20, index, inline_threshold: 20, seed: 0 };
        let draw = Draw { keys: 30_000, ..MIXED };
        let refused = compare(seed() + 100 + number as u64, options, draw, share);
        assert!(refused > 1_000, "memory is short: {refused}");
    }
}

#[test]
fn large_values_keep_their_bytes() {
    let draw = Draw { keys: 40, longest_key: 300, longest_value: 3 << 20 };
    let options = Options { memory_bytes: 1 << 30, ..Options::default() };
    compare(seed() + 200, options, draw, 4_000);
}
