// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that serve on a path instead of a port, and pairs of sockets.

use crate::harness::{Mode, Node, Program, find, find_or_say};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Begins a server, and waits until somebody answers at a path.
fn serve(node: &Node, name: &str, command: Command, path: &Path) -> Program {
    let mut server = node.start(name, command);
    server.wait_until("it answers", || UnixStream::connect(path).is_ok());
    server
}

fn redis(node: &Node, mode: Mode) -> (Program, PathBuf) {
    let path = node.path().join("redis.sock");
    let server = find("redis-server").expect("redis-server is installed: scripts/install.sh");
    let mut command = node.command(mode, &server);
    command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&path);
    command.arg("--dir").arg(node.path());
    (serve(node, "redis-server", command, &path), path)
}

fn ask_redis(node: &Node, mode: Mode, path: &Path, program: &str, arguments: &[&str]) -> String {
    let program = find(program).expect("the tools of redis are installed");
    let mut command = node.command(mode, &program);
    command.arg("-s").arg(path).args(arguments);
    node.start("tool", command).finish()
}

#[test]
fn redis_passes_its_benchmark_on_a_path() {
    let (node, _monitor) = Node::new();
    let (_server, path) = redis(&node, Mode::Accelerated);
    for (clients, connections) in [("1", 1), ("20", 20)] {
        let before = node.moved();
        let arguments = ["-c", clients, "-n", "2000", "--csv"];
        let printed = ask_redis(&node, Mode::Accelerated, &path, "redis-benchmark", &arguments);
        let tests = printed.lines().filter(|line| line.starts_with('"')).count() - 1;
        assert!(tests >= 18, "{tests} tests:\n{printed}");
        assert!(!printed.contains("Error"), "{printed}");
        node.assert_moved(before.connections + connections * 18, before.bytes + 20_000_000);
    }
}

#[test]
fn the_tools_of_redis_find_what_they_have_put() {
    for modes in
        [[Mode::Accelerated; 2], [Mode::Accelerated, Mode::Plain], [Mode::Plain, Mode::Accelerated]]
    {
        let (node, _monitor) = Node::new();
        let (mut server, path) = redis(&node, modes[0]);
        let ask = |arguments: &[&str]| ask_redis(&node, modes[1], &path, "redis-cli", arguments);
        // Many commands over one connection.
        assert_eq!(ask(&["-r", "300", "incr", "count"]).lines().last(), Some("300"));
        assert_eq!(ask(&["get", "count"]).trim(), "300");
        let is_accelerated = modes == [Mode::Accelerated; 2];
        assert_eq!(node.moved().connections, u64::from(is_accelerated));
        ask(&["shutdown", "nosave"]);
        assert!(server.wait().success());
    }
}

#[test]
fn memcached_serves_fifty_clients_on_a_path() {
    let (node, _monitor) = Node::new();
    let path = node.path().join("memcached.sock");
    let memcached = find("memcached").expect("memcached is installed: scripts/install.sh");
    let mut command = node.command(Mode::Accelerated, &memcached);
    command.args(["-u", "root", "-t", "4", "-I", "2m", "-s"]).arg(&path);
    let mut server = serve(&node, "memcached", command, &path);
    let argument = path.to_str().expect("it is text");
    node.role(Mode::Accelerated, "memcached unix client", argument).finish();
    node.assert_moved(50, 10 << 20);
    server.signal(libc::SIGTERM);
    server.wait();
}

#[test]
fn python_waits_in_all_its_ways_on_paths() {
    let Some(python) = find_or_say("python3") else { return };
    let (node, _monitor) = Node::new();
    let program = node.write("talk.py", include_str!("programs/talk.py"));
    let ways = ["threads", "selectors", "asyncio", "poll", "select"];
    let both = [Mode::Accelerated; 2];
    let mixed = [[Mode::Plain, Mode::Accelerated], [Mode::Accelerated, Mode::Plain]];
    let all = ways.iter().map(|way| (*way, both)).chain(mixed.map(|modes| ("asyncio", modes)));
    for (number, (way, modes)) in all.enumerate() {
        let before = node.moved();
        let path = node.path().join(format!("{number}.sock"));
        let command = |mode, role, how| {
            let mut command = node.command(mode, &python);
            command.arg(&program).args([role, how]).arg(&path);
            command
        };
        let other = ways[(number + 1) % ways.len()];
        let _server = serve(&node, way, command(modes[0], "serve", way), &path);
        node.start(other, command(modes[1], "ask", other)).finish();
        if modes == both {
            // Eight connections, each with what it says in both directions.
            node.assert_moved(before.connections + 8, before.bytes + (16 << 20));
        } else {
            assert_eq!(node.moved().bytes, before.bytes);
        }
    }
}

#[test]
fn python_talks_to_its_children_over_pairs() {
    let Some(python) = find_or_say("python3") else { return };
    let (node, _monitor) = Node::new();
    let program = node.write("pairs.py", include_str!("programs/pairs.py"));
    let mut command = node.command(Mode::Accelerated, &python);
    command.arg(program);
    node.start("pairs", command).finish();
    node.assert_moved(4, 8 << 20);
}
