// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Small rings are correct in every reachable state, and each rule of the protocol is necessary:
//! without it there is an incorrect state.
//!
//! Correct means: the received data are the sent data, in order, and neither side finds a fault;
//! short writes become visible at once; no data are read while they are written; no side sleeps
//! while it has work and the other is not about to wake it; once everything is read, the longest
//! message has room; and from every state the transfer can still be completed.
//!
//! `FREEPORT_LONG=1` explores further, which takes minutes.

use crate::model::memory::{Mutation, Order};
use crate::model::search::explore;
use crate::model::sides::{Flavour, Item, Setting};
use crate::model::world::Bounds;
use freeport_testbed::is_long;

const ORDERS: [Order; 2] = [Order::Total, Order::Weak];

/// Explores, and prints the number of states.
fn check(name: &str, bounds: &Bounds) {
    let order = bounds.order;
    match explore(bounds) {
        Ok(explored) => println!("{name}, {order:?}: {explored:?}"),
        Err(wrong) => panic!("{name}, {order:?}: {wrong}"),
    }
}

/// Returns `usual`, or `more` in addition in a long test.
fn further(usual: usize, more: usize) -> usize {
    usual + if is_long() { more } else { 0 }
}

/// Messages that wrap at every place of a ring of 64 bytes, between sides that never sleep.
fn messages() -> Bounds {
    let setting =
        Setting { flavour: Flavour::Messages, rings: vec![64], looks: false, mutation: None };
    Bounds {
        setting,
        order: Order::Weak,
        is_fine: false,
        has_fences: false,
        choices: vec![Item::Send(0), Item::Send(8), Item::Pair(5, 8)],
        items: further(4, 2),
        before: (0..8).map(|count| vec![0; count]).collect(),
        moves: 0,
        rooms: vec![8],
        spins: [true; 2],
        sleeps: [false; 2],
        light: None,
    }
}

/// A stream in pieces of any size, read into rooms of two sizes.
fn bytes() -> Bounds {
    let setting =
        Setting { flavour: Flavour::Bytes, rings: vec![64], looks: false, mutation: None };
    Bounds {
        setting,
        choices: [1, 9, 40, 70].map(Item::Send).into(),
        items: further(2, 1),
        before: vec![vec![], vec![1], vec![9], vec![1, 1], vec![9, 1]],
        rooms: vec![3, 70],
        ..messages()
    }
}

/// A stream between sides that sleep whenever they have no work.
fn sleepers() -> Bounds {
    Bounds {
        choices: vec![Item::Send(40)],
        items: further(2, 1),
        before: vec![vec![]],
        rooms: vec![70],
        spins: [false; 2],
        sleeps: [true; 2],
        ..bytes()
    }
}

#[test]
fn messages_arrive_in_every_order() {
    for order in ORDERS {
        check("messages", &Bounds { order, ..messages() });
    }
}

#[test]
fn streams_arrive_in_every_order() {
    check("a stream", &bytes());
    let mut looks = Bounds { items: further(1, 1), ..bytes() };
    looks.setting.looks = true;
    check("a stream that is looked at", &looks);
}

#[test]
fn every_single_call_to_the_memory_may_come_late() {
    for order in ORDERS {
        let before = vec![vec![], vec![0; 3], vec![0; 6]];
        let fine = Bounds { order, is_fine: true, items: further(2, 2), before, ..messages() };
        check("messages, by call", &fine);
    }
    let before = vec![vec![9]];
    let fine = Bounds { is_fine: true, items: further(2, 1), before, ..bytes() };
    check("a stream, by call", &fine);
}

#[test]
fn rings_move_to_other_memory_and_back_in_every_order() {
    for order in ORDERS {
        let before = vec![vec![], vec![0; 5], vec![0; 6]];
        let mut moved = Bounds { order, items: further(2, 1), moves: 2, before, ..messages() };
        moved.setting.rings = vec![64, 128];
        check("a ring that moves", &moved);
    }
}

#[test]
fn nobody_sleeps_for_ever_while_rings_move() {
    let before = vec![vec![], vec![0; 6]];
    let choices = vec![Item::Send(8)];
    let mut moved = Bounds { choices, items: 1, moves: 2, before, ..messages() };
    moved.setting.rings = vec![64, 64];
    check("sleepers whose ring moves", &Bounds { spins: [false; 2], sleeps: [true; 2], ..moved });
}

#[test]
fn a_ring_that_begins_anew_when_it_is_empty_does_so_in_every_order() {
    for order in ORDERS {
        let setting =
            Setting { flavour: Flavour::Entries, rings: vec![8192], looks: false, mutation: None };
        let rewound = Bounds {
            setting,
            order,
            choices: [8, 2032].map(Item::Send).into(),
            items: further(3, 1),
            before: vec![vec![2032; 2], vec![2032; 3]],
            ..messages()
        };
        check("a ring that begins anew", &rewound);
    }
}

#[test]
fn nobody_sleeps_for_ever_in_any_order() {
    for (order, has_fences) in [(Order::Total, false), (Order::Weak, false), (Order::Weak, true)] {
        let name = if has_fences { "sleepers with fences" } else { "sleepers with membarrier" };
        check(name, &Bounds { order, has_fences, ..sleepers() });
    }
    check("light sleepers who give that up", &Bounds { light: Some(1), ..sleepers() });
    let light = || Bounds { light: Some(8), ..sleepers() };
    check("light sleepers", &light());
    check("light sleepers with fences", &Bounds { has_fences: true, items: 1, ..light() });
    check("light sleepers by call", &Bounds { is_fine: true, items: 1, ..light() });
    check("sleepers by call", &Bounds { is_fine: true, items: 1, ..sleepers() });
    let before = vec![vec![], vec![0; 6]];
    let undecided = Bounds { sleeps: [true; 2], items: further(1, 1), before, ..messages() };
    check("who may sleep or try again", &undecided);
}

/// Returns the description of the first incorrect state, with a rule broken.
fn wrong(mutation: Mutation, mut bounds: Bounds) -> String {
    bounds.setting.mutation = Some(mutation);
    let wrong = explore(&bounds).expect_err("a broken rule does harm");
    let mut lines = wrong.lines();
    let first = lines.next().expect("a line").to_owned();
    println!("{mutation:?}: {first} ({} steps)", lines.count());
    first
}

#[test]
fn each_rule_for_entries_is_needed() {
    let fine = || Bounds { is_fine: true, ..messages() };
    for order in ORDERS {
        let found = wrong(Mutation::NoTerminator, Bounds { order, ..fine() });
        assert!(
            found.starts_with("the receiver finds ") || found.starts_with("number "),
            "{found}"
        );
        wrong(Mutation::HeaderFirst, Bounds { order, ..fine() });
        wrong(Mutation::HeaderFirst, Bounds { order, ..messages() });
        wrong(Mutation::CreditsTooHigh, Bounds { order, ..fine() });
    }
    wrong(Mutation::PlainHeader, fine());
    let found = wrong(Mutation::PlainHeader, messages());
    assert_eq!(found, "the receiver reads what is being written");
}

#[test]
fn what_is_taken_before_it_is_read_is_overwritten() {
    let entries = |is_fine| {
        let setting =
            Setting { flavour: Flavour::Entries, rings: vec![64], looks: false, mutation: None };
        Bounds { setting, is_fine, choices: vec![Item::Send(8)], ..messages() }
    };
    wrong(Mutation::TakenFirst, entries(true));
    wrong(Mutation::TakenFirst, entries(false));
    check("entries", &entries(false));
}

#[test]
fn each_rule_for_sleepers_is_needed() {
    for order in ORDERS {
        let bounds = || Bounds { order, ..sleepers() };
        for mutation in [
            Mutation::NoBarrier,
            Mutation::NoMembarrier,
            Mutation::NoSecondLook,
            Mutation::SleepsNotCounted,
        ] {
            let found = wrong(mutation, bounds());
            assert!(found.ends_with("sleeps and will never be woken"), "{mutation:?}: {found}");
        }
        wrong(Mutation::NoBarrier, Bounds { has_fences: true, ..bounds() });
        let light = || Bounds { light: Some(8), items: 3, ..bounds() };
        for mutation in [Mutation::NoFence, Mutation::NoMembarrier, Mutation::NoSecondLook] {
            let found = wrong(mutation, light());
            assert!(found.ends_with("sleeps and will never be woken"), "{mutation:?}: {found}");
        }
    }
}

#[test]
fn longer_messages_than_the_longest_get_stuck() {
    let entries = |lengths: &[usize]| {
        let setting =
            Setting { flavour: Flavour::Entries, rings: vec![64], looks: false, mutation: None };
        let choices = lengths.iter().copied().map(Item::Send).collect();
        Bounds { setting, choices, ..messages() }
    };
    check("entries of the longest length", &entries(&[0, 8]));
    let found = explore(&entries(&[0, 9])).expect_err("there is no room where the ring ends");
    assert!(found.starts_with("from here it cannot end"), "{found}");
}
