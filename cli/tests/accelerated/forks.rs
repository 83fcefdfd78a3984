// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers that wait for clients with epoll and fork: operations of children on their copies do not
//! affect the parent, and neither does memory shared with clients that have exited. And no child,
//! of `fork` or `vfork`, waits for a lock that another thread of its parent holds.

use crate::harness::{Mode, Node, Program, find_or_skip, free_port, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Opens accelerated connections, with pauses in which the server sleeps; then sends each word over
/// the connection whose number precedes it, and prints the answers.
const CLIENT: &str = "import ctypes, socket, sys, time
is_past_kernel = ctypes.CDLL(None).freeport_is_accelerated
streams = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(2)]
def greet(stream):
    time.sleep(0.003)
    stream.sendall(b'hello')
    assert stream.recv(64) == b'hello'
for stream in streams * 40:
    greet(stream)
for stream in streams:
    while not is_past_kernel(stream.fileno()):
        greet(stream)
for word in sys.argv[2:]:
    stream = streams[int(word[0])]
    stream.settimeout(180)
    stream.sendall(word[1:].encode())
    print(stream.recv(64).decode())
";

/// In this order, since programs must end before the folder they write to is removed.
struct Forking {
    server: Program,
    _monitor: Program,
    node: Node,
    python: PathBuf,
    port: u16,
}

impl Forking {
    /// `None`: there is no Python; the test is skipped.
    fn begin() -> Option<Self> {
        let python = find_or_skip("python3")?;
        let (node, monitor) = Node::new();
        let port = free_port();
        let text = include_str!("programs/forking_server.py");
        let command = Self::script(&node, &python, node.write("server.py", text), port);
        let server = node.serve("server", command, port);
        Some(Self { server, _monitor: monitor, node, python, port })
    }

    fn script(node: &Node, python: &Path, script: PathBuf, port: u16) -> Command {
        let mut command = node.command(Mode::Accelerated, python);
        command.arg(script).arg(port.to_string());
        command
    }

    fn visit(&self, words: &[&str]) -> Program {
        let script = self.node.write("client.py", CLIENT);
        let mut command = Self::script(&self.node, &self.python, script, self.port);
        command.args(words);
        self.node.start("client", command)
    }

    /// Clients that all exit with this answer to this word; then their slots are released.
    fn have_left(&self, word: &str, answer: &str) {
        // Several clients, so that later ones do not take all of their slots.
        let first = [(); 4].map(|()| self.visit(&[word]));
        for client in first {
            assert_eq!(client.finish(), format!("{answer}\n"));
        }
        // With the next connection the server notices that those have exited.
        assert_eq!(self.visit(&["0once"]).finish(), "once\n");
        // Unused slabs are unmapped a second later, with the next connection that is accelerated.
        let before = self.slabs();
        wait_until("what nobody uses is taken away", || {
            assert_eq!(self.visit(&["0again"]).finish(), "again\n");
            // Later clients may have slots in some of them.
            !before.is_subset(&self.slabs())
        });
        self.node.assert_moved(6, 1);
    }

    /// Inodes of the slabs that the server has mapped.
    fn slabs(&self) -> BTreeSet<String> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.server.pid()));
        let maps = maps.expect("the server runs");
        let slabs = maps.lines().filter(|line| line.contains("/memfd:freeport-slab"));
        slabs.filter_map(|line| line.split_whitespace().nth(4)).map(str::to_owned).collect()
    }

    fn end(mut self) {
        assert!(self.server.ended().is_none(), "{}", self.server.printed());
        self.server.signal(libc::SIGTERM);
        assert!(self.server.wait().success(), "{}", self.server.printed());
    }
}

#[test]
fn a_server_forks_when_its_clients_have_left() {
    let Some(forking) = Forking::begin() else { return };
    forking.have_left("0bye", "bye");
    assert_eq!(forking.visit(&["0ends"]).finish(), "ended 0\n");
    forking.end();
}

#[test]
fn a_set_is_closed_whose_connections_children_had() {
    let Some(forking) = Forking::begin() else { return };
    forking.have_left("0leaves", "a child has it");
    assert_eq!(forking.visit(&["0begins anew", "1on"]).finish(), "another set\non\n");
    forking.end();
}

#[test]
fn children_that_close_all_keep_nothing_from_their_parent() {
    let Some(forking) = Forking::begin() else { return };
    let words = ["1closes", "0one", "1two", "0three"];
    let answers = "closed by a child\none\ntwo\nthree\n";
    let clients = [(); 2].map(|()| forking.visit(&words));
    for client in clients {
        assert_eq!(client.finish(), answers);
    }
    forking.end();
}

#[test]
fn killed_children_of_who_was_forked_before_it_had_a_socket_are_not_counted() {
    let Some(python) = find_or_skip("python3") else { return };
    let (node, _monitor) = Node::new();
    let script = node.write("killed.py", include_str!("programs/killed_children.py"));
    let mut command = node.command(Mode::Accelerated, &python);
    command.arg(script);
    assert_eq!(node.start("killed", command).finish(), "accelerated\n");
}

#[test]
fn children_wait_for_no_lock_of_the_loader() {
    let Some(compiler) = find_or_skip("cc") else { return };
    let (node, _monitor) = Node::new();
    node.write("guest.c", include_str!("programs/guest.c"));
    let library: &[&str] = &["-DSLOW", "-shared", "-fPIC", "-o", "slow.so"];
    for arguments in [library, &["-o", "guest", "-pthread"]] {
        let mut command = Command::new(&compiler);
        command.arg("guest.c").args(arguments).arg("-ldl").current_dir(node.path());
        let compiled = command.output().expect("it can be begun");
        let reported = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{arguments:?}: {reported}");
    }
    for mode in [Mode::Plain, Mode::Accelerated] {
        for arguments in [&["fork"][..], &[]] {
            let mut command = node.command(mode, &node.path().join("guest"));
            command.args(arguments);
            node.start("guest", command).finish();
        }
    }
}
