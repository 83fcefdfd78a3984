// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An election of nodes whose registry is a folder.

use std::sync::Arc;

use freeport_kv_cluster::{
    Address, Member, NodeId, Registry, Shard, ShardId, SlotSet, Topology, open,
};
use freeport_kv_server::{ClusterOptions, Options, PersistenceOptions, Server};
use freeport_testbed::wait_until;
use tempfile::TempDir;

use super::LONG;
use crate::client::{Client, server_with};

fn start(registry: &Arc<dyn Registry>, folder: &TempDir, id: NodeId) -> Server {
    std::fs::write(folder.path().join("node"), format!("{id}\n")).expect("a file");
    let address = Address { host: "127.0.0.1".into(), ..Address::default() };
    let cluster = ClusterOptions { registry: registry.clone(), address, timeout: LONG };
    let persistence = Some(PersistenceOptions::new(folder.path().into()));
    server_with(Options { workers: 2, persistence, cluster: Some(cluster), ..Default::default() })
}

#[test]
fn a_replica_takes_over() {
    let folders = [(); 3].map(|()| tempfile::tempdir().expect("a temporary folder"));
    let url = format!("file:{}", folders[2].path().join("registry").display());
    let registry = open(&url).expect("a registry");
    let ids = [NodeId::random(), NodeId::random()];
    let [old, new] = [0, 1].map(|node| start(&registry, &folders[node], ids[node]));
    let shard = Shard {
        id: ShardId::random(),
        slots: SlotSet::all(),
        primary: ids[0],
        term: 1,
        since: 0,
        members: ids.map(|id| Member { id, address: Address::default() }).into(),
    };
    let topology = Topology { epoch: 1, shards: vec![shard], moves: vec![] };
    registry.swap(None, None, &topology).expect("there is none yet");
    let mut client = Client::new(&old);
    wait_until("the first node leads", || client.call("SET key value") == "OK");
    wait_until("the replica has the key", || client.call("WAIT 1 100") == "(integer) 1");
    old.stopper().stop();
    old.join().expect("no worker fails");
    let mut client = Client::new(&new);
    wait_until("the replica leads", || client.call("SET other value") == "OK");
    assert_eq!(client.call("GET key"), "\"value\"");
    let state = registry.read().expect("a state");
    let shard = &state.topology.expect("there is one").topology.shards[0];
    assert_eq!((shard.primary, shard.since), (ids[1], shard.term));
}
