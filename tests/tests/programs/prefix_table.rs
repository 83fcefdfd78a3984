// SPDX-License-Identifier: Apache-2.0 OR MIT
//! LpmTree against a search through all prefixes, under changes in any order and at its full size.

use freeport_ir::Bits;
use freeport_testbed::is_long;
use freeport_tests::tables::status::{ABSENT, DONE, NO_ROOM, REPLACED};
use freeport_tests::tables::{Match, Table, Tuple};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Verdicts by length and address.
type Prefixes = HashMap<(u8, u32), (u32, u16)>;

fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

fn arguments((length, address): (u8, u32)) -> [Bits; 2] {
    [Bits::from_u64(32, address.into()), Bits::from_u64(8, length.into())]
}

/// Returns the verdict of the longest prefix: tries each length, the longest first.
fn longest(prefixes: &Prefixes, address: u32) -> Option<(u32, u16)> {
    (0..=32).rev().find_map(|length| prefixes.get(&(length, address & mask(length))).copied())
}

/// Compares at random addresses, and at the boundaries of prefixes and next to them.
fn check(random: &mut fastrand::Rng, table: &mut Table, prefixes: &Prefixes, count: usize) {
    assert_eq!(table.read("rules", 0).to_u64(), prefixes.len() as u64);
    let mut addresses: Vec<u32> = (0..count).map(|_| random.u32(..)).collect();
    for (length, address) in prefixes.keys().take(count) {
        let last = address | !mask(*length);
        let inside = random.u32(*address..=last);
        addresses.extend([*address, address.wrapping_sub(1), last, last.wrapping_add(1), inside]);
    }
    let tuple = |random: &mut fastrand::Rng, target| Tuple { target, ..Tuple::random(random) };
    let sent: Vec<Match> = addresses
        .iter()
        .map(|address| {
            let tuple = tuple(random, *address);
            Match::random(random, tuple)
        })
        .collect();
    for (sent, got) in sent.iter().zip(table.pass(&sent)) {
        let wanted = longest(prefixes, sent.tuple.target);
        assert_eq!(got, wanted.map_or(*sent, |verdict| sent.or(verdict)));
    }
}

/// Returns nested prefixes of all lengths, in few places.
fn nested(random: &mut fastrand::Rng) -> (u8, u32) {
    let places = [0, 0xffff_ffff, 0x0a01_0203, 0x0a01_0303, 0x0a02_0203, 0x8000_0000];
    let address = places[random.usize(..places.len())] ^ 1_u32.rotate_left(random.u32(..32));
    let length = random.u8(..33);
    (length, address & mask(length))
}

fn verdict(random: &mut fastrand::Rng) -> (u32, u16) {
    (random.u32(..), random.u16(1..))
}

fn change(element: &str, rounds: usize) -> u64 {
    let mut random = fastrand::Rng::with_seed(7);
    let mut table = Table::new(element);
    let mut prefixes = Prefixes::new();
    let mut refused = 0;
    for round in 0..rounds {
        let prefix = nested(&mut random);
        let (length, address) = prefix;
        if random.u8(..100) < 55 {
            let verdict = verdict(&mut random);
            // Bits after the prefix are ignored.
            let any = address | random.u32(..) & !mask(length);
            let status = table.insert(&arguments((length, any)), verdict);
            match (status, prefixes.entry(prefix)) {
                (DONE, Entry::Vacant(place)) => drop(place.insert(verdict)),
                (REPLACED, Entry::Occupied(mut place)) => drop(place.insert(verdict)),
                (NO_ROOM, Entry::Vacant(_)) => refused += 1,
                (status, _) => panic!("{status} in round {round}"),
            }
        } else {
            let wanted = if prefixes.remove(&prefix).is_some() { DONE } else { ABSENT };
            assert_eq!(table.remove(&arguments(prefix)), wanted, "round {round}");
        }
        if round % (rounds / 20) == 0 {
            check(&mut random, &mut table, &prefixes, 300);
        }
    }
    check(&mut random, &mut table, &prefixes, 10_000);
    for prefix in prefixes.drain() {
        assert_eq!(table.remove(&arguments(prefix.0)), DONE);
    }
    assert_eq!(table.read("blocks", 0).to_u64(), 0, "nothing is left behind");
    check(&mut random, &mut table, &prefixes, 1_000);
    refused
}

#[test]
fn the_longest_prefix_is_found_after_changes_in_any_order() {
    assert_eq!(change("LpmTree<2048, 2048>", 10_000), 0);
    assert_eq!(change("LpmTree<2048, 2048, ROOT = 20>", 1_000), 0);
    assert_eq!(change("LpmTree<2048, 2048, ROOT = 24>", 100), 0);
}

#[test]
fn what_cannot_be_held_is_refused_and_changes_nothing() {
    assert!(change("LpmTree<256, 2048>", 3_000) > 100, "too many prefixes");
    assert!(change("LpmTree<2048, 24>", 3_000) > 100, "too many chunks");
    assert!(change("LpmTree<12, 32>", 10_000) > 1_000, "blocks as small as can be");
}

#[test]
fn it_holds_what_it_says_whatever_the_prefixes() {
    let mut random = fastrand::Rng::with_seed(8);
    let mut table = Table::new("LpmTree");
    let mut prefixes = Prefixes::new();
    // First the prefixes that need the most memory: each with its own chunks at every level.
    while prefixes.len() < 16_384 {
        let at = prefixes.len() as u32;
        let prefix = match at {
            ..12_000 => (32, at << 18 | random.u32(..1 << 16)),
            _ => (random.u8(1..33), random.u32(..)),
        };
        let prefix = (prefix.0, prefix.1 & mask(prefix.0));
        if let Entry::Vacant(place) = prefixes.entry(prefix) {
            let verdict = verdict(&mut random);
            assert_eq!(table.insert(&arguments(prefix), verdict), DONE);
            place.insert(verdict);
        }
    }
    assert_eq!(table.insert(&arguments((0, 0)), (1, 1)), NO_ROOM);
    check(&mut random, &mut table, &prefixes, if is_long() { 1_000_000 } else { 20_000 });
}

#[test]
fn it_can_go_by_the_source() {
    let mut table = Table::new("LpmTree<BY_SOURCE = 1>");
    assert_eq!(table.insert(&arguments((8, 0x0a00_0000)), (3, 1)), DONE);
    let (source, target) = (0x0a01_0203, 0x0b01_0203);
    let sent = [(source, target), (target, source)].map(|(source, target)| Match {
        tuple: Tuple { source, target, ..Tuple::default() },
        ..Match::default()
    });
    assert_eq!(table.pass(&sent), [sent[0].or((3, 1)), sent[1]]);
}
