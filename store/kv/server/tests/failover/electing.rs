// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica becomes the primary when that has lost its lease.

use freeport_kv_cluster::Registry;
use freeport_kv_cluster::election::verdict;
use freeport_testbed::wait_until;

use super::{SHORT, Trial};

#[test]
fn a_replica_takes_over_and_the_old_primary_follows() {
    let trial = Trial::new(2, SHORT);
    let (old, new) = (&trial.nodes[0], &trial.nodes[1]);
    let mut client = old.client();
    for number in 0..100 {
        assert_eq!(client.call(&format!("SET key{number} {number}")), "OK");
    }
    assert_eq!(client.call("WAIT 1 0"), "(integer) 1");
    old.cut(true);
    wait_until("the replica leads", || trial.leads(1));
    assert!(old.says("GET key1", "CLUSTERDOWN"), "the old primary does not know it yet");
    let mut other = new.client();
    for number in 0..100 {
        assert_eq!(other.call(&format!("GET key{number}")), format!("\"{number}\""));
    }
    assert_eq!(other.call("SET key1 changed"), "OK");
    old.cut(false);
    wait_until("the old primary follows", || trial.is_in_step(0));
    let moved = format!("MOVED 9189 127.0.0.1:{}", new.address().port);
    wait_until("the old primary redirects clients", || old.says("GET key1", &moved));
    let mut reader = old.client();
    assert_eq!(reader.call("READONLY"), "OK");
    wait_until("the old primary has the change", || reader.call("GET key1") == "\"changed\"");
}

#[test]
fn the_replica_that_has_most_is_elected() {
    let trial = Trial::new(3, SHORT);
    let (old, all) = (&trial.nodes[0], [&trial.nodes[1], &trial.nodes[2]]);
    let mut client = old.client();
    let mut last = 0;
    // One of the replicas may lag behind by some of these.
    while last < 2_000 {
        last += 1;
        assert_eq!(client.call(&format!("SET number {last}")), "OK");
    }
    assert_ne!(client.call("WAIT 1 0"), "(integer) 0");
    old.cut(true);
    wait_until("a replica leads", || trial.leads(1) || trial.leads(2));
    let shard = trial.shard();
    let primary = all.into_iter().find(|node| node.id == shard.primary).expect("it is a replica");
    assert_eq!(primary.client().call("GET number"), format!("\"{last}\""));
    assert_eq!(shard.since, shard.term);
}

#[test]
fn a_node_that_was_never_in_step_is_not_elected() {
    let mut trial = Trial::new(2, SHORT);
    trial.nodes[1].stop();
    let folder = trial.nodes[1].folder.path();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name != "node") {
            std::fs::remove_file(path).expect("a file is removed");
        }
    }
    // The primary ends before the replica starts without its data.
    trial.nodes[0].stop();
    trial.nodes[1].start();
    let sealed = |trial: &Trial| {
        let state = trial.registry.client().read().expect("a state");
        let presence = state.nodes.get(&trial.nodes[1].id);
        presence.is_some_and(|presence| presence.sealed == Some(trial.shard().term))
    };
    wait_until("the replica has sealed the term", || sealed(&trial));
    let shard = trial.shard();
    let state = trial.registry.client().read().expect("a state");
    let verdict = verdict(&shard, &state.nodes);
    assert!(verdict.to_string().contains("no node that is present has all data"), "{verdict}");
    assert_eq!(shard.primary, trial.nodes[0].id);
    trial.nodes[0].start();
    wait_until("the primary leads", || trial.leads(0));
}
