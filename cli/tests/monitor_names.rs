// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A process chooses its own name. In the log and the lists of a monitor, the name is escaped: it
//! contains no control sequences and no line breaks.

use crate::monitor::Monitor;
use freeport_monitor::socket;
use freeport_sockets_proto::message::Request;
use freeport_testbed::wait_until;
use std::fs;
use std::net::UdpSocket;
use std::os::fd::AsFd;

/// Sequences that set a colour and clear the screen, and a line like one of the monitor.
const NAME: &[u8] = b"\x1b[2J\nfp: ok\xff";
const SHOWN: &str = r"\u{1b}[2J\nfp: ok\xff";

#[test]
fn names_of_processes_do_not_command_a_terminal() {
    let monitor = Monitor::new(None).expect("it runs");
    fs::write("/proc/self/comm", NAME).unwrap();
    let member = monitor.join();
    // Refusals are listed, and members that send malformed messages are logged.
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let claim = Request::Claim { token: 1, descriptor: 7, inherited: false };
    socket::send(member.as_fd(), &claim.encode(), &[datagrams.as_fd()]).unwrap();
    socket::send(member.as_fd(), b"garbage", &[]).unwrap();
    wait_until("the member is dropped", || monitor.log().contains("dropped"));
    let list = monitor.reported(&["sockets", "list"]);
    let why = monitor.reported(&["sockets", "why", &format!("{}:7", std::process::id())]);
    let log = monitor.log();
    for text in [&list, &why, &log] {
        let is_plain = |it: char| it == '\n' || !it.is_control();
        assert!(text.chars().all(is_plain), "{text:?}");
    }
    assert!(list.contains(SHOWN), "{list}");
    assert!(log.contains(&format!("({SHOWN}) dropped")), "{log}");
    assert_eq!(log.lines().filter(|line| !line.starts_with("freeport node: ")).count(), 0, "{log}");
    let json = monitor.reported(&["sockets", "list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["refused"][0]["command"], SHOWN);
}
