// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets that members pass to others, and the members that may claim them afterwards.

use crate::harness::{self, Member, Running, connection, eventually, patient};
use freeport_monitor::{Departure, Event};
use freeport_sockets_proto::message::{Reply, Request};
use freeport_sockets_proto::{Reason, VERSION};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

const CLAIM: Request = Request::Claim { token: 2, descriptor: 8, inherited: false };
const INHERITED: Request = Request::Claim { token: 2, descriptor: 8, inherited: true };
const PASS: Request = Request::Pass { token: 9, alone: true, inherited: false };
const PART: Request = Request::Part { token: 9 };
/// Answered immediately, since it carries no socket.
const EMPTY: Request = Request::Claim { token: 77, descriptor: 0, inherited: false };

/// Waits until all earlier messages of a member are handled. Returns the refusal among the replies.
fn settle(member: &Member) -> Option<Reason> {
    member.say(&EMPTY);
    let mut reported = None;
    loop {
        match member.hear().reply {
            Reply::Refused { token: 77, .. } => return reported,
            Reply::Refused { reason, .. } => reported = Some(reason),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the reason if a claim is refused immediately; otherwise withdraws the claim.
fn refusal(member: &Member, claim: &Request, socket: &TcpStream) -> Option<Reason> {
    member.show(claim, socket.as_fd());
    let reported = settle(member);
    if reported.is_none() {
        member.say(&Request::Withdraw { token: 2 });
        assert_eq!(settle(member), Some(Reason::NotConnected));
    }
    reported
}

#[test]
fn what_was_passed_on_is_claimed_by_who_has_it_alone() {
    let running = Running::new(patient());
    let (passer, heir, third) = (running.member(), running.member(), running.member());
    let (socket, peer) = connection("127.0.0.1:0");
    let shared = Some(Reason::Shared);
    assert_eq!(refusal(&heir, &INHERITED, &socket), shared, "nobody has said anything of it");
    passer.show(&PASS, socket.as_fd());
    settle(&passer);
    for claim in [CLAIM, INHERITED] {
        assert_eq!(refusal(&passer, &claim, &socket), shared);
        assert_eq!(refusal(&heir, &claim, &socket), shared);
    }
    passer.say(&PART);
    settle(&passer);
    assert_eq!(refusal(&passer, &CLAIM, &socket), shared);
    assert_eq!(refusal(&heir, &INHERITED, &socket), None);
    assert_eq!(refusal(&third, &INHERITED, &socket), shared);
    heir.show(&INHERITED, socket.as_fd());
    third.claim(3, peer.as_fd());
    assert_eq!(heir.hear().place(), third.hear().place());
    let stats = running.control().stats().unwrap();
    let passed = serde_json::json!({"sockets": 1, "times": 1, "forgotten": 0});
    assert_eq!(stats["passed"], passed);
}

#[test]
fn a_claim_that_waits_is_refused_when_the_socket_is_passed_on() {
    let running = Running::new(patient());
    let passer = running.member();
    let (socket, _peer) = connection("127.0.0.1:0");
    passer.show(&CLAIM, socket.as_fd());
    passer.show(&PASS, socket.as_fd());
    assert_eq!(settle(&passer), Some(Reason::Shared));
}

#[test]
fn who_is_gone_leaves_it_to_the_heir_and_who_was_dropped_does_not() {
    let running = Running::new(patient());
    let heir = running.member();
    for is_dropped in [false, true] {
        let passer = running.member();
        let (socket, _peer) = connection("127.0.0.1:0");
        passer.show(&PASS, socket.as_fd());
        let pid = passer.pid;
        if is_dropped {
            passer.say(&Request::Hello { version: VERSION, membarrier: true });
            passer.hear_the_end();
        }
        drop(passer);
        if is_dropped {
            let why = Departure::Malformed;
            let is_it = |event: &Event| {
                matches!(event, Event::Dropped { pid: of, why: because, .. }
                if *of == pid && *because == why)
            };
            eventually("it is told", || running.events().iter().any(is_it));
            assert_eq!(refusal(&heir, &INHERITED, &socket), Some(Reason::Shared));
        } else {
            eventually("one is gone", || running.control().stats().unwrap()["members"] == 1);
            assert_eq!(refusal(&heir, &INHERITED, &socket), None);
        }
    }
}

/// A process cannot report anything about a socket that it cannot show.
#[test]
fn strangers_change_nothing() {
    let running = Running::new(patient());
    let (passer, heir, liar) = (running.member(), running.member(), running.member());
    let (socket, _peer) = connection("127.0.0.1:0");
    passer.show(&PASS, socket.as_fd());
    settle(&passer);
    liar.say(&PART);
    liar.say(&PASS);
    settle(&liar);
    assert_eq!(refusal(&heir, &INHERITED, &socket), Some(Reason::Shared), "it has not parted");
    passer.say(&PART);
    settle(&passer);
    liar.say(&PASS);
    liar.show(&PASS, liar.socket.as_fd());
    settle(&liar);
    assert_eq!(refusal(&heir, &INHERITED, &socket), None);
}

/// A process that executes another program has passed its sockets on, and hangs up immediately.
#[test]
fn what_was_said_before_hanging_up_is_taken() {
    let (socket, _peer) = connection("127.0.0.1:0");
    // Many messages are queued when it has already hung up, more than are read in one turn, and the
    // answers have no reader.
    let running = Running::after(|location| {
        let passer = Member::silent(location.path(), None);
        passer.say(&Request::Hello { version: VERSION, membarrier: true });
        (0..100).for_each(|_| passer.say(&EMPTY));
        passer.show(&PASS, socket.as_fd());
    });
    let heir = running.member();
    eventually("the pass is taken", || running.control().stats().unwrap()["passed"]["times"] == 1);
    eventually("it is gone", || running.control().stats().unwrap()["members"] == 1);
    assert_eq!(refusal(&heir, &INHERITED, &socket), None);
    // The same with unread answers.
    for times in 2..20 {
        let (socket, _peer) = connection("127.0.0.1:0");
        let passer = running.member();
        passer.say(&EMPTY);
        harness::await_readable(passer.socket.as_fd());
        (0..50).for_each(|_| passer.say(&Request::Part { token: 0 }));
        passer.show(&PASS, socket.as_fd());
        drop(passer);
        eventually("it is gone", || running.control().stats().unwrap()["members"] == 1);
        assert_eq!(running.control().stats().unwrap()["passed"]["times"], times);
        assert_eq!(refusal(&heir, &INHERITED, &socket), None);
    }
}

#[test]
fn who_says_much_of_no_use_is_dropped() {
    let running = Running::new(patient());
    let (socket, _peer) = connection("127.0.0.1:0");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for (request, shown) in [
        (PASS, None),
        (PART, None),
        (PASS, Some(listener.as_fd())),
        (PASS, Some(socket.as_fd())),
        (INHERITED, Some(socket.as_fd())),
    ] {
        let member = running.member();
        harness::send_until_it_fails(&member, &request.encode(), shown.as_slice());
        let is_it = |event: &Event| {
            matches!(event, Event::Dropped { pid, why, .. }
            if *pid == member.pid && *why != Departure::Malformed)
        };
        eventually("it is dropped", || running.events().iter().any(is_it));
    }
}
