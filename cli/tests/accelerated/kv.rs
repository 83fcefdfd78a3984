// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Our own key-value server under `freeport exec`, with the clients that Redis has in these tests.

use crate::harness::{Mode, Node, Program, find_or_skip, free_port};
use crate::redis;
use std::path::Path;

fn server(node: &Node, port: u16, workers: &str) -> Program {
    let mut command = node.command(Mode::Accelerated, Path::new(env!("CARGO_BIN_EXE_freeport")));
    command.args(["kv", "serve", "--port", &port.to_string(), "--workers", workers]);
    node.serve("freeport-kv", command, port)
}

#[test]
fn every_answer_is_right() {
    for workers in ["1", "3"] {
        let (node, _monitor) = Node::new();
        let port = free_port();
        let _server = server(&node, port, workers);
        node.role(Mode::Accelerated, "kv client", &port.to_string()).finish();
        node.assert_moved(5, 10_000_000);
    }
}

#[test]
#[ignore = "long: needs redis-benchmark and redis-cli"]
fn programs_of_redis_leave_the_kernel() {
    let Some(cli) = find_or_skip("redis-cli") else { return };
    if find_or_skip("redis-benchmark").is_none() {
        return;
    }
    let (node, _monitor) = Node::new();
    let port = free_port();
    let _server = server(&node, port, "1");
    let port = port.to_string();
    redis::benchmark(&node, &["-p", &port], 20, &["-P", "16"]);
    let mut command = node.command(Mode::Accelerated, &cli);
    command.args(["-p", &port, "SET", "key", "value"]);
    assert_eq!(node.start("redis-cli", command).finish(), "OK\n");
}

/// Role: checks answers of all kinds, without those about files and other processes of Redis.
pub fn client(port: &str) {
    let port = port.parse().expect("a port");
    redis::values_come_back(port, 0);
    redis::transactions_are_whole(port);
    redis::messages_reach_subscribers(port);
    redis::blocking_pops_wait(port);
    redis::clients_can_be_killed(port);
}
