// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of a cluster: it learns from `MOVED` which node has a slot.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use freeport_kv_protocol::resp::Value;
use freeport_kv_protocol::slots::slot_of;
use freeport_testbed::wait::PATIENCE;

use super::Fleet;
use crate::client::Client;
use crate::nodes::Node;
use crate::refusals::{Refusal, refusal};

/// Time until a command is sent again to a node that has refused it.
const PAUSE: Duration = Duration::from_millis(5);
/// A client of a cluster.
pub struct Router {
    nodes: Vec<SocketAddr>,
    clients: HashMap<SocketAddr, Client>,
    owners: HashMap<u16, SocketAddr>,
    /// Number of redirections until now.
    pub redirections: u64,
}

impl Router {
    /// A client that knows the addresses of all nodes.
    pub fn new(fleet: &Fleet) -> Self {
        let nodes = fleet.nodes.iter().map(Node::address).collect();
        Self { nodes, clients: HashMap::new(), owners: HashMap::new(), redirections: 0 }
    }

    /// Sends a command, whose first key decides where, until a node executes it.
    pub fn call(&mut self, key: &str, line: &str) -> Value {
        self.all(key, &[line]).pop().expect("a reply")
    }

    /// Executes commands as a transaction; returns their replies.
    pub fn transaction(&mut self, key: &str, lines: &[&str]) -> Vec<Value> {
        let all = [&["MULTI"], lines, &["EXEC"]].concat();
        match self.all(key, &all).pop() {
            Some(Value::Array(replies)) => replies,
            other => panic!("EXEC: {other:?}"),
        }
    }

    /// Sends commands until a node executes the last one.
    fn all(&mut self, key: &str, lines: &[&str]) -> Vec<Value> {
        let slot = slot_of(key.as_bytes());
        let begun = Instant::now();
        loop {
            let node = *self.owners.entry(slot).or_insert(self.nodes[0]);
            let client = self.clients.entry(node).or_insert_with(|| Client::connect(node));
            lines.iter().for_each(|line| client.send(line));
            let replies: Vec<Value> = lines.iter().map(|_| client.reply()).collect();
            let refusals: Vec<Refusal> = replies.iter().filter_map(refusal).collect();
            if refusals.is_empty() {
                return replies;
            }
            match refusals.iter().find_map(|refusal| refusal.place) {
                Some(address) => {
                    self.owners.insert(slot, address);
                    self.redirections += 1;
                }
                None => std::thread::sleep(PAUSE),
            }
            assert!(begun.elapsed() < PATIENCE, "nobody executes {lines:?}: {replies:?}");
        }
    }
}
