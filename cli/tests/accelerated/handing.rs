// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that are passed to another process while they are busy: by fork, by exec, as a
//! standard stream, and over a Unix socket. Ten mebibytes of numbers are sent in both directions.

use crate::harness::{Mode, Node, Program, find_or_skip, wait_until};
use freeport_testbed::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the programs of these tests.
const NUMBERED: &str = include_str!("programs/numbered.py");
const HAND_ON: &str = include_str!("programs/hand_on.py");
const GIVE_BACK: &str = include_str!("programs/give_back.c");

/// Where the connection is at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Accelerated all the time.
    There,
    /// Accelerated; it may return to the kernel in between.
    Past,
    /// In the kernel.
    Kernel,
    /// Either: it is accelerated once, and may return to the kernel.
    Any,
    /// It may come before its time.
    Broken,
}

/// The programs, and the interpreter that runs them.
pub struct Conversation {
    // Programs end before their folder is removed.
    _monitor: Program,
    pub node: Node,
    python: PathBuf,
}

impl Conversation {
    /// `None`: there is no interpreter.
    pub fn new() -> Option<Self> {
        // The program on the path may be a script that starts the interpreter.
        let mut command = Command::new(find_or_skip("python3")?);
        let reported = command.args(["-c", "import sys; print(sys.executable)"]).output();
        let reported = reported.expect("it can be begun").stdout;
        let python = PathBuf::from(String::from_utf8(reported).expect("a path").trim());
        let (node, _monitor) = Node::new();
        node.write("numbered.py", NUMBERED);
        node.write("hand_on.py", HAND_ON);
        Some(Self { _monitor, node, python })
    }

    /// One of the programs, with arguments.
    pub fn start(&self, mode: Mode, program: &str, arguments: &[&str]) -> Program {
        let mut command: Command = self.node.command(mode, &self.python);
        // Programs that it starts, and files that it compiles, are as usual.
        command.arg("-B").arg(program).args(arguments);
        self.node.start(arguments[0], command)
    }

    /// A server, and its port.
    pub fn serve(&self, mode: Mode, program: &str, arguments: &[&str]) -> (Program, String) {
        self.await_port(|| self.start(mode, program, arguments))
    }

    /// The same for other programs that write their port to a file.
    pub fn await_port(&self, start: impl FnOnce() -> Program) -> (Program, String) {
        let path = self.node.path().join("port");
        for name in ["port", "door", "left", "handing", "handed on", "go"] {
            remove(&self.node.path().join(name));
        }
        let mut server = start();
        server.wait_until("it listens", || path.exists());
        (server, fs::read_to_string(path).expect("it is there"))
    }

    /// A client of such a server.
    pub fn ask(&self, modes: [Mode; 2], port: &str, how: &str, ending: Ending) -> Program {
        let leaves = modes == [Mode::Accelerated; 2];
        let ending = match ending {
            Ending::Broken => "broken",
            _ if !leaves => "any",
            Ending::There | Ending::Past => "past",
            Ending::Kernel => "kernel",
            Ending::Any => "any",
        };
        let leaving = if leaves { "leaves" } else { "stays" };
        self.start(modes[1], "numbered.py", &["ask", port, how, leaving, ending])
    }

    /// Talks to a server that passes its end on.
    fn hold(&self, modes: [Mode; 2], way: &str, how: &str, ending: Ending) {
        let leaving = if modes == [Mode::Accelerated; 2] { "leaves" } else { "stays" };
        // While data flows in both directions, or when none is in flight.
        let more = if how == "rounds" { "6400" } else { "300000" };
        let (before, returned) = (self.node.moved(), self.node.returned());
        let (mut server, port) = self.serve(modes[0], "hand_on.py", &[way, leaving, more]);
        let client = self.ask(modes, &port, how, ending);
        assert_eq!(client.finish(), "all came back\n", "{way}, {how}, {modes:?}");
        assert!(server.wait().success(), "{way}, {how}, {modes:?}: {}", server.printed());
        if leaving == "leaves" {
            self.node.assert_moved(before.connections + 1, before.bytes + 6400);
            let comes_back = u64::from(ending != Ending::There);
            wait_until("it is known whether it came back", || {
                self.node.returned() >= returned + comes_back
            });
            let is_as_expected = ending != Ending::There || self.node.returned() == returned;
            assert!(is_as_expected, "{way}, {how}: it came back");
        } else {
            // A lower bound: the last bytes of earlier conversations may be counted late.
            let moved = self.node.moved();
            assert!(moved.bytes < before.bytes + 6400, "{way}, {how}, {modes:?}: {moved:?}");
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
    let Some(conversation) = Conversation::new() else { return };
    hand_on_by_with(&conversation, ways, ending);
}

fn hand_on_by_with(conversation: &Conversation, ways: &[&str], ending: Ending) {
    use Mode::{Accelerated, Plain};
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
    hand_on_by(&["fork"], Ending::There);
}

#[test]
fn another_program_goes_on_with_it() {
    hand_on_by(&["exec", "exec of a copy"], Ending::Past);
    hand_on_by(&["pass_fds"], Ending::Any);
}

#[test]
fn programs_go_on_with_it_as_their_standard_streams() {
    hand_on_by(&["stdin", "stdin of python", "posix_spawn", "inetd"], Ending::Kernel);
}

#[test]
fn programs_without_the_library_go_on_with_it() {
    let Some(conversation) = Conversation::new() else { return };
    hand_on_by_with(&conversation, &["inetd without the library"], Ending::Kernel);
    let folder = conversation.node.path();
    conversation.node.write("give_back.c", GIVE_BACK);
    let compiled = Command::new("cc")
        .args(["-static", "-o", "give_back", "give_back.c"])
        .current_dir(folder)
        .output();
    if compiled.is_ok_and(|it| it.status.success()) {
        hand_on_by_with(&conversation, &["inetd of a static program"], Ending::Kernel);
    } else {
        skip("nothing can be linked statically");
    }
}

#[test]
fn programs_that_are_begun_beside_a_connection_leave_it_where_it_is() {
    hand_on_by(&["system without it"], Ending::There);
}

#[test]
fn programs_that_have_it_and_say_nothing_disturb_nobody() {
    hand_on_by(&["system with it"], Ending::Kernel);
}

#[test]
fn workers_that_are_sent_it_go_on() {
    hand_on_by(&["worker", "stranger"], Ending::Past);
}

#[test]
fn it_goes_back_and_forth() {
    let Some(conversation) = Conversation::new() else { return };
    for modes in [[Mode::Plain; 2], [Mode::Accelerated; 2]] {
        // The process that passes it on has read everything that arrived before the upgrade.
        conversation.hold(modes, "back and forth", "rounds", Ending::Any);
    }
}

#[test]
fn multiprocessing_sends_it_in_both_of_its_ways() {
    hand_on_by(&["send_handle", "pickled"], Ending::Any);
}
