// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HashTcam and BramTcam against a search through all rules, at their full sizes.

use freeport_ir::Bits;
use freeport_testbed::is_long;
use freeport_tests::tables::status::{ABSENT, DONE, NO_MASK, NO_ROOM, REPLACED};
use freeport_tests::tables::{Match, Table, Tuple};
use std::collections::HashMap;

/// A rule for the tuples that equal `key` under `mask`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Rule {
    key: Tuple,
    mask: Tuple,
    verdict: (u32, u16),
}

impl Rule {
    fn has(&self, tuple: &Tuple) -> bool {
        tuple.masked(&self.mask) == self.key
    }

    fn is_for(&self, key: Tuple, mask: Tuple) -> bool {
        self.mask == mask && self.key == key.masked(&mask)
    }

    fn arguments(&self) -> [Bits; 2] {
        [self.key.bits(), self.mask.bits()]
    }

    /// Inserts this rule into a list by descending priority, after those of equal priority.
    fn insert_into(self, rules: &mut Vec<Rule>) {
        let at = rules.partition_point(|rule| rule.verdict.1 >= self.verdict.1);
        rules.insert(at, self);
    }
}

/// Returns the best rule for a tuple, from a list by descending priority.
fn best<'r>(rules: &'r [Rule], tuple: &Tuple) -> Option<&'r Rule> {
    rules.iter().find(|rule| rule.has(tuple))
}

/// Returns a mask: prefixes of addresses, whole ports and protocol, or arbitrary bits.
fn mask(random: &mut fastrand::Rng) -> Tuple {
    if random.u8(..8) == 0 {
        return Tuple::random(random);
    }
    let prefix = |random: &mut fastrand::Rng| u32::MAX.checked_shl(random.u32(..33)).unwrap_or(0);
    let whole = |random: &mut fastrand::Rng| if random.bool() { u16::MAX } else { 0 };
    Tuple {
        source: prefix(random),
        target: prefix(random),
        source_port: whole(random),
        target_port: whole(random),
        protocol: whole(random) as u8,
    }
}

/// Returns a tuple with few values per field, so that rules overlap.
fn alike(random: &mut fastrand::Rng) -> Tuple {
    Tuple {
        source: random.u32(..4) << 30 | random.u32(..16),
        target: random.u32(..16) << 28 | random.u32(..4),
        source_port: random.u16(..4),
        target_port: random.u16(..4),
        protocol: random.u8(..2),
    }
}

/// Returns a tuple that matches a rule, or an arbitrary one.
fn tuple_for(random: &mut fastrand::Rng, rules: &[Rule]) -> Tuple {
    let mut tuple = Tuple::random(random);
    if !rules.is_empty() && random.u8(..4) > 0 {
        let Rule { key, mask, .. } = rules[random.usize(..rules.len())];
        tuple.source = tuple.source & !mask.source | key.source;
        tuple.target = tuple.target & !mask.target | key.target;
        tuple.source_port = tuple.source_port & !mask.source_port | key.source_port;
        tuple.target_port = tuple.target_port & !mask.target_port | key.target_port;
        tuple.protocol = tuple.protocol & !mask.protocol | key.protocol;
    }
    tuple
}

/// Compares the table with the list of rules. If several have the best priority, `is_exact`
/// requires the first of them.
fn check(
    random: &mut fastrand::Rng,
    table: &mut Table,
    rules: &[Rule],
    count: usize,
    is_exact: bool,
) {
    assert_eq!(table.read("rules", 0).to_u64(), rules.len() as u64);
    let sent: Vec<Match> = (0..count)
        .map(|at| {
            let tuple = if at % 2 == 0 { alike(random) } else { tuple_for(random, rules) };
            Match::random(random, tuple)
        })
        .collect();
    for (sent, got) in sent.iter().zip(table.pass(&sent)) {
        let wanted = best(rules, &sent.tuple).map_or(*sent, |rule| sent.or(rule.verdict));
        if is_exact || got.priority != wanted.priority || wanted.priority == sent.priority {
            assert_eq!(got, wanted);
        } else {
            let is_best = |rule: &Rule| rule.verdict == (got.action, got.priority);
            assert!(rules.iter().any(|it| is_best(it) && it.has(&sent.tuple)), "{got:?}");
        }
    }
}

/// Inserts and removes rules at random, with comparisons in between. Masks are `masks`, or
/// arbitrary if that is empty. Returns the number of refused rules.
fn change(table: &mut Table, masks: &[Tuple], rounds: usize, is_exact: bool) -> u64 {
    let mut random = fastrand::Rng::with_seed(3);
    let mut rules: Vec<Rule> = vec![];
    let mut refused = 0;
    for round in 0..rounds {
        let mask = match masks {
            [] => mask(&mut random),
            _ => masks[random.usize(..masks.len())],
        };
        let key = alike(&mut random).masked(&mask);
        // Priorities that are often equal.
        let verdict = (random.u32(..), random.u16(1..9));
        let rule = Rule { key, mask, verdict };
        let old = rules.iter().position(|rule| rule.is_for(key, mask));
        if random.u8(..100) < 60 {
            match (table.insert(&rule.arguments(), verdict), old) {
                (DONE, None) => rule.insert_into(&mut rules),
                (REPLACED, Some(at)) if rules[at].verdict.1 == verdict.1 => rules[at] = rule,
                (REPLACED, Some(at)) => {
                    rules.remove(at);
                    rule.insert_into(&mut rules);
                }
                (NO_ROOM | NO_MASK, None) => refused += 1,
                (status, old) => panic!("{status} in round {round}, old {old:?}"),
            }
        } else {
            // Often an existing rule.
            let at = match old {
                None if !rules.is_empty() && random.bool() => Some(random.usize(..rules.len())),
                old => old,
            };
            let rule = at.map_or(rule, |at| rules.remove(at));
            let wanted = if at.is_some() { DONE } else { ABSENT };
            assert_eq!(table.remove(&rule.arguments()), wanted, "round {round}");
        }
        if round % (rounds / 20) == 0 {
            check(&mut random, table, &rules, 500, is_exact);
        }
    }
    check(&mut random, table, &rules, 5_000, is_exact);
    for rule in std::mem::take(&mut rules) {
        assert_eq!(table.remove(&rule.arguments()), DONE);
    }
    check(&mut random, table, &rules, 500, is_exact);
    refused
}

fn keys() -> usize {
    if is_long() { 1_000_000 } else { 50_000 }
}

#[test]
fn a_hash_tcam_does_what_a_search_does() {
    let mut random = fastrand::Rng::with_seed(4);
    // More masks than sub-tables.
    let masks: Vec<Tuple> = (0..20).map(|_| mask(&mut random)).collect();
    let refused = change(&mut Table::new("HashTcam<16, 16>"), &masks, 20_000, false);
    assert!(refused > 100, "refused {refused}");
}

#[test]
fn a_full_hash_tcam_finds_all_its_rules() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut table = Table::new("HashTcam");
    // Masks with enough distinct keys.
    let mut masks = vec![];
    while masks.len() < 16 {
        let mask = mask(&mut random);
        if (mask.source | mask.target).count_ones() >= 16 && !masks.contains(&mask) {
            masks.push(mask);
        }
    }
    let mut by_mask: Vec<HashMap<Tuple, (u32, u16)>> = vec![HashMap::new(); 16];
    let mut rules = vec![];
    for (mask, known) in masks.iter().zip(&mut by_mask) {
        while known.len() < 1024 {
            let key = Tuple::random(&mut random).masked(mask);
            // No two rules have the same priority.
            let verdict = (random.u32(..), rules.len() as u16 + 1);
            if known.contains_key(&key) {
                continue;
            }
            let rule = Rule { key, mask: *mask, verdict };
            assert_eq!(table.insert(&rule.arguments(), verdict), DONE, "rule {}", rules.len());
            known.insert(key, verdict);
            rules.push(rule);
        }
    }
    let other = Rule { mask: Tuple { source: 0x1234_5678, ..masks[0] }, ..rules[0] };
    assert_eq!(table.insert(&other.arguments(), (1, 1)), NO_MASK);
    assert_eq!(table.read("rules", 0).to_u64(), 16 * 1024);

    let tuples = (0..keys()).map(|_| tuple_for(&mut random, &rules)).collect::<Vec<_>>();
    let sent: Vec<Match> = tuples.iter().map(|it| Match::random(&mut random, *it)).collect();
    for (sent, got) in sent.iter().zip(table.pass(&sent)) {
        let found = masks
            .iter()
            .zip(&by_mask)
            .filter_map(|(mask, rules)| rules.get(&sent.tuple.masked(mask)));
        let wanted = found.max_by_key(|(_, priority)| *priority);
        assert_eq!(got, wanted.map_or(*sent, |verdict| sent.or(*verdict)));
    }

    // A sub-table holds more rules than it guarantees.
    let mut more = 0;
    while table.insert(&[Tuple::random(&mut random).bits(), masks[0].bits()], (1, 1)) == DONE {
        more += 1;
    }
    println!("sub-table full at {} rules in 1536 slots", 1024 + more);
    assert!(more >= 1024 / 4, "{more}");
}

#[test]
fn a_bram_tcam_does_what_a_search_does() {
    let refused = change(&mut Table::new("BramTcam<512, 128>"), &[], 4_000, true);
    assert!(refused > 100, "refused {refused}");
}

#[test]
fn a_full_bram_tcam_finds_the_first_of_its_rules() {
    let mut random = fastrand::Rng::with_seed(6);
    let mut table = Table::new("BramTcam");
    let mut rules: Vec<Rule> = vec![];
    while rules.len() < 2048 {
        let (mask, verdict) = (mask(&mut random), (random.u32(..), random.u16(1..1000)));
        let key = Tuple::random(&mut random).masked(&mask);
        if rules.iter().any(|rule| rule.is_for(key, mask)) {
            continue;
        }
        let rule = Rule { key, mask, verdict };
        assert_eq!(table.insert(&rule.arguments(), verdict), DONE);
        rule.insert_into(&mut rules);
    }
    let other = Rule { mask: mask(&mut random), ..rules[0] };
    assert_eq!(table.insert(&other.arguments(), (1, 1)), NO_ROOM);
    check(&mut random, &mut table, &rules, keys(), true);
}
