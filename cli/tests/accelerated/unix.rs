// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that listen on Unix sockets, and socket pairs.

use crate::harness::{Mode, Node, Program, find, find_or_skip};
use crate::redis::benchmark;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts a server, and waits until it accepts connections at a path.
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

fn ask_redis(node: &Node, mode: Mode, path: &Path, arguments: &[&str]) -> String {
    let program = find("redis-cli").expect("the tools of redis are installed");
    let mut command = node.command(mode, &program);
    command.arg("-s").arg(path).args(arguments);
    node.start("tool", command).finish()
}

#[test]
fn redis_passes_its_benchmark_on_a_path() {
    let (node, _monitor) = Node::new();
    let (_server, path) = redis(&node, Mode::Accelerated);
    let place = ["-s", path.to_str().expect("it is text")];
    for clients in [1, 20] {
        benchmark(&node, &place, clients, &[]);
    }
}

#[test]
fn the_tools_of_redis_find_what_they_have_put() {
    for modes in
        [[Mode::Accelerated; 2], [Mode::Accelerated, Mode::Plain], [Mode::Plain, Mode::Accelerated]]
    {
        let (node, _monitor) = Node::new();
        let (mut server, path) = redis(&node, modes[0]);
        let ask = |arguments: &[&str]| ask_redis(&node, modes[1], &path, arguments);
        // Many commands over one connection.
        let mut count = 0;
        let mut ask_often = || {
            count += 300;
            let expected = count.to_string();
            let printed = ask(&["-r", "300", "incr", "count"]);
            assert_eq!(printed.lines().last(), Some(&*expected));
            assert_eq!(ask(&["get", "count"]).trim(), expected);
        };
        if modes == [Mode::Accelerated; 2] {
            node.run_until_moved(1, 1, ask_often);
        } else {
            ask_often();
            assert_eq!(node.moved().connections, 0);
        }
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
    let Some(python) = find_or_skip("python3") else { return };
    let (node, _monitor) = Node::new();
    let program = node.write("talk.py", include_str!("programs/talk.py"));
    let ways = ["threads", "selectors", "asyncio", "poll", "select"];
    let both = [Mode::Accelerated; 2];
    let mixed = [[Mode::Plain, Mode::Accelerated], [Mode::Accelerated, Mode::Plain]];
    let all = ways.iter().map(|way| (*way, both)).chain(mixed.map(|modes| ("asyncio", modes)));
    for (number, (way, modes)) in all.enumerate() {
        let path = node.path().join(format!("{number}.sock"));
        let command = |mode, role, how| {
            let mut command = node.command(mode, &python);
            command.arg(&program).args([role, how]).arg(&path);
            command
        };
        let other = ways[(number + 1) % ways.len()];
        let _server = serve(&node, way, command(modes[0], "serve", way), &path);
        let ask = || {
            node.start(other, command(modes[1], "ask", other)).finish();
        };
        if modes == both {
            // Eight connections, each with data in both directions.
            node.run_until_moved(8, 16 << 20, ask);
        } else {
            let before = node.moved();
            ask();
            assert_eq!(node.moved().bytes, before.bytes);
        }
    }
}

#[test]
fn python_talks_to_its_children_over_pairs() {
    let Some(python) = find_or_skip("python3") else { return };
    let (node, _monitor) = Node::new();
    let program = node.write("pairs.py", include_str!("programs/pairs.py"));
    node.run_until_moved(4, 8 << 20, || {
        let mut command = node.command(Mode::Accelerated, &python);
        command.arg(&program);
        node.start("pairs", command).finish();
    });
}
