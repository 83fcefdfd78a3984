// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers with a process per connection: forked on demand, forked in advance, or another program
//! that inherited the listener.

use crate::handing::{Conversation, Ending};
use crate::harness::{Mode, wait_until};

const SERVERS: &str = include_str!("programs/servers.py");
const SNAPSHOTS: &str = include_str!("programs/snapshots.py");
/// Number of concurrent clients.
const CLIENTS: usize = 4;

fn ask_all(kind: &str) {
    let Some(conversation) = Conversation::new() else { return };
    let node = &conversation.node;
    node.write("servers.py", SERVERS);
    for (server_mode, client_mode) in [
        (Mode::Plain, Mode::Plain),
        (Mode::Accelerated, Mode::Accelerated),
        (Mode::Accelerated, Mode::Plain),
    ] {
        let before = node.moved();
        let modes = [server_mode, client_mode];
        let both = modes == [Mode::Accelerated; 2];
        let (_server, port) = conversation.serve(server_mode, "servers.py", &[kind]);
        let clients = ["threads", "poll", "epoll", "rounds"].into_iter().cycle().take(CLIENTS);
        let start = |how| conversation.ask(modes, &port, how, Ending::Past);
        let clients: Vec<_> = clients.map(start).collect();
        for client in clients {
            assert_eq!(client.finish(), "all came back\n", "{kind}");
        }
        if both {
            node.assert_moved(before.connections + CLIENTS as u64, before.bytes + (60 << 20));
        } else {
            assert_eq!(node.moved().bytes, before.bytes, "{kind}");
        }
    }
}

#[test]
fn a_child_for_each_connection_has_it_past_the_kernel() {
    ask_all("fork for each");
}

#[test]
fn children_that_share_a_listener_have_connections_past_the_kernel() {
    ask_all("fork before");
}

#[test]
fn who_inherits_a_listener_has_connections_past_the_kernel() {
    ask_all("inherit");
}

#[test]
fn what_only_a_child_still_has_is_given_back_when_it_ends() {
    let Some(conversation) = Conversation::new() else { return };
    let node = &conversation.node;
    node.write("snapshots.py", SNAPSHOTS);
    let modes = [Mode::Accelerated; 2];
    let (mut server, port) = conversation.serve(modes[0], "snapshots.py", &["snapshots"]);
    let mut asked = 0;
    let mut ask = || {
        let client = conversation.ask(modes, &port, "rounds", Ending::Any);
        assert_eq!(client.finish(), "all came back\n");
        asked += 1;
    };
    (0..3).for_each(|_| ask());
    server.wait_until("all were served", || node.path().join("served").exists());
    // The library releases such slots when it requests another one.
    wait_until("nothing is left of them", || {
        let is_empty = node.connections().is_empty();
        if !is_empty {
            ask();
        }
        is_empty
    });
    assert_eq!(node.stats()["ended"]["connections"], asked);
}
