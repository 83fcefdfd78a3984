// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that are handed on to another process while they are busy: over a fork, over an
//! exec, as a standard stream, and over a Unix socket. Ten mebibytes of numbers go both ways.

use crate::harness::{Mode, Node, Program, find_or_say};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs of these tests, beside this file.
const NUMBERED: &str = include_str!("programs/numbered.py");
const HAND_ON: &str = include_str!("programs/hand_on.py");

/// Where the connection is at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// Past the kernel: it may come back in between, but leaves it again.
    Past,
}

/// The programs, and the interpreter that runs them.
pub struct Conversation {
    // It ends before its folder does.
    _monitor: Program,
    pub node: Node,
    python: PathBuf,
}

impl Conversation {
    /// `None`: there is no interpreter.
    pub fn new() -> Option<Self> {
        let python = find_or_say("python3")?;
        let (node, _monitor) = Node::new();
        node.write("numbered.py", NUMBERED);
        node.write("hand_on.py", HAND_ON);
        Some(Self { _monitor, node, python })
    }

    /// One of the programs, with arguments.
    pub fn start(&self, mode: Mode, program: &str, arguments: &[&str]) -> Program {
        let mut command: Command = self.node.command(mode, &self.python);
        // What it begins in turn, and what it compiles, is as it would be elsewhere.
        command.arg("-B").arg(program).args(arguments);
        self.node.start(arguments[0], command)
    }

    /// A server, and its port, which it says in a file.
    pub fn serve(&self, mode: Mode, program: &str, arguments: &[&str]) -> (Program, String) {
        let path = self.node.path().join("port");
        remove(&path);
        remove(&self.node.path().join("door"));
        let mut server = self.start(mode, program, arguments);
        server.wait_until("it listens", || path.exists());
        (server, fs::read_to_string(path).expect("it is there"))
    }

    /// Speaks with a server that hands its end on.
    fn hold(&self, modes: [Mode; 2], way: &str, how: &str, ending: Ending) {
        let leaves = modes == [Mode::Accelerated; 2];
        let leaving = if leaves { "leaves" } else { "stays" };
        let ending = match ending {
            _ if !leaves => "kernel",
            Ending::Past => "past",
        };
        // In the middle of what goes both ways, or when nothing is under way.
        let more = if how == "rounds" { "6400" } else { "300000" };
        let before = self.node.moved();
        let (mut server, port) = self.serve(modes[0], "hand_on.py", &[way, leaving, more]);
        let arguments = ["ask", &port, how, leaving, ending];
        let client = self.start(modes[1], "numbered.py", &arguments);
        assert_eq!(client.finish(), "all came back\n", "{way}, {how}, {modes:?}");
        assert!(server.wait().success(), "{way}, {how}, {modes:?}");
        let moved = self.node.moved();
        if leaves {
            self.node.assert_moved(before.connections + 1, before.bytes + 6400);
        } else {
            assert_eq!(moved.bytes, before.bytes, "{way}, {how}, {modes:?}");
        }
    }
}

fn remove(path: &Path) {
    if path.exists() {
        fs::remove_file(path).expect("it can be removed");
    }
}

/// The same conversation plain, accelerated and mixed.
fn hand_on_by(ways: &[&str], ending: Ending) {
    use Mode::{Accelerated, Plain};
    let Some(conversation) = Conversation::new() else { return };
    for (number, way) in ways.iter().enumerate() {
        conversation.hold([Plain; 2], way, "threads", ending);
        for how in ["threads", "rounds", ["poll", "epoll", "select"][number % 3]] {
            conversation.hold([Accelerated; 2], way, how, ending);
        }
        let mixed = if number % 2 == 0 { [Plain, Accelerated] } else { [Accelerated, Plain] };
        conversation.hold(mixed, way, "threads", ending);
    }
}

#[test]
fn a_child_goes_on_past_the_kernel() {
    hand_on_by(&["fork"], Ending::Past);
}

#[test]
fn programs_that_are_begun_beside_a_connection_leave_it_where_it_is() {
    hand_on_by(&["system without it"], Ending::Past);
}
