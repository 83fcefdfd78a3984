// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The firewall of `examples/firewall.cnp` with its manager against a search through all rules:
//! rules of all kinds are inserted, changed and removed, singly and in sets, between batches of
//! packets, with small tables that overflow and at full size.

mod harness;
mod model;

use crate::replay::{self, Driver, Traffic};
use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::{Bits, InstanceId, Program};
use freeport_runtime::device::Device;
use freeport_tests::repository;
use freeport_tests::tables::Tuple;
use harness::{Firewall, frame, interpreter, native, spread};
use model::{PASS, Rule};
use std::path::Path;

/// Status for a rule of priority 0.
const REFUSED: u64 = 4;
/// Capacity of the small firewall for planned rules.
const PLANNED: usize = 200;

/// Returns the firewall at full size.
fn full() -> Program {
    let example = repository().join("examples/firewall.cnp");
    compiled(&std::fs::read_to_string(example).expect("the example is there"))
}

/// Returns the firewall with small tables, so that they overflow.
fn small() -> Program {
    let sizes = "EXACT = 64, PREFIXES = 12, MASKS = 4, MASK_RULES = 8, OTHERS = 32";
    compiled(&format!(
        "Firewall<{sizes}, PLANNED = {PLANNED}, PLANNED_MASKS = 12> :: firewall\n\
         from_tor -> firewall -> to_tor\n"
    ))
}

fn compiled(text: &str) -> Program {
    let library = Options { library: vec![repository().join("elements")] };
    let compiled = compile_text("firewall.cnp", text, &library);
    compiled.unwrap_or_else(|failure| panic!("{failure}")).program
}

/// Inserts and removes rules one at a time.
fn run_live(device: Box<dyn Device + '_>, rounds: u16) {
    let random = &mut Rng::with_seed(7);
    let mut firewall = Firewall::new(device);
    firewall.check(random, 20);
    let nothing = Rule { priority: 0, ..Rule::random(random, 1) };
    assert_eq!(firewall.call("insert", &nothing.arguments()).to_u64(), REFUSED);
    let mut overflowed = 0;
    for round in 0..rounds {
        // Mostly growing, then mostly shrinking, repeatedly.
        let removals = if round / 12 % 2 == 0 { 1 } else { 5 };
        for change in 0..12 {
            let priority = model::priority(round * 12 + change + 1);
            match random.u8(..8) {
                draw if draw >= removals => firewall.insert(Rule::random(random, priority)),
                _ if firewall.rules.0.is_empty() || random.u8(..4) == 0 => {
                    firewall.remove(&Rule::random(random, 1));
                }
                _ => firewall.remove(&random.choice(&firewall.rules.0).copied().expect("some")),
            }
        }
        overflowed = firewall.count("tables.manager", "overflowed").max(overflowed);
        firewall.check(random, 24);
    }
    let held = firewall.count("tables.manager", "held_prefixes");
    assert_eq!(held, firewall.count("tables.prefixes", "rules"));
    assert!(overflowed > 10 && firewall.refused > 0, "{overflowed} {}", firewall.refused);
    for rule in firewall.rules.0.clone() {
        firewall.remove(&rule);
    }
    for table in ["exact", "prefixes", "wildcard", "others"] {
        assert_eq!(firewall.count(&format!("tables.{table}"), "rules"), 0, "{table}");
    }
    assert_eq!(firewall.count("tables.manager", "overflowed"), 0);
}

/// Places sets of rules at once, between single changes.
fn run_planned(device: Box<dyn Device + '_>, rounds: u16) {
    let random = &mut Rng::with_seed(3);
    let mut firewall = Firewall::new(device);
    let mut count = 0;
    let mut next = |random: &mut Rng| {
        count += 1;
        Rule::random(random, model::priority(count))
    };
    for round in 0..rounds {
        for _ in 0..random.usize(..150) {
            let rule = next(random);
            if !firewall.planned.iter().any(|other| other.is_of(&rule)) {
                let has_room = firewall.planned.len() < PLANNED;
                assert_eq!(firewall.plan(rule), has_room);
            }
        }
        firewall.place();
        firewall.check(random, 24);
        for _ in 0..random.usize(..8) {
            let rule = next(random);
            firewall.insert(rule);
        }
        let keep = if round % 4 == 3 { 0 } else { 50 };
        while firewall.rules.0.len() > keep {
            firewall.remove(&random.choice(&firewall.rules.0).copied().expect("some"));
        }
    }
    assert!(firewall.refused > 0, "no set was too large");
    while firewall.plan(next(random)) {}
    assert_eq!(firewall.planned.len(), PLANNED);
}

#[test]
fn native_code_passes_what_rules_allow_that_come_and_go() {
    run_live(native(&small()), 300);
}

#[test]
fn several_workers_pass_what_rules_allow_that_come_and_go() {
    run_live(spread(&small(), "firewall.parse=1,firewall.buffer=2"), 100);
}

#[test]
fn the_interpreter_passes_what_rules_allow_that_come_and_go() {
    run_live(interpreter(&small()), 24);
}

#[test]
fn native_code_passes_what_sets_of_rules_allow() {
    run_planned(native(&small()), 100);
}

#[test]
fn the_interpreter_passes_what_sets_of_rules_allow() {
    run_planned(interpreter(&small()), 6);
}

#[test]
fn a_rule_that_fits_nowhere_changes_nothing() {
    let program = small();
    let mut firewall = Firewall::new(native(&program));
    let random = &mut Rng::with_seed(5);
    let mut refused = 0;
    for count in 1..2000 {
        let rule = Rule::random(random, model::priority(count));
        // The visible state is 70,000 values: it is compared only from when a refusal is possible.
        let before = (firewall.refused > 3 && refused < 12).then(|| firewall.everything());
        firewall.insert(rule);
        if firewall.refused > refused + 4
            && let Some(before) = before
        {
            refused = firewall.refused;
            assert!(firewall.everything() == before, "{rule:?}");
        }
    }
    assert!(refused > 4, "{refused}");
}

#[test]
fn of_prefixes_the_one_with_the_largest_priority_counts() {
    let program = small();
    let mut firewall = Firewall::new(native(&program));
    let of = |length: u32, action, priority| {
        let target = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        let mask = Tuple { target, ..Tuple::default() };
        let tuple = Tuple { target: 0x0a00_0101, ..Tuple::default() };
        Rule::new(tuple, mask, action, priority)
    };
    let inside = Tuple { target: 0x0a00_0101, ..Tuple::default() };
    let held = |firewall: &Firewall<'_>| firewall.count("tables.manager", "held_prefixes");
    firewall.insert(of(8, PASS, 10));
    firewall.insert(of(24, PASS, 20));
    firewall.insert(of(16, PASS, 30));
    assert_eq!(held(&firewall), 2, "it would be hidden by the longer one");
    firewall.check_lookup(&inside);
    // The longer prefix may hide no more than it should, and the shorter one must not reappear by
    // itself.
    firewall.insert(of(24, PASS, 40));
    firewall.insert(of(16, PASS, 35));
    assert_eq!(held(&firewall), 3);
    firewall.check_lookup(&inside);
    firewall.insert(of(0, PASS, 50));
    firewall.insert(of(8, PASS, 60));
    assert_eq!(held(&firewall), 2, "two are among the masks");
    firewall.check_lookup(&inside);
    for length in [0, 8, 16, 24] {
        firewall.remove(&of(length, PASS, 1));
        firewall.check_lookup(&inside);
    }
    assert_eq!(held(&firewall), 0);
}

#[test]
fn a_rule_of_the_last_table_touches_all_thirteen() {
    let program = small();
    let mut firewall = Firewall::new(native(&program));
    let random = &mut Rng::with_seed(2);
    let tables = |firewall: &Firewall<'_>| -> Vec<Bits> {
        (0..13 * 256).map(|at| firewall.read("tables.others", "tables", at)).collect()
    };
    let mut priority = 0;
    for rules in 0..20 {
        let before = tables(&firewall);
        // Its masks leave the hash tables no choice but to refuse it.
        while firewall.count("tables.others", "rules") == rules {
            priority += 1;
            firewall.insert(Rule::new(Tuple::random(random), Tuple::random(random), 0, priority));
        }
        let after = tables(&firewall);
        let pairs = before.chunks(256).zip(after.chunks(256));
        assert_eq!(pairs.filter(|(before, after)| before != after).count(), 13);
    }
}

#[test]
fn the_largest_masks_of_a_full_set_get_the_hash_tables() {
    let program = full();
    let mut firewall = Firewall::new(native(&program));
    let random = &mut Rng::with_seed(11);
    let masks: Vec<Tuple> = (0..60).map(|_| Tuple::random(random)).collect();
    // 1,500 rules with one mask take two tables, 14 masks of 1,000 rules one each; then none is
    // left.
    let size = |at: usize| [1500, 1000, 40][usize::from(at > 0) + usize::from(at > 14)];
    let mut set = vec![];
    for (at, mask) in masks.iter().enumerate() {
        for _ in 0..size(at) {
            set.push((Tuple::random(random), *mask));
        }
    }
    random.shuffle(&mut set);
    for ((tuple, mask), count) in set.into_iter().zip(1..) {
        let priority = model::priority(count);
        assert!(firewall.plan(Rule::new(tuple, mask, random.u32(..2), priority)));
    }
    firewall.place();
    assert_eq!(firewall.refused, 0);
    assert_eq!(firewall.count("tables.wildcard", "rules"), 1500 + 14 * 1000);
    assert_eq!(firewall.count("tables.manager", "overflowed"), 45 * 40);
    check_some(&mut firewall, random);

    // Single changes in between: exact rules, prefixes, and masks that only the last table can
    // hold.
    for count in 20_000..22_000 {
        let mask = match count % 4 {
            0 => Tuple::random(random),
            _ => model::mask(random),
        };
        let (tuple, action) = (Tuple::random(random), random.u32(..2));
        firewall.insert(Rule::new(tuple, mask, action, model::priority(count)));
    }
    assert!(firewall.refused > 0, "the last table is full");
    assert!(
        firewall.count("tables.exact", "rules") > 300
            && firewall.count("tables.prefixes", "rules") > 30
    );
    check_some(&mut firewall, random);
    for _ in 0..200 {
        let rule = random.choice(&firewall.rules.0).copied().expect("some");
        firewall.remove(&rule);
    }
    check_some(&mut firewall, random);
}

/// Checks tuples that match rules, and others.
fn check_some(firewall: &mut Firewall<'_>, random: &mut Rng) {
    for at in 0..400 {
        let rule = random.choice(&firewall.rules.0).copied().expect("some");
        let (any, mask) = (Tuple::random(random), rule.mask);
        let rest = Tuple {
            source: !mask.source,
            target: !mask.target,
            source_port: !mask.source_port,
            target_port: !mask.target_port,
            protocol: !mask.protocol,
        };
        let rest = any.masked(&rest);
        let fitting = Tuple {
            source: rule.tuple.source | rest.source,
            target: rule.tuple.target | rest.target,
            source_port: rule.tuple.source_port | rest.source_port,
            target_port: rule.tuple.target_port | rest.target_port,
            protocol: rule.tuple.protocol | rest.protocol,
        };
        firewall.check_lookup(if at % 4 == 0 { &any } else { &fitting });
    }
}

#[test]
fn what_native_code_records_of_a_managed_firewall_replays() {
    let program = small();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("firewall");
    let image = replay::image(&program, &replay::options(&cache));
    for seed in 0..2 {
        let random = &mut Rng::with_seed(seed);
        let tuples: Vec<Tuple> = (0..60).map(|_| model::tuple(random)).collect();
        let packets = tuples.iter().map(|tuple| frame(random, tuple)).collect();
        let input = vec![Traffic { packets, ..Traffic::default() }, Traffic::default()];
        let mut driver = Driver::new(&image, input);
        let [manager, tables] = ["firewall.manager", "firewall.tables.manager"]
            .map(|name| driver.graph.instance(name).expect("it has one"));
        for count in 1..60 {
            let rule = Rule::random(random, model::priority(count));
            let (method, arguments) = match random.u8(..8) {
                0 => ("remove", rule.key()),
                1 => ("lookup", vec![rule.tuple.bits()]),
                2 | 3 => ("plan", rule.arguments()),
                4 => ("place", vec![]),
                _ => ("insert", rule.arguments()),
            };
            driver.graph.call_method(manager, method, &arguments).expect("it takes these");
            driver.run(&[random.usize(..3), 0], &[0, random.usize(..3)]);
        }
        driver.run_in_pieces(random, 3);
        let (oracles, execution) = driver.graph.take_recording();
        let made = |it: InstanceId| oracles.instances[it.index()].calls.len();
        assert!(made(manager) > 20 && made(tables) > 60, "managers call each other");
        let out = replay::check(&program, oracles, &execution);
        assert_eq!(out, driver.out);
    }
}
