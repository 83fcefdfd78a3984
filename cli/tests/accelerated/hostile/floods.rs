// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Members of another user that flood the monitor with one message: concurrently, others get slots,
//! servers answer, and after a flood no resources remain.
//!
//! Prints the longest time that a new connection waited for a slot, without and during each flood.
//! No time is asserted, since it depends on the load of the machine.

use super::attacker::{Attacker, Member};
use super::holding::{self, Holding};
use super::{Over, Place, Server, connect};
use crate::harness::Node;
use freeport_monitor::socket;
use freeport_sockets_proto::message::Request;
use freeport_sockets_proto::{Reason, VERSION};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of connections that get a slot during each flood.
const CONNECTIONS: usize = 5;
/// Minimum number of messages of a flood.
const MESSAGES: u64 = 500;

/// A flood: its name, the message, and the number of descriptors passed with it.
fn floods() -> Vec<(&'static str, Vec<u8>, usize)> {
    let claim = |token| Request::Claim { token, descriptor: 3, inherited: token > 1 };
    let pass = Request::Pass { token: 1, alone: true, inherited: false };
    let requests = [
        ("hello", Request::Hello { version: VERSION, membarrier: true }, 0),
        ("claims of what listens", claim(1), 1),
        ("claims of what was inherited", claim(2), 1),
        ("claims of nothing", claim(1), 0),
        ("claims of too much", claim(1), 4),
        ("passing", pass, 1),
        ("parting", Request::Part { token: 1 }, 0),
        ("keeping", Request::Keep { inode: 7, reason: Reason::Leaving }, 0),
        ("withdrawing", Request::Withdraw { token: 1 }, 0),
        ("forking", Request::Fork, 0),
        ("releasing", Request::Release { slab: 0, slot: 0 }, 0),
    ];
    let encoded =
        |(name, request, count): (_, Request, _)| (name, request.encode().to_vec(), count);
    let garbage = [("garbage", vec![0xff; 64], 0), ("garbage with descriptors", vec![0; 3], 4)];
    requests.map(encoded).into_iter().chain(garbage).collect()
}

#[test]
fn floods_of_each_kind_hold_up_nobody_and_leave_nothing() {
    let mut server = Server::new();
    let [place, _] = server.places();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    drop(Attacker::of_another_user(&server.node, connect(&place)));
    let before = Holding::settled(&server);
    println!("quiet: {:?}", longest_wait(&server.node, &place));
    for (name, message, count) in floods() {
        server.withstands(&place, |node| {
            let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
            let longest = thread::scope(|scope| {
                let flood =
                    || floods_with(node, &message, listener.as_fd(), count, &is_over, &sent);
                scope.spawn(flood);
                let over = Over(&is_over);
                let mut longest = Duration::ZERO;
                while longest.is_zero() || sent.load(Ordering::Relaxed) < MESSAGES {
                    longest = longest.max(longest_wait(node, &place));
                }
                drop(over);
                longest
            });
            println!("beside {name}, {} messages: {longest:?}", sent.into_inner());
        });
    }
    before.is_reached_again(&server);
}

/// The longest time that connections wait until both sides have a slot.
fn longest_wait(node: &Node, place: &Place) -> Duration {
    let waits = (0..CONNECTIONS).map(|_| {
        let (stream, begun) = (connect(place), Instant::now());
        let mut attacker = Attacker::new(node, stream);
        attacker.leave_kernel();
        begun.elapsed()
    });
    waits.max().unwrap_or_default()
}

/// Sends one message repeatedly, and registers again whenever it was dropped for that.
fn floods_with(
    node: &Node,
    message: &[u8],
    shown: BorrowedFd<'_>,
    count: usize,
    is_over: &AtomicBool,
    sent: &AtomicU64,
) {
    let shown = vec![shown; count];
    let mut member: Option<Member> = None;
    while !is_over.load(Ordering::Relaxed) {
        let flooding = member.get_or_insert_with(|| holding::member(node));
        match socket::send(flooding.descriptor(), message, &shown) {
            Ok(_) => _ = sent.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => thread::yield_now(),
            Err(_) => member = None,
        }
    }
}
