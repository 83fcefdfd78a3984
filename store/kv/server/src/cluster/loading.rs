// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Test of a node that takes a snapshot: it redirects clients of other nodes meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{Address, MemoryRegistry, NodeId, Registry};
use freeport_testbed::wait::wait_until;

use super::ClusterOptions;
use super::testing::{shard, topology};
use crate::options::{Bind, Options};
use crate::persistence::PersistenceOptions;
use crate::server::Server;

#[test]
fn a_node_that_loads_redirects_clients_of_other_nodes() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = MemoryRegistry::default();
    let elsewhere = topology(vec![shard("0-16383", &[NodeId::random()])]);
    registry.client().swap(None, None, &elsewhere).expect("the first");
    let address = Address { host: "127.0.0.1".into(), ..Address::default() };
    let timeout = Duration::from_secs(30);
    let cluster = ClusterOptions { registry: Arc::new(registry.client()), address, timeout };
    let server = Server::start(Options {
        resp: vec![Bind::Tcp("127.0.0.1:0".parse().expect("an address"))],
        workers: 1,
        persistence: Some(PersistenceOptions::new(folder.path().into())),
        cluster: Some(cluster),
        ..Options::default()
    });
    let server = server.expect("a free port");
    let stream = TcpStream::connect(server.addresses()[0]).expect("it listens");
    let mut client = BufReader::new(stream);
    let mut says = |request: &str, reply: &str| {
        writeln!(client.get_mut(), "{request}").expect("the server reads");
        let mut line = String::new();
        client.read_line(&mut line).expect("the server replies");
        line.starts_with(reply)
    };
    let moved = "-MOVED 12539 10.0.0.1:7000";
    wait_until("the node knows the slot map", || says("GET key", moved));
    wait_until("the node has a lease", || says("DBSIZE", ":0"));
    server.shared().replication.as_ref().expect("a node has it").set_loading();
    server.shared().has_changed();
    wait_until("the node loads", || says("DBSIZE", "-LOADING"));
    assert!(says("GET key", moved));
}
