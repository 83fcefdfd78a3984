// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clusters with virtual time and random faults. All nodes run the agent that servers run; its
//! registry, the logs, and the links between nodes are models.
//!
//! Nodes crash, with and without their machine, are paused, lose the registry or each other, and
//! their clocks differ. Calls of the registry take time, their answers are lost, and a request may
//! arrive long after its caller has given up. With some seeds, all calls take so long that a lease
//! has to be prolonged again as soon as it was; a change of a node's part takes up to most of a
//! lease. After each step:
//!
//! - at most one node of a shard may answer clients;
//! - no primary acknowledges a write after a later one has, unless it has handed over that write;
//! - a new primary has every write that was acknowledged with `n` replicas, unless more than `n`
//!   nodes had failed at once since.
//!
//! When the faults end, every shard gets a primary, and all its nodes get the same log.

mod calls;
mod checks;
mod event;
mod faults;
mod log;
mod node;
mod traffic;
mod world;

use std::time::Duration;

use freeport_testbed::{number, seed, usual_or_long};
use world::World;

/// Something that is wrong with all nodes, to show that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Replies leave without a lease.
    OpenFence,
    /// A sealed replica publishes a position from before.
    OldPositions,
    /// Clocks are slower than the margin of a lease allows.
    SlowClocks,
    /// A lease that has to be prolonged goes before all other decisions.
    LeaseFirst,
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn no_promise_is_broken() {
    let (first, count) = (seed(), number("FREEPORT_RUNS").unwrap_or(usual_or_long(400, 100_000)));
    let (mut acknowledged, mut changes) = (0, 0);
    for seed in first..first + count {
        let mut world = World::new(seed, None);
        if let Err(error) = world.live() {
            panic!("FREEPORT_SEED={seed}: {error}");
        }
        acknowledged += world.clients.iter().map(|clients| clients.acknowledged).sum::<u64>();
        changes += world.changes;
    }
    assert!(acknowledged > 50 * count, "clients hardly worked: {acknowledged} writes");
    assert!(changes > 5 * count, "primaries hardly changed: {changes} times");
}

/// The first error among many seeds with a flaw.
fn find(flaw: Flaw) -> String {
    (1..5_000)
        .find_map(|seed| World::new(seed, Some(flaw)).live().err())
        .unwrap_or_else(|| panic!("nothing is noticed of {flaw:?}"))
}

#[test]
fn replies_without_a_lease_are_noticed() {
    let error = find(Flaw::OpenFence);
    assert!(error.contains("after term") || error.contains("lacks write"), "{error}");
}

#[test]
fn positions_that_are_not_final_are_noticed() {
    let error = find(Flaw::OldPositions);
    assert!(error.contains("lacks write"), "{error}");
}

#[test]
fn clocks_beyond_the_margin_are_noticed() {
    let error = find(Flaw::SlowClocks);
    assert!(error.contains("two primaries") || error.contains("after term"), "{error}");
}

#[test]
fn decisions_that_never_have_a_turn_are_noticed() {
    let error = find(Flaw::LeaseFirst);
    assert!(error.contains("there still is no order"), "{error}");
}
