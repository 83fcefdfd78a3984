// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The promises of [`Registry`], for each kind of registry.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use freeport_kv_cluster::{
    Move, NodeId, Registry, RegistryError, Revision, ShardId, SlotSet, State, SwapError, boot_time,
};
use freeport_testbed::wait::PATIENCE;
use freeport_testbed::wait_until;

use crate::fixture::{Fixture, LONG, presence, topology};

/// Time of leases whose end is waited for.
const SHORT: Duration = Duration::from_millis(1200);

macro_rules! conformance {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::run(super::Fixture::memory(), super::$name) })+
        }
        mod file {
            $(#[test] fn $name() { super::run(super::Fixture::file(), super::$name) })+
        }
        mod etcd {
            $(#[test] fn $name() { super::run(super::Fixture::etcd(), super::$name) })+
        }
    };
}

conformance! {
    an_empty_registry_has_nothing,
    a_topology_is_replaced_at_its_revision,
    wrong_topologies_are_refused,
    a_node_has_one_session,
    a_lease_lasts_at_least_its_time,
    a_prolonged_lease_lasts_from_then_on,
    a_swap_waits_for_the_end_of_a_lease,
    waiting_ends_with_a_change,
    waiting_ends_with_the_end_of_a_lease,
    waiting_ends_with_its_time,
    waiting_does_not_go_back,
    one_of_many_wins_each_revision,
    one_of_many_sessions_is_the_node,
}

fn run(fixture: Option<Fixture>, test: impl Fn(&Fixture)) {
    if let Some(fixture) = fixture {
        test(&fixture);
    }
}

fn an_empty_registry_has_nothing(fixture: &Fixture) {
    assert_eq!(fixture.open().read(), Ok(State::default()));
    assert_eq!(fixture.open().wait(&State::default(), Duration::ZERO), Ok(State::default()));
    assert_eq!(fixture.open().leave(NodeId::random(), 1), Ok(()), "nobody is there to leave");
}

fn a_topology_is_replaced_at_its_revision(fixture: &Fixture) {
    let (registry, other) = (fixture.open(), fixture.open());
    let (one, two) = (topology(1), topology(2));
    assert_eq!(registry.swap(Some(Revision(1)), None, &one), Err(SwapError::Changed));
    let first = registry.swap(None, None, &one).expect("there is none");
    assert_eq!(other.swap(None, None, &two), Err(SwapError::Changed));
    let stored = other.read().expect("it answers").topology.expect("it was stored");
    assert_eq!((stored.revision, stored.topology), (first, one));
    let second = other.swap(Some(first), None, &two).expect("it is the present revision");
    assert!(second > first);
    assert_eq!(registry.swap(Some(first), None, &two), Err(SwapError::Changed));
    let stored = registry.read().expect("it answers").topology.expect("it was stored");
    assert_eq!((stored.revision, stored.topology), (second, two));
}

fn wrong_topologies_are_refused(fixture: &Fixture) {
    let registry = fixture.open();
    let mut wrong = topology(1);
    let (from, to) = (wrong.shards[0].id, ShardId::random());
    wrong.moves.push(Move { from, to, slots: SlotSet::all() });
    let error = registry.swap(None, None, &wrong).expect_err("it is wrong");
    assert!(matches!(&error, SwapError::Invalid(_)), "{error}");
    let mut long = topology(1);
    long.shards[0].members[0].address.host = "x".repeat(2 << 20);
    let error = fixture.open().swap(None, None, &long);
    let is_memory = registry.read().expect("it answers").topology.is_some();
    assert!(is_memory || matches!(&error, Err(SwapError::Invalid(_))), "{error:?}");
}

fn a_node_has_one_session(fixture: &Fixture) {
    let (registry, other) = (fixture.open(), fixture.open());
    let node = NodeId::random();
    let nodes = |registry: &dyn Registry| registry.read().expect("it answers").nodes;
    registry.keep(node, &presence(1, 10), LONG).expect("nobody has it");
    assert_eq!(other.keep(node, &presence(2, 20), LONG), Err(RegistryError::Taken));
    assert_eq!(other.leave(node, 2), Ok(()), "another session may end");
    assert_eq!(nodes(&other), BTreeMap::from([(node, presence(1, 10))]));
    registry.keep(node, &presence(1, 30), LONG).expect("it is its own");
    assert_eq!(nodes(&other), BTreeMap::from([(node, presence(1, 30))]));
    // The session may reach the registry by another way.
    other.keep(node, &presence(1, 40), LONG).expect("it is the same session");
    registry.keep(node, &presence(1, 50), LONG).expect("and the first way still is one");
    assert_eq!(nodes(&other), BTreeMap::from([(node, presence(1, 50))]));
    assert_eq!(other.leave(node, 1), Ok(()));
    assert_eq!(nodes(&registry), BTreeMap::new());
    other.keep(node, &presence(2, 0), LONG).expect("nobody has it");
    assert_eq!(registry.keep(node, &presence(1, 60), LONG), Err(RegistryError::Taken));
    assert_eq!(nodes(&registry), BTreeMap::from([(node, presence(2, 0))]));
}

/// Looks until a node has no lease, and returns the time by which it certainly had ended.
fn end_of_lease(registry: &dyn Registry, node: NodeId) -> Duration {
    let begin = boot_time();
    loop {
        let has_lease = registry.read().expect("it answers").nodes.contains_key(&node);
        let now = boot_time();
        if !has_lease {
            return now;
        }
        assert!(now - begin < PATIENCE, "the lease does not end");
        thread::sleep(Duration::from_millis(5));
    }
}

fn a_lease_lasts_at_least_its_time(fixture: &Fixture) {
    let (registry, node) = (fixture.open(), NodeId::random());
    let begin = boot_time();
    registry.keep(node, &presence(1, 0), SHORT).expect("nobody has it");
    let lasted = end_of_lease(&fixture.open(), node) - begin;
    assert!(lasted >= SHORT, "{lasted:?}");
    // The registry remembers nothing of the session.
    fixture.open().keep(node, &presence(2, 0), LONG).expect("nobody has it");
}

fn a_prolonged_lease_lasts_from_then_on(fixture: &Fixture) {
    let (registry, node) = (fixture.open(), NodeId::random());
    let mut begin = boot_time();
    for position in 0..4 {
        begin = boot_time();
        registry.keep(node, &presence(1, position), SHORT).expect("nobody else has it");
        thread::sleep(SHORT / 2);
    }
    let lasted = end_of_lease(&fixture.open(), node) - begin;
    assert!(lasted >= SHORT, "{lasted:?}");
}

fn a_swap_waits_for_the_end_of_a_lease(fixture: &Fixture) {
    let (registry, other, node) = (fixture.open(), fixture.open(), NodeId::random());
    let first = other.swap(None, Some(node), &topology(1)).expect("the node is absent");
    let begin = boot_time();
    registry.keep(node, &presence(1, 0), SHORT).expect("nobody has it");
    let changed = other.swap(None, Some(node), &topology(2));
    assert_eq!(changed, Err(SwapError::Changed), "the revision is looked at first");
    loop {
        match other.swap(Some(first), Some(node), &topology(2)) {
            Ok(revision) => break assert!(revision > first),
            Err(error) => assert_eq!(error, SwapError::Present),
        }
        assert!(boot_time() - begin < PATIENCE, "the lease does not end");
        thread::sleep(Duration::from_millis(5));
    }
    let lasted = boot_time() - begin;
    assert!(lasted >= SHORT, "{lasted:?}");
}

fn waiting_ends_with_a_change(fixture: &Fixture) {
    let (registry, other, node) = (fixture.open(), fixture.open(), NodeId::random());
    let mut seen = State::default();
    let mut revision = None;
    for round in 0..3 {
        let change = |seen: &State, change: &(dyn Fn() + Sync)| {
            thread::scope(|scope| {
                let waiting = scope.spawn(|| registry.wait(seen, PATIENCE));
                change();
                waiting.join().expect("it does not panic").expect("it answers")
            })
        };
        let swapped = change(&seen, &|| {
            other.swap(revision, None, &topology(round)).expect("nobody else swaps");
        });
        revision = swapped.topology.as_ref().map(|stored| stored.revision);
        assert!(swapped.is_news(&seen) && revision.is_some());
        let joined = change(&swapped, &|| {
            other.keep(node, &presence(1, 0), LONG).expect("nobody has it");
        });
        assert!(joined.nodes.contains_key(&node), "{joined:?}");
        let sealed = change(&joined, &|| {
            let presence = freeport_kv_cluster::Presence { term: 2, ..presence(1, 5) };
            other.keep(node, &presence, LONG).expect("it is its own");
        });
        assert_eq!((sealed.nodes[&node].term, sealed.nodes[&node].position), (2, 5));
        seen = change(&sealed, &|| other.leave(node, 1).expect("it answers"));
        assert!(seen.nodes.is_empty(), "{seen:?}");
    }
}

fn waiting_ends_with_the_end_of_a_lease(fixture: &Fixture) {
    let (registry, other, node) = (fixture.open(), fixture.open(), NodeId::random());
    let mut begin = boot_time();
    let mut seen = State::default();
    // On a loaded machine, the lease may have ended before it is looked at.
    wait_until("the lease is seen", || {
        begin = boot_time();
        let is_kept = registry.keep(node, &presence(1, 0), SHORT).is_ok();
        seen = other.read().expect("it answers");
        is_kept && seen.nodes.contains_key(&node)
    });
    let state = other.wait(&seen, PATIENCE).expect("it answers");
    assert!(state.nodes.is_empty(), "{state:?}");
    assert!(boot_time() - begin >= SHORT);
}

fn waiting_ends_with_its_time(fixture: &Fixture) {
    let (registry, other, node) = (fixture.open(), fixture.open(), NodeId::random());
    registry.keep(node, &presence(1, 0), LONG).expect("nobody has it");
    let seen = registry.read().expect("it answers");
    other.keep(node, &presence(1, 77), LONG).expect("it is the same session");
    let begin = boot_time();
    let state = registry.wait(&seen, Duration::from_millis(300)).expect("it answers");
    assert!(boot_time() - begin >= Duration::from_millis(300), "a position is no news");
    assert!(!state.is_news(&seen));
    assert_eq!(state.nodes[&node].position, 77, "but it is shown");
}

fn waiting_does_not_go_back(fixture: &Fixture) {
    let (registry, other) = (fixture.open(), fixture.open());
    let mut seen = State::default();
    for round in 0..40 {
        let revision = seen.topology.as_ref().map(|stored| stored.revision);
        let swapper = if round % 2 == 0 { &registry } else { &other };
        let revision = swapper.swap(revision, None, &topology(round)).expect("nobody else swaps");
        let earlier = if round % 2 == 0 { registry.read().expect("it answers") } else { seen };
        let state = registry.wait(&earlier, Duration::from_millis(20)).expect("it answers");
        let found = state.topology.as_ref().map(|stored| stored.revision);
        // A change by another caller may arrive after the time of the wait.
        assert!(found == Some(revision) || round % 2 == 1, "{found:?} {revision:?}");
        seen = registry.read().expect("it answers");
    }
}

fn one_of_many_wins_each_revision(fixture: &Fixture) {
    const THREADS: u64 = 8;
    const WINS: u64 = 60;
    let is_done = AtomicBool::new(false);
    let swap_often = || {
        let registry = fixture.open();
        let mut won = vec![];
        while !is_done.load(Ordering::Relaxed) {
            let stored = registry.read().expect("it answers").topology;
            let expected = stored.as_ref().map(|stored| stored.revision);
            let epoch = stored.map_or(0, |stored| stored.topology.epoch) + 1;
            match registry.swap(expected, None, &topology(epoch)) {
                Ok(revision) => won.push((expected, revision, epoch)),
                Err(error) => assert_eq!(error, SwapError::Changed),
            }
            is_done.fetch_or(epoch >= WINS, Ordering::Relaxed);
        }
        won
    };
    let mut history: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(swap_often)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    history.sort();
    let mut last = None;
    for (at, (expected, revision, epoch)) in history.iter().enumerate() {
        assert_eq!(*expected, last, "each swap follows the one before");
        assert_eq!(*epoch, at as u64 + 1, "each swap has seen the one before");
        last = Some(*revision);
    }
    assert!(history.len() as u64 >= WINS);
    let stored = fixture.open().read().expect("it answers").topology.expect("it was swapped");
    assert_eq!(Some(stored.revision), last);
}

fn one_of_many_sessions_is_the_node(fixture: &Fixture) {
    let node = NodeId::random();
    let begin = Barrier::new(8);
    let keep = |session| {
        let (registry, begin) = (fixture.open(), &begin);
        move || {
            begin.wait();
            registry.keep(node, &presence(session, 0), LONG)
        }
    };
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|session| scope.spawn(keep(session))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let winners: Vec<u64> = (0..8).filter(|session| results[*session as usize].is_ok()).collect();
    let losers = results.iter().filter(|result| **result == Err(RegistryError::Taken)).count();
    assert_eq!((winners.len(), losers), (1, 7), "{results:?}");
    let nodes = fixture.open().read().expect("it answers").nodes;
    assert_eq!(nodes, BTreeMap::from([(node, presence(winners[0], 0))]));
}
