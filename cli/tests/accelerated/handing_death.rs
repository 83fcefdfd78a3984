// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that are killed or stopped while a connection is passed on: no process hangs, and
//! received bytes are those that were sent.

use crate::handing::{Conversation, Ending};
use crate::harness::{Mode, Program, is_long, wait_until};
use freeport_testbed::process::all_sleep;
use std::thread;
use std::time::Duration;

/// The process that is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Giver,
    Peer,
}

/// A conversation in which the server passes the connection on at a command.
struct Gate {
    conversation: Conversation,
}

impl Gate {
    fn new() -> Option<Self> {
        Some(Self { conversation: Conversation::new()? })
    }

    /// Runs server and client up to the point where one of them passes the connection on.
    fn begin(&self, way: &str, how: &str) -> (Program, Program) {
        let modes = [Mode::Accelerated; 2];
        let arguments = [way, "leaves", "300000", "waits"];
        let (server, port) = self.conversation.serve(modes[0], "hand_on.py", &arguments);
        let mut client = self.conversation.ask(modes, &port, how, Ending::Broken);
        client.wait_until("it is about to be handed on", || self.exists("handing"));
        (server, client)
    }

    fn exists(&self, name: &str) -> bool {
        self.conversation.node.path().join(name).exists()
    }

    fn open(&self) {
        self.conversation.node.write("go", "");
    }
}

#[test]
fn who_hands_on_or_its_peer_can_be_killed_at_any_time() {
    let Some(gate) = Gate::new() else { return };
    let rounds = if is_long() { 50 } else { 1 };
    for way in ["exec", "worker", "inetd", "pass_fds"].repeat(rounds) {
        for victim in [Victim::Giver, Victim::Peer] {
            let how = fastrand::choice(["threads", "poll", "epoll"]).expect("one of three");
            let (mut server, mut client) = gate.begin(way, how);
            gate.open();
            // At a random moment.
            thread::sleep(Duration::from_micros(fastrand::u64(..3000)));
            if victim == Victim::Giver {
                if server.ended().is_none() {
                    server.signal(libc::SIGKILL);
                }
                // The receiver of the connection continues; if there is none, it ends.
                let reported = client.finish();
                assert!(
                    ["all came back\n", "the end\n"].contains(&&*reported),
                    "{way}, {how}: {reported}"
                );
            } else {
                if client.ended().is_none() {
                    client.signal(libc::SIGKILL);
                }
                client.wait();
                // It may report the end as an error.
                server.wait();
            }
        }
    }
}

#[test]
fn who_hands_on_may_be_gone_before_it_is_received() {
    let Some(gate) = Gate::new() else { return };
    for how in ["threads", "poll", "epoll"] {
        let (mut server, client) = gate.begin("worker of somebody who dies", how);
        gate.open();
        server.wait();
        assert_eq!(client.finish(), "all came back\n", "{how}");
    }
}

#[test]
fn receivers_can_die_before_and_behind_the_first_byte() {
    let Some(gate) = Gate::new() else { return };
    for way in ["worker that dies", "worker that dies soon"] {
        for how in ["threads", "epoll"] {
            let (server, client) = gate.begin(way, how);
            gate.open();
            assert_eq!(client.finish(), "the end\n", "{way}, {how}");
            server.finish();
        }
    }
}

#[test]
fn peers_that_are_stopped_lose_nothing() {
    let Some(gate) = Gate::new() else { return };
    for way in ["exec", "worker", "inetd"] {
        for how in ["threads", "epoll"] {
            let (mut server, client) = gate.begin(way, how);
            // A process stopped while it writes to shared memory cannot be waited for.
            wait_until("it sleeps", || all_sleep(client.pid()));
            client.signal(libc::SIGSTOP);
            gate.open();
            // It may wait for the stopped process, but not without limit.
            wait_until("it is handed on", || gate.exists("handed on") || server.ended().is_some());
            client.signal(libc::SIGCONT);
            assert_eq!(client.finish(), "all came back\n", "{way}, {how}");
            assert!(server.wait().success(), "{way}, {how}: {}", server.printed());
        }
    }
}
