// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections over reused streams, of unmodified programs: nginx that closes after each answer,
//! curl, and Python on both sides. All answers are correct, also those to plain clients.

use crate::harness::{Mode, Node, PATIENCE, Program, content, find, find_or_skip, free_port};
use crate::nginx::{self, PLAIN, Settings};
use crate::reuse::{reused, reusing};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A server that answers each client once, with the reversed request.
const SERVER: &str = "import socket, sys
listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))
while True:
    stream, _ = listener.accept()
    with stream:
        stream.sendall(stream.recv(64)[::-1])
";

/// A client that connects for each request, and prints their number.
const CLIENT: &str = "import socket, sys
for number in range(100):
    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as stream:
        question = b'question %d' % number
        stream.sendall(question)
        answer = b''
        while part := stream.recv(64):
            answer += part
        assert answer[::-1] == question, (number, answer)
print('all', number + 1)
";

/// Both modes, so that each client that connects often runs beside a plain one.
const MODES: [Mode; 3] = [Mode::Accelerated, Mode::Plain, Mode::Accelerated];

#[test]
fn clients_and_a_server_in_python() {
    let Some(python) = find_or_skip("python3") else { return };
    let (node, _monitor) = Node::new();
    let port = free_port();
    let script = |mode, name: &str, text: &str| {
        let mut command = reusing(node.command(mode, &python), "1");
        command.arg(node.write(name, text)).arg(port.to_string());
        command
    };
    let command = script(Mode::Accelerated, "server.py", SERVER);
    let _server = node.serve("python server", command, port);
    let begun = Instant::now();
    while reused(&node) == 0 {
        // Reuse depends on timing, and on a slow machine a round takes half a minute.
        assert!(begun.elapsed() < 4 * PATIENCE, "no stream is kept: {}", node.stats());
        let clients = MODES.map(|mode| node.start("client", script(mode, "client.py", CLIENT)));
        for client in clients {
            assert_eq!(client.finish(), "all 100\n");
        }
    }
}

#[test]
fn nginx_that_closes_behind_each_answer() {
    let (node, _monitor) = Node::new();
    let settings = Settings { locations: "keepalive_timeout 0;", ..PLAIN };
    let (command, port) = nginx::configure(&node, "nginx", &settings);
    let _nginx = node.serve("nginx", reusing(command, "1"), port);
    let url = format!("http://127.0.0.1:{port}/65536");
    let clients = MODES.map(|mode| fetch(&node, mode, &url));
    for client in clients {
        client.finish();
    }
    for copy in copies(&node) {
        let is_right = std::fs::read(&copy).is_ok_and(|got| got == content(1, 65_536));
        assert!(is_right, "{}", copy.display());
    }
    with_wrk(&node, port);
}

/// curl, once for many files, each over a new connection.
fn fetch(node: &Node, mode: Mode, url: &str) -> Program {
    let curl = find("curl").expect("curl is installed: scripts/install.sh");
    let mut command: Command = reusing(node.command(mode, &curl), "1");
    command.args(["--silent", "--show-error", "--fail"]);
    for number in 0..COPIES {
        let name = format!("copy-{mode:?}-{number}-{}", fastrand::u32(..));
        command.arg(url).arg("--output").arg(node.path().join(name));
    }
    node.start("curl", command)
}

/// Number of files that each of them downloads.
const COPIES: usize = 100;

fn copies(node: &Node) -> Vec<PathBuf> {
    let is_copy = |path: &Path| {
        path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"copy-"))
    };
    let folder = std::fs::read_dir(node.path()).expect("it can be read");
    let paths = folder.map(|entry| entry.expect("it can be read").path());
    let copies: Vec<_> = paths.filter(|path| is_copy(path)).collect();
    assert_eq!(copies.len(), MODES.len() * COPIES);
    copies
}

fn with_wrk(node: &Node, port: u16) {
    let wrk = find("wrk").expect("wrk is installed: scripts/install.sh");
    let mut command = reusing(node.command(Mode::Accelerated, &wrk), "1");
    command.args(["-c", "8", "-t", "2", "-d", "2", &format!("http://127.0.0.1:{port}/4096")]);
    let printed = node.start("wrk", command).finish();
    assert!(printed.contains(" requests in ") && !printed.contains("Non-2xx"), "{printed}");
    assert!(!printed.contains("Socket errors"), "{printed}");
}
