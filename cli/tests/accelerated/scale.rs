// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Thousands of connections of few processes: all are accelerated, no byte is changed, and no
//! resources remain.

use crate::harness::{Mode, Node, free_port, wait_until};
use crate::roles::is_accelerated;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Number of connections of the benchmark programs, which compare every byte.
const CONNECTIONS: u64 = 1_000;
/// Number of connections of two pairs, as in a short benchmark.
const PAIRS: u64 = 2;
const ALL_CONNECTIONS: u64 = 10_000;
const ALL_PAIRS: u64 = 10;
/// Limit for all of them on a loaded machine.
const LONGEST: Duration = Duration::from_secs(1_500);
/// Size of a message in bytes.
const MESSAGE: usize = 24;

/// Figures of the benchmark about many connections, by name.
fn measured(node: &Node, all: u64, arguments: &[&str]) -> impl Fn(&str) -> f64 + use<> {
    let case = ["bench", "sockets", "--case", "connections", "--json"];
    let mut bench = node.start("bench", node.freeport(&[&case, arguments].concat()));
    bench.wait_for(LONGEST);
    let reported = bench.finish();
    let lines = reported.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<Value> = lines.filter(|line| line["connections"] == all).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["note"].is_null()), "{reported}");
    move |metric| {
        let line = lines.iter().find(|line| line["metric"] == metric).expect("it is measured");
        line["value"].as_f64().expect("a number")
    }
}

#[test]
fn thousands_of_connections_leave_the_kernel() {
    let node = Node::without_monitor();
    let connections = CONNECTIONS.to_string();
    let of = measured(&node, PAIRS * CONNECTIONS, &["--quick", "--connections", &connections]);
    assert_eq!(of("accelerated"), (PAIRS * CONNECTIONS) as f64);
    assert!(of("messages") > 0.0);
}

#[test]
#[ignore = "long: a hundred thousand connections"]
fn a_hundred_thousand_connections_leave_the_kernel() {
    let node = Node::without_monitor();
    let connections = ALL_CONNECTIONS.to_string();
    let all = ALL_PAIRS * ALL_CONNECTIONS;
    let of = measured(&node, all, &["--rounds", "1", "--connections", &connections]);
    assert_eq!(of("accelerated"), all as f64);
}

#[test]
fn nothing_is_left_of_many_connections() {
    let (node, _monitor) = Node::new();
    let argument = free_port().to_string();
    let mut server = node.role(Mode::Accelerated, "crowd server", &argument);
    let client = node.role(Mode::Accelerated, "crowd client", &argument);
    client.finish();
    assert!(server.wait().success(), "{}", server.printed());
    node.assert_moved(CONNECTIONS, CONNECTIONS);
    wait_until("the slabs are given back", || node.stats()["slabs"] == 0);
    let stats = node.stats();
    assert_eq!((&stats["connections"], &stats["slab_bytes"]), (&0.into(), &0.into()), "{stats}");
}

/// Role: accepts all connections, and echoes over each in turn, until the end of file.
pub fn serve(argument: &str) {
    let port: u16 = argument.parse().expect("a port");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("it is free");
    let accept = |_| listener.accept().expect("somebody connects").0;
    let mut connections: Vec<TcpStream> = (0..CONNECTIONS).map(accept).collect();
    loop {
        for connection in &mut connections {
            let mut message = [0; MESSAGE];
            if connection.read(&mut message[..1]).expect("no reset") == 0 {
                return;
            }
            connection.read_exact(&mut message[1..]).expect("the rest comes");
            connection.write_all(&message).expect("somebody takes it");
        }
    }
}

/// Role: opens all connections, and sends different bytes over each in turn until all are
/// accelerated.
pub fn visit(argument: &str) {
    let port: u16 = argument.parse().expect("a port");
    let connect = |_| loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(stream) => return stream,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    };
    let mut connections: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
    let mut pass = 0_u64;
    wait_until("all have left the kernel", || {
        pass += 1;
        for (number, connection) in connections.iter_mut().enumerate() {
            let mut message = [number as u8; MESSAGE];
            message[..8].copy_from_slice(&pass.to_ne_bytes());
            message[8..16].copy_from_slice(&(number as u64).to_ne_bytes());
            connection.write_all(&message).expect("somebody takes it");
            let mut answer = [0; MESSAGE];
            connection.read_exact(&mut answer).expect("it comes back");
            assert!(answer == message, "connection {number}, pass {pass}");
        }
        connections.iter().all(is_accelerated)
    });
}
