// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CuckooHash against a map of the standard library, at its full size.

use freeport_tests::tables::status::{ABSENT, DONE, NO_ROOM, REPLACED};
use freeport_tests::tables::{Match, Table, Tuple};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

type Rules = HashMap<Tuple, (u32, u16)>;

fn rule(random: &mut fastrand::Rng) -> (u32, u16) {
    (random.u32(..), random.u16(1..))
}

fn check(table: &mut Table, rules: &Rules, matches: &[Match]) {
    let passed = table.pass(matches);
    for (sent, got) in matches.iter().zip(passed) {
        assert_eq!(got, rules.get(&sent.tuple).map_or(*sent, |rule| sent.or(*rule)));
    }
    assert_eq!(table.read("rules", 0).to_u64(), rules.len() as u64);
}

/// Returns matches for the tuples of rules and for other tuples, some already matched before.
fn matches(random: &mut fastrand::Rng, rules: &Rules, others: usize) -> Vec<Match> {
    let tuples = rules.keys().copied().collect::<Vec<_>>();
    let others = (0..others).map(|_| Tuple::random(random)).collect::<Vec<_>>();
    let mut found = vec![];
    for tuple in tuples.into_iter().chain(others) {
        found.push(Match::random(random, tuple));
    }
    random.shuffle(&mut found);
    found
}

#[test]
fn it_holds_what_it_says_and_more_and_loses_nothing_when_full() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut table = Table::new("CuckooHash");
    let mut rules = Rules::new();
    let refused = loop {
        let (tuple, rule) = (Tuple::random(&mut random), rule(&mut random));
        match table.insert(&[tuple.bits()], rule) {
            DONE => assert_eq!(rules.insert(tuple, rule), None),
            status => break (tuple, status),
        }
    };
    assert_eq!(refused.1, NO_ROOM);
    let (held, slots) = (rules.len(), 131_072 / 8 * 9);
    println!("{held} rules in {slots} slots: load {:.3}", held as f64 / slots as f64);
    assert!(held >= 131_072, "only {held}");
    assert!(held * 100 >= slots * 94, "a load of {held} in {slots}");
    let mut sent = matches(&mut random, &rules, 100_000);
    sent.push(Match { tuple: refused.0, ..Match::default() });
    check(&mut table, &rules, &sent);

    // Half of the rules are removed, and as many are inserted again.
    let tuples: Vec<Tuple> = rules.keys().copied().collect();
    for tuple in &tuples[..held / 2] {
        assert_eq!(table.remove(&[tuple.bits()]), DONE);
        rules.remove(tuple);
    }
    check(&mut table, &rules, &matches(&mut random, &rules, 10_000));
    while rules.len() < held * 99 / 100 {
        let (tuple, rule) = (Tuple::random(&mut random), rule(&mut random));
        assert_eq!(table.insert(&[tuple.bits()], rule), DONE, "at {}", rules.len());
        rules.insert(tuple, rule);
    }
    check(&mut table, &rules, &matches(&mut random, &rules, 10_000));
}

#[test]
fn it_does_what_a_map_does() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut table = Table::new("CuckooHash<512>");
    let mut rules = Rules::new();
    // Similar tuples, so that they recur.
    let tuple = |random: &mut fastrand::Rng| Tuple {
        source: random.u32(..4),
        target: random.u32(..4) << 30,
        source_port: random.u16(..10),
        target_port: random.u16(..4) << 14,
        protocol: random.u8(..2) * 11 + 6,
    };
    let mut full = 0;
    for round in 0..100_000 {
        let tuple = tuple(&mut random);
        if random.u8(..100) < 55 {
            let rule = rule(&mut random);
            match (table.insert(&[tuple.bits()], rule), rules.entry(tuple)) {
                (DONE, Entry::Vacant(place)) => drop(place.insert(rule)),
                (REPLACED, Entry::Occupied(mut place)) => drop(place.insert(rule)),
                (NO_ROOM, Entry::Vacant(_)) => full += 1,
                (status, _) => panic!("{status} in round {round}"),
            }
        } else {
            let wanted = if rules.remove(&tuple).is_some() { DONE } else { ABSENT };
            assert_eq!(table.remove(&[tuple.bits()]), wanted, "round {round}");
        }
        if round % 5_000 == 0 {
            check(&mut table, &rules, &matches(&mut random, &rules, 1_000));
        }
    }
    assert!(full > 100, "full {full} times");
    check(&mut table, &rules, &matches(&mut random, &rules, 1_000));
}
