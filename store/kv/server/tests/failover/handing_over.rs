// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLUSTER FAILOVER`: the primary hands over to a replica, while clients write.

use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_cluster::Registry;
use freeport_testbed::wait_until;

use super::{LONG, Trial};

/// Counts up a number until the node redirects the client. Returns the last result.
fn count_up(trial: &Trial, node: usize, is_over: &AtomicBool) -> u64 {
    let (mut client, mut last) = (trial.nodes[node].client(), 0);
    while !is_over.load(Ordering::Relaxed) {
        let reply = client.call("INCR number");
        match reply.strip_prefix("(integer) ") {
            Some(number) => last = number.parse().expect("a number"),
            None => {
                assert!(reply.contains("MOVED"), "{reply}");
                // Otherwise the next primary might send the client back.
                let (shard, state) = (trial.shard(), trial.registry.client().read());
                let state = state.expect("it is in memory");
                assert_eq!(state.nodes[&shard.primary].term, shard.term, "it leads");
                break;
            }
        }
    }
    last
}

#[test]
fn nothing_is_lost_by_a_planned_change() {
    let trial = Trial::new(3, LONG);
    for (old, new) in [(0, 1), (1, 2), (2, 0)] {
        wait_until("the replica is in step", || trial.is_in_step(new));
        let is_over = AtomicBool::new(false);
        let before = trial.nodes[old].client().call("GET number");
        let last = std::thread::scope(|scope| {
            let counting = scope.spawn(|| count_up(&trial, old, &is_over));
            wait_until("the client counts", || {
                trial.nodes[old].client().call("GET number") != before
            });
            wait_until("the replica leads", || {
                // The wish is forgotten if the primary has not seen it in time.
                trial.shard().primary == trial.nodes[new].id
                    || trial.nodes[new].client().call("CLUSTER FAILOVER") != "OK"
                    || trial.leads(new)
            });
            is_over.store(true, Ordering::Relaxed);
            counting.join().expect("the client counts")
        });
        wait_until("the replica leads", || trial.leads(new));
        let number = trial.nodes[new].client().call("GET number");
        assert_eq!(number, format!("\"{last}\""), "from node {old} to {new}");
        wait_until("the old primary follows", || trial.is_in_step(old));
    }
}

#[test]
fn a_primary_is_not_asked_to_lead() {
    let trial = Trial::new(1, LONG);
    let reply = trial.nodes[0].client().call("CLUSTER FAILOVER");
    assert_eq!(reply, "(error) ERR You should send CLUSTER FAILOVER to a replica");
}
