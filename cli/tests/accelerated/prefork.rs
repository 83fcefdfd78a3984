// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers with a process for each connection: forked for it, forked before, or another program
//! that inherited the listener.

use crate::handing::Conversation;
use crate::harness::Mode;

const SERVERS: &str = include_str!("programs/servers.py");
/// Clients at once.
const CLIENTS: usize = 4;

/// Whether the connections leave the kernel.
fn ask_all(kind: &str, leave: bool) {
    let Some(conversation) = Conversation::new() else { return };
    let node = &conversation.node;
    node.write("servers.py", SERVERS);
    for (server_mode, client_mode) in [
        (Mode::Plain, Mode::Plain),
        (Mode::Accelerated, Mode::Accelerated),
        (Mode::Accelerated, Mode::Plain),
    ] {
        let before = node.moved();
        let both = [server_mode, client_mode] == [Mode::Accelerated; 2];
        let (_server, port) = conversation.serve(server_mode, "servers.py", &[kind]);
        let how = if both && leave { ["leaves", "past"] } else { ["stays", "any"] };
        let clients = ["threads", "poll", "epoll", "rounds"].into_iter().cycle().take(CLIENTS);
        let start = |way| {
            conversation.start(client_mode, "numbered.py", &["ask", &port, way, how[0], how[1]])
        };
        let clients: Vec<_> = clients.map(start).collect();
        for client in clients {
            assert_eq!(client.finish(), "all came back\n", "{kind}");
        }
        if both && leave {
            node.assert_moved(before.connections + CLIENTS as u64, before.bytes + (60 << 20));
        } else if !both {
            assert_eq!(node.moved().bytes, before.bytes, "{kind}");
        }
    }
}

#[test]
fn a_child_for_each_connection_gives_all_back() {
    ask_all("fork for each", false);
}

#[test]
fn children_that_share_a_listener_have_connections_past_the_kernel() {
    ask_all("fork before", true);
}

#[test]
fn who_inherits_a_listener_has_connections_past_the_kernel() {
    ask_all("inherit", true);
}
