// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Servers and clients in languages with their own event loops: Python, JavaScript, Java.

use crate::harness::{Mode, Node, Program, find_or_skip, free_port};
use std::path::Path;

/// Folder of the programs of this test.
const PYTHON: &str = include_str!("programs/talk.py");
const JAVASCRIPT: &str = include_str!("programs/talk.js");
const JAVA: &str = include_str!("programs/Talk.java");

/// Starts a program as a server, waits for its port, and runs it as a client.
fn serve_and_ask(node: &Node, mode: [Mode; 2], program: &Path, before: &[&str], how: [&str; 2]) {
    let port = free_port().to_string();
    let [server_mode, client_mode] = mode;
    let start = |mode, role: &str, how: &str| -> Program {
        let mut command = node.command(mode, program);
        command.args(before).args([role, how, &port]);
        node.start(&format!("{role} {how}"), command)
    };
    let mut server = start(server_mode, "serve", how[0]);
    server.wait_until("it listens", || server_listens(&port));
    start(client_mode, "ask", how[1]).finish();
    server.signal(libc::SIGTERM);
    server.wait();
}

/// Whether a process listens on a port, without a connection that a server would count.
pub fn server_listens(port: &str) -> bool {
    let port: u16 = port.parse().expect("a port");
    let listening = format!(":{port:04X} 00000000:0000 0A");
    let listed = |path| std::fs::read_to_string(path).unwrap_or_default().to_uppercase();
    let ipv6 = format!(":{port:04X} 00000000000000000000000000000000:0000 0A");
    listed("/proc/net/tcp").contains(&listening) || listed("/proc/net/tcp6").contains(&ipv6)
}

#[test]
fn python_waits_in_all_its_ways() {
    let Some(python) = find_or_skip("python3") else { return };
    let (node, _monitor) = Node::new();
    let program = node.write("talk.py", PYTHON);
    let program = program.to_str().expect("it is text");
    let ways = ["threads", "selectors", "asyncio", "poll", "select"];
    for (number, way) in ways.into_iter().enumerate() {
        let other = ways[(number + 1) % ways.len()];
        // Eight connections, each with data in both directions.
        node.run_until_moved(8, 16 << 20, || {
            serve_and_ask(&node, [Mode::Accelerated; 2], &python, &[program], [way, other]);
        });
    }
    for mode in [[Mode::Plain, Mode::Accelerated], [Mode::Accelerated, Mode::Plain]] {
        let before = node.moved();
        serve_and_ask(&node, mode, &python, &[program], ["asyncio", "threads"]);
        assert_eq!(node.moved().bytes, before.bytes);
    }
}

#[test]
#[ignore = "long: one more program of docs/reference/applications.csv"]
fn node_serves_and_asks() {
    let Some(node_program) = find_or_skip("node") else { return };
    let (node, _monitor) = Node::new();
    let program = node.write("talk.js", JAVASCRIPT);
    let program = program.to_str().expect("it is text");
    node.run_until_moved(4, 8 << 20, || {
        serve_and_ask(&node, [Mode::Accelerated; 2], &node_program, &[program], ["http", "http"]);
    });
}

#[test]
fn java_serves_and_asks() {
    let (Some(java), Some(_)) = (find_or_skip("java"), find_or_skip("javac")) else { return };
    let (node, _monitor) = Node::new();
    let program = node.write("Talk.java", JAVA);
    // Started from its source: compiled in memory.
    let before = ["-Xmx256m", program.to_str().expect("it is text")];
    for how in ["sockets", "channels"] {
        node.run_until_moved(4, 4 << 20, || {
            serve_and_ask(&node, [Mode::Accelerated; 2], &java, &before, [how, "sockets"]);
        });
    }
}
