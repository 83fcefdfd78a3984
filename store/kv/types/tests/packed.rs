// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random edits of packed sequences, against a vector of byte strings.

use freeport_kv_types::packed::{self, Packed, Place};
use freeport_kv_types::{Entry, entry};
use freeport_testbed::{seed, usual_or_long};

/// Returns a byte string that often is an integer, sometimes long.
fn text(random: &mut fastrand::Rng) -> Vec<u8> {
    match random.u32(0..8) {
        0..4 => (random.i64(..) >> random.u32(0..64)).to_string().into_bytes(),
        4 => vec![b'x'; random.usize(0..200)],
        5 if random.u32(0..20) == 0 => vec![b'y'; random.usize(8000..9000)],
        _ => format!("field:{}", random.u32(0..50)).into_bytes(),
    }
}

fn edit(random: &mut fastrand::Rng, bytes: &mut Vec<u8>, model: &mut Vec<Vec<u8>>) {
    let index = random.usize(0..=model.len());
    let sequence = Packed::new(bytes);
    let place = sequence.place(index as isize).unwrap_or(sequence.end());
    let new = text(random);
    match random.u32(0..7) {
        0 if !model.is_empty() => {
            let count = random.usize(0..5);
            packed::remove(bytes, place, count);
            model.drain(index..model.len().min(index + count));
        }
        1 if index < model.len() => {
            packed::replace(bytes, place, Entry::new(&new));
            model[index] = new;
        }
        2 => {
            packed::push_front(bytes, Entry::new(&new));
            model.insert(0, new);
        }
        3 => {
            packed::push_back(bytes, Entry::new(&new));
            model.push(new);
        }
        _ => {
            packed::insert(bytes, place, Entry::new(&new));
            model.insert(index, new);
        }
    }
}

fn compare(random: &mut fastrand::Rng, bytes: &[u8], model: &[Vec<u8>], context: &str) {
    packed::validate(bytes).unwrap_or_else(|corrupt| panic!("{context}: {corrupt}"));
    let sequence = Packed::new(bytes);
    assert_eq!(sequence.len(), model.len(), "{context}");
    let forward: Vec<_> = sequence.iter().map(Entry::to_vec).collect();
    assert_eq!(forward, model, "{context}");
    let mut backward: Vec<_> = sequence.iter().rev().map(Entry::to_vec).collect();
    backward.reverse();
    assert_eq!(backward, model, "{context}");
    let needle = text(random);
    let found = model.iter().position(|text| *text == needle);
    let place = found.map(|index| sequence.place(index as isize).expect("within"));
    assert_eq!(sequence.find(Place::START, &needle, 1), place, "{context}");
}

#[test]
fn random_edits_match_a_vector() {
    let first = seed();
    for seed in first..first + usual_or_long(30, 1000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut bytes, mut model) = (vec![], vec![]);
        for step in 0..200 {
            edit(&mut random, &mut bytes, &mut model);
            compare(&mut random, &bytes, &model, &format!("seed {seed}, step {step}"));
        }
    }
}

/// A sequence cut, or with a byte changed, is refused, or is another valid sequence. It is never
/// read outside.
#[test]
fn damaged_sequences_are_refused_or_read_safely() {
    let first = seed();
    for seed in first..first + usual_or_long(300, 20_000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut bytes, mut model) = (vec![], vec![]);
        for _ in 0..random.usize(1..20) {
            edit(&mut random, &mut bytes, &mut model);
        }
        if bytes.is_empty() {
            continue;
        }
        let cut = random.usize(1..=bytes.len()) - 1;
        assert!(cut == 0 || packed::validate(&bytes[..cut]).is_err(), "seed {seed}, cut at {cut}");
        let at = random.usize(0..bytes.len());
        bytes[at] ^= random.u8(1..);
        let is_valid = packed::validate(&bytes).is_ok();
        let entries: Vec<_> = Packed::new(&bytes).iter().collect();
        Packed::new(&bytes).iter().rev().for_each(drop);
        if is_valid {
            let size: usize = entries.iter().map(|&entry| entry::encoded_size(entry)).sum();
            assert!(size < bytes.len(), "seed {seed}");
            assert_eq!(entries.len(), Packed::new(&bytes).len(), "seed {seed}");
        }
    }
}
