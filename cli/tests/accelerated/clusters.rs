// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Workers of Node, which receive connections from another process: those of a cluster, those that
//! are sent a connection within a conversation, and programs that have one as standard streams.

use crate::handing::{Conversation, Ending};
use crate::harness::{Mode, Node, Program, find_or_skip};
use std::path::Path;

const CLUSTER: &str = include_str!("programs/cluster.js");
/// Bytes that a client sends at a time, and whose echo it waits for.
const ROUND: u64 = 64;
/// A lower bound of the bytes that a conversation moves past the kernel if it ends there.
const BEHIND_HANDING: u64 = 100 * ROUND;

struct Server<'a> {
    node: &'a Node,
    program: &'a Path,
    kind: &'a str,
    policy: &'a str,
}

impl Server<'_> {
    fn start(&self, mode: Mode) -> Program {
        let mut command = self.node.command(mode, self.program);
        command.arg("cluster.js").arg(self.kind);
        command.env("NODE_CLUSTER_SCHED_POLICY", self.policy);
        self.node.start(self.kind, command)
    }
}

fn ask_all(kind: &str, policy: &str, ways: &[&str], ending: Ending) {
    let Some(program) = find_or_skip("node") else { return };
    let Some(conversation) = Conversation::new() else { return };
    let node = &conversation.node;
    node.write("cluster.js", CLUSTER);
    let server = Server { node, program: &program, kind, policy };
    for modes in [
        [Mode::Plain, Mode::Plain],
        [Mode::Accelerated, Mode::Accelerated],
        [Mode::Accelerated, Mode::Plain],
    ] {
        let (_server, port) = conversation.await_port(|| server.start(modes[0]));
        let before = node.moved();
        let ask = |way: &&str| conversation.ask(modes, &port, way, ending);
        let clients: Vec<_> = ways.iter().map(ask).collect();
        for client in clients {
            assert_eq!(client.finish(), "all came back\n", "{kind}, {modes:?}");
        }
        if modes != [Mode::Accelerated; 2] {
            assert_eq!(node.moved().bytes, before.bytes, "{kind}, {modes:?}");
        } else {
            // It is passed on in the round after which the client is accelerated.
            let least = if ending == Ending::Kernel { ROUND } else { BEHIND_HANDING };
            node.assert_moved(before.connections + ways.len() as u64, before.bytes + least);
        }
    }
}

const WAYS: [&str; 4] = ["threads", "epoll", "poll", "rounds"];

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn workers_that_accept_themselves_have_connections_past_the_kernel() {
    ask_all("cluster", "none", &WAYS, Ending::Past);
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn workers_that_are_given_connections_have_them_past_the_kernel() {
    ask_all("cluster", "rr", &WAYS, Ending::Past);
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn a_worker_goes_on_with_what_it_is_sent_in_the_middle() {
    ask_all("send", "rr", &["rounds"], Ending::Past);
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn a_program_goes_on_with_standard_streams() {
    ask_all("stdio", "rr", &["rounds"], Ending::Kernel);
}
