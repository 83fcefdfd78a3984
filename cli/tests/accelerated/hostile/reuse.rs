// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers that connect over reused streams, and concurrently write any values into the words by
//! which two connections over one stream are separated. They use the library, so that streams are
//! reused. Their own connections may fail; other clients are served.

use super::Server;
use crate::harness::{Mode, Node, Program, find, free_port, is_long, wait_until};
use crate::reuse::{QUESTION_BYTES, VARIABLE, ask, port_of, reused, reusing};
use fastrand::Rng;
use freeport_sockets_proto::slab::{self, SLOTS, Side, flag, rest, word};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Number of connections of each of them.
const CONNECTIONS: u64 = 100;
/// File that marks a write into a slot whose stream was to be reused.
const SPOILED: &str = "spoiled";
/// How long to wait for a peer that may be hostile.
const WARY: Duration = Duration::from_millis(20);

fn rounds() -> u64 {
    if is_long() { 200 } else { 6 }
}

fn role(node: &Node, role: &str, argument: &str) -> Program {
    node.role_with(Mode::Accelerated, role, argument, &[(VARIABLE, "1")])
}

/// Runs an action for each seed, and for more seeds until it has had an effect.
fn each_round(node: &Node, mut round: impl FnMut(u64)) {
    (0..rounds()).for_each(&mut round);
    let mut seeds = rounds()..;
    wait_until("somebody has kept a stream to spoil", || {
        let has_spoiled = node.path().join(SPOILED).exists();
        if !has_spoiled {
            seeds.next().into_iter().for_each(&mut round);
        }
        has_spoiled
    });
}

/// Runs a hostile client until it has connected often, or has broken its own streams.
fn spoil_from(node: &Node, port: u16, seed: u64) {
    let mut vandal = role(node, "reuse vandal", &format!("{port} {seed}"));
    let enough = node.path().join(enough(vandal.pid()));
    wait_until("it connects", || enough.exists() || vandal.ended().is_some());
}

/// File that a hostile client creates once it has connected often enough.
fn enough(pid: i32) -> String {
    format!("enough-{pid}")
}

#[test]
fn clients_that_write_between_connections_spoil_no_server() {
    let mut server = Server::begin(|command| reusing(command, "1"));
    let port = server.port;
    let [place, _] = server.places();
    server.withstands(&place, |node| {
        each_round(node, |seed| {
            spoil_from(node, port, seed);
            visit_with_benchmark(node, port);
        });
    });
    assert!(reused(&server.node) > 0, "{}", server.node.stats());
}

#[test]
fn clients_that_write_between_connections_hold_up_no_server_that_blocks() {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let mut server = role(&node, "reuse server", &format!("{port} here"));
    each_round(&node, |seed| {
        spoil_from(&node, port, seed);
        role(&node, "reuse visitor", &format!("{port} here")).finish();
        assert_eq!(server.ended(), None, "{}", server.printed());
    });
}

#[test]
fn servers_that_write_between_connections_hold_up_no_client() {
    let (node, _monitor) = Node::new();
    let honest = free_port();
    let _server = role(&node, "reuse server", &format!("{honest} here"));
    // It listens from here on.
    role(&node, "reuse visitor", &format!("{honest} here")).finish();
    each_round(&node, |seed| {
        let port = free_port();
        let vandal = role(&node, "reuse vandal server", &format!("{port} {seed}"));
        // It ends by itself, regardless of the hostile peer.
        role(&node, "reuse wary client", &format!("{port} {honest}")).finish();
        drop(vandal);
    });
}

fn visit_with_benchmark(node: &Node, port: u16) {
    let benchmark = find("redis-benchmark").expect("redis-benchmark is installed");
    let mut command = reusing(node.command(Mode::Accelerated, &benchmark), "1");
    command.args(["-p", &port.to_string(), "-k", "0", "-n", "200", "-c", "4", "-t", "set,get"]);
    let printed = node.start("redis-benchmark", command).finish();
    assert!(!printed.contains("rror"), "{printed}");
}

/// Role: a client that is hostile, until it is killed.
pub fn vandal(argument: &str) {
    let port = begins_to_spoil(argument);
    let mut connections = 0;
    loop {
        let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
        connections += 1;
        if connections == CONNECTIONS {
            let pid = std::process::id().try_into().expect("a process");
            fs::write(enough(pid), "").expect("it can be written");
        }
        let stream = Wary(stream);
        // Both servers answer that.
        stream.exchange(&[&b"PING\r\n"[..]; 7].concat()[..QUESTION_BYTES]);
    }
}

/// Role: a server that is hostile, until it is killed.
pub fn vandal_server(argument: &str) {
    let port = begins_to_spoil(argument);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
    for stream in listener.incoming().flatten() {
        Wary(stream).exchange(b"what may this be");
    }
}

/// Role: a client of a hostile server and of an honest one, which must answer every request.
pub fn wary_client(argument: &str) {
    let (port, honest) = (port_of(argument), argument.split(' ').nth(1));
    let honest = honest.and_then(|port| port.parse().ok()).expect("another port");
    let hostile = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    for number in 0..CONNECTIONS {
        if let Ok(stream) = TcpStream::connect_timeout(&hostile, WARY) {
            Wary(stream).exchange(b"what may that be");
        }
        ask(honest, number).expect("it is answered");
    }
}

/// A connection to a server that may not answer.
struct Wary(TcpStream);

impl Wary {
    /// Sends a request, and reads the answer if there is one.
    fn exchange(mut self, question: &[u8]) {
        _ = self.0.set_nonblocking(true);
        _ = self.0.write(question);
        let mut wanted = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one structure of the size that is passed.
        unsafe { libc::poll(&raw mut wanted, 1, WARY.as_millis() as i32) };
        _ = self.0.read(&mut [0; 4096]);
    }
}

/// Starts a thread that writes concurrently with the caller. Returns the port.
fn begins_to_spoil(argument: &str) -> u16 {
    let seed = argument.split(' ').nth(1).and_then(|seed| seed.parse().ok()).expect("a seed");
    thread::spawn(move || {
        let mut rng = Rng::with_seed(seed);
        loop {
            // It follows the protocol for a while, so that streams are reused.
            thread::sleep(Duration::from_millis(rng.u64(..60)));
            for _ in 0..rng.u32(1..50) {
                slabs().into_iter().for_each(|slab| spoil(slab, &mut rng));
                thread::sleep(Duration::from_micros(rng.u64(..200)));
            }
        }
    });
    port_of(argument)
}

/// Addresses of the slabs of this process.
fn slabs() -> Vec<usize> {
    let maps = fs::read_to_string("/proc/self/maps").expect("it can be read");
    let slabs = maps.lines().filter(|line| line.contains("/memfd:freeport-slab"));
    let begin = |line: &str| usize::from_str_radix(line.split('-').next()?, 16).ok();
    slabs.filter_map(begin).collect()
}

/// Writes into each slot whose stream is reused, or is about to be.
fn spoil(slab: usize, rng: &mut Rng) {
    let at = |slot: u32, side: Side, word: usize| {
        let at = slab + slab::page(slot).expect("there is such a slot") + slab::state(side) + word;
        // SAFETY: inside a slab that was mapped. If it has been unmapped, this hostile process may
        // crash.
        unsafe { AtomicU64::from_ptr(at as *mut u64) }
    };
    for slot in 0..SLOTS {
        let said = [Side::First, Side::Second].map(|side| at(slot, side, word::FLAGS).load(SeqCst));
        if (said[0] | said[1]) & flag::REUSES == 0 {
            continue;
        }
        let side = if rng.bool() { Side::First } else { Side::Second };
        let value = [rng.u64(..9), rng.u64(..), u64::MAX - rng.u64(..3)][rng.usize(..3)];
        match rng.u32(..10) {
            0..6 => at(slot, Side::First, word::REST).store(rng.u64(..=rest::LEFT + 1), SeqCst),
            6 => at(slot, Side::First, word::REST).store(value, SeqCst),
            7 => at(slot, Side::First, word::OPENED_AT).store(value, SeqCst),
            8 => _ = at(slot, side, word::FLAGS).fetch_xor(1 << rng.u32(..17), SeqCst),
            _ => {
                let words = [word::DESCRIPTOR, word::WRITING, word::SENT_BYTES];
                at(slot, side, words[rng.usize(..3)]).store(value, SeqCst);
            }
        }
        if !Path::new(SPOILED).exists() {
            _ = fs::write(SPOILED, "");
        }
    }
}
