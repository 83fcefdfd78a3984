// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections over reused streams (`FREEPORT_REUSE`): unmodified programs that connect for each
//! request, together with plain ones, and clients and servers that are killed at any moment.

use crate::harness::{Mode, Node, Program, find, free_port, is_long, wait_until};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Number of connections after which streams are reused.
pub const VARIABLE: &str = "FREEPORT_REUSE";
/// A request, and its answer.
pub const QUESTION_BYTES: usize = 40;
/// Limit against hangs.
const PATIENCE: Duration = Duration::from_secs(180);

pub fn reusing(mut command: Command, after: &str) -> Command {
    command.env(VARIABLE, after);
    command
}

pub fn reused(node: &Node) -> u64 {
    node.stats()["reused"].as_u64().expect("a number")
}

#[test]
fn a_connection_for_each_request_to_redis() {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let redis = find("redis-server").expect("redis-server is installed: scripts/install.sh");
    let mut command = reusing(node.command(Mode::Accelerated, &redis), "1");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    let _server = node.serve("redis-server", command, port);
    let benchmark = |mode, clients: &str| {
        let benchmark = find("redis-benchmark").expect("redis-benchmark is installed");
        let mut command = reusing(node.command(mode, &benchmark), "1");
        command.args(["-p", &port.to_string(), "-k", "0", "-n", "1000", "-c", clients]);
        command.args(["-t", "set,get,incr", "--csv"]);
        node.start("redis-benchmark", command)
    };
    let deadline = Instant::now() + PATIENCE;
    while reused(&node) == 0 {
        assert!(Instant::now() < deadline, "no stream is kept: {}", node.stats());
        let all = [(Mode::Accelerated, "1"), (Mode::Plain, "3"), (Mode::Accelerated, "8")];
        for program in all.map(|(mode, clients)| benchmark(mode, clients)) {
            let printed = program.finish();
            let tests = printed.lines().filter(|line| line.starts_with('"')).count() - 1;
            assert!(tests == 3 && !printed.contains("rror"), "{printed}");
        }
    }
}

fn role(node: &Node, mode: Mode, role: &str, port: u16) -> Program {
    let argument = format!("{port} {}", node.path().display());
    node.role_with(mode, role, &argument, &[(VARIABLE, "1")])
}

#[test]
fn whoever_is_killed_whenever_others_are_served() {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let rounds = if is_long() { 400 } else { 12 };
    let mut random = fastrand::Rng::with_seed(7);
    let mut server = role(&node, Mode::Accelerated, "reuse server", port);
    for round in 0..rounds {
        let clients = [0, 1].map(|_| role(&node, Mode::Accelerated, "reuse client", port));
        let before = reused(&node);
        // Sometimes before the first request, mostly within one.
        if round % 4 != 3 {
            wait_until("streams are kept", || reused(&node) > before);
        }
        thread::sleep(Duration::from_micros(random.u64(..50_000)));
        for client in clients {
            client.signal(libc::SIGKILL);
        }
        if round % 3 == 2 {
            server.signal(libc::SIGKILL);
            server.wait();
            server = role(&node, Mode::Accelerated, "reuse server", port);
        }
        for mode in [Mode::Accelerated, Mode::Plain] {
            role(&node, mode, "reuse visitor", port).finish();
        }
    }
    // It releases everything of clients that have exited, once it has checked.
    wait_until("nothing is open", || {
        role(&node, Mode::Plain, "reuse visitor", port).finish();
        sockets_of(server.pid()) == LISTENERS
    });
    server.signal(libc::SIGKILL);
    server.wait();
    wait_until("nothing is left", || {
        let stats = node.stats();
        stats["connections"] == 0 && stats["slabs"] == 0
    });
}

/// Number of TCP sockets of an idle server: its listener.
const LISTENERS: usize = 1;

/// Number of TCP sockets of a process; the one to the monitor is a Unix socket.
fn sockets_of(pid: i32) -> usize {
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("it runs");
    let inode = |line: &str| line.split_whitespace().nth(9).map(str::to_owned);
    let inodes: Vec<String> = table.lines().skip(1).filter_map(inode).collect();
    let folder = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let links = folder.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let is_tcp = |link: &std::path::PathBuf| {
        let link = link.to_string_lossy();
        let number = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        number.is_some_and(|number| inodes.iter().any(|inode| inode == number))
    };
    links.filter(is_tcp).count()
}

pub fn port_of(argument: &str) -> u16 {
    argument.split(' ').next().and_then(|port| port.parse().ok()).expect("a port")
}

/// Role: answers one client after the other, and ignores errors.
pub fn serve(argument: &str) {
    let address = (Ipv4Addr::LOCALHOST, port_of(argument));
    let deadline = Instant::now() + PATIENCE;
    let listener = loop {
        // Connections of the killed server may occupy the port for a moment.
        match TcpListener::bind(address) {
            Ok(listener) => break listener,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(1));
    };
    for stream in listener.incoming() {
        _ = stream.and_then(|stream| answer(&stream));
    }
}

fn answer(mut stream: &TcpStream) -> io::Result<()> {
    let mut question = [0; QUESTION_BYTES];
    stream.read_exact(&mut question)?;
    question.reverse();
    stream.write_all(&question)?;
    stream.read_exact(&mut [0])
}

pub fn ask(port: u16, number: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let mut question = [number as u8; QUESTION_BYTES];
    question[..8].copy_from_slice(&number.to_le_bytes());
    stream.write_all(&question)?;
    let mut answer = [0; QUESTION_BYTES];
    stream.read_exact(&mut answer)?;
    answer.reverse();
    assert_eq!(answer, question);
    Ok(())
}

/// Role: sends requests until it is killed.
pub fn ask_for_ever(argument: &str) {
    for number in 0.. {
        if ask(port_of(argument), number).is_err() {
            // The server does not listen yet.
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Role: sends some requests, all of which are answered as soon as the server listens.
pub fn visit(argument: &str) {
    let deadline = Instant::now() + PATIENCE;
    while ask(port_of(argument), 0).is_err() {
        assert!(Instant::now() < deadline, "nobody serves");
        thread::sleep(Duration::from_millis(1));
    }
    for number in 1..50 {
        ask(port_of(argument), number).expect("it is answered");
    }
}
