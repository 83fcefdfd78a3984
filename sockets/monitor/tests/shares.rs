// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits on one user's share of the monitor's resources: other users are not affected.

use crate::harness::{Member, Running, connection, eventually, is_root, patient};
use freeport_monitor::Options;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::message::Reply;
use freeport_testbed::skip;
use std::net::TcpStream;
use std::os::fd::AsFd;

/// Arbitrary users, which need not exist.
const GREEDY: u32 = 54_321;
const OTHER: u32 = 54_322;

/// Claims both ends of a new connection; returns it, and the reason if it was refused.
fn pair(one: &Member, other: &Member) -> ((TcpStream, TcpStream), Option<Reason>) {
    let ends = connection("127.0.0.1:0");
    one.claim(1, ends.0.as_fd());
    other.claim(2, ends.1.as_fd());
    let reasons = [one, other].map(|member| match member.hear().reply {
        Reply::Paired { .. } => None,
        Reply::Refused { reason, .. } => Some(reason),
        other => panic!("{other:?}"),
    });
    assert_eq!(reasons[0], reasons[1]);
    (ends, reasons[0])
}

#[test]
fn slabs_that_users_have_with_each_other_take_none_from_others() {
    if !is_root() {
        return skip("only root has members of several users");
    }
    let running = Running::new(Options { slabs_of_users: Some(2), ..patient() });
    let server = running.member();
    let greedy: Vec<Member> = (0..4).map(|_| running.member_of(Some(GREEDY))).collect();
    let mut kept = vec![];
    let mut reported = vec![];
    for member in &greedy {
        let (ends, reason) = pair(member, &server);
        kept.push(ends);
        reported.push(reason);
    }
    assert_eq!(reported, [None, None, Some(Reason::UserLimit), Some(Reason::UserLimit)]);
    // Within a slab there is room, and the server has slabs with other users.
    assert_eq!(pair(&greedy[0], &server).1, None);
    assert_eq!(pair(&running.member_of(Some(OTHER)), &server).1, None);
    assert_eq!(pair(&running.member(), &server).1, None);
    assert_eq!(pair(&greedy[2], &greedy[3]).1, None);
    let stats = running.control().stats().unwrap();
    assert_eq!(stats["refused"]["UserLimit"], 4);
    // The reason is reported on request.
    let list = running.control().list().unwrap();
    let refused = list["refused"].as_array().unwrap();
    assert!(refused.iter().any(|it| it["reason"] == "UserLimit"), "{list}");
    // Released resources no longer count for any user.
    drop((greedy, server));
    eventually("all is given back", || running.control().stats().unwrap()["slabs"] == 0);
    let (server, greedy) = (running.member(), running.member_of(Some(GREEDY)));
    assert_eq!(pair(&greedy, &server).1, None);
}

#[test]
fn who_connects_and_says_nothing_keeps_nobody_out_but_its_own_user() {
    if !is_root() {
        return skip("only root has members of several users");
    }
    let running = Running::new(patient());
    let silent = (0..100).map(|_| Member::silent(running.location.path(), Some(GREEDY)));
    let silent: Vec<Member> = silent.collect();
    eventually("some are turned away", || {
        running.control().stats().is_ok_and(|stats| stats["turned_away"].as_u64() >= Some(30))
    });
    let (one, other) = (running.member(), running.member_of(Some(OTHER)));
    assert_eq!(pair(&one, &other).1, None);
    drop(silent);
}
