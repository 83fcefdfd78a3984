// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons that are known without the cooperation of a process.

use super::{Scene, name};
use crate::harness::{Mode, Node};
use crate::matrix::users::{User, command_as};
use freeport_testbed::skip;
use std::fs::File;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Asks about a descriptor of this process, which does not have the library loaded.
fn reported(node: &Node, number: i32) -> String {
    let end = format!("{}:{number}", std::process::id());
    let reported = node.ask(&["sockets", "why", &end, "--json"]).expect("it can be asked");
    assert_eq!(reported["state"], "kernel");
    name(&reported).to_owned()
}

#[test]
fn what_has_nothing_to_do_with_freeport_is_told_as_well() {
    let (node, _monitor) = Node::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("it has one")).expect("it is");
    let (other, _) = listener.accept().expect("it is connected");
    let reported = |number| reported(&node, number);
    assert_eq!(reported(stream.as_raw_fd()), "NotPreloaded");
    drop(other);
    assert_eq!(reported(stream.as_raw_fd()), "NotConnected");
    assert_eq!(reported(listener.as_raw_fd()), "Listens");
    let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a port");
    assert_eq!(reported(datagrams.as_raw_fd()), "NotStream");
    let file = File::open("/dev/null").expect("it is there");
    assert_eq!(reported(file.as_raw_fd()), "NotSocket");
    assert_eq!(reported(987_654), "NoDescriptor");
    // SAFETY: no memory is passed.
    let made = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(made >= 0);
    // SAFETY: the call above has returned the descriptor, which has no other owner.
    let netlink = unsafe { OwnedFd::from_raw_fd(made) };
    assert_eq!(reported(netlink.as_raw_fd()), "Family");
    let nobody = node.ask(&["sockets", "why", "2147483640:1", "--json"]).expect("it can be");
    assert_eq!(name(&nobody), "NoProcess");
}

#[test]
fn what_is_another_users_is_not_told() {
    let Some(user) = User::first_of(&["nobody"]) else {
        return skip("only root can run a program as another user");
    };
    let (node, _monitor) = Node::new();
    let Some(scene) = Scene::new(&node, Mode::Accelerated, &["accelerated"]) else { return };
    let freeport = Path::new(env!("CARGO_BIN_EXE_freeport"));
    let copy = node.write("freeport", std::fs::read(freeport).expect("it was built"));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&copy, mode).expect("it is ours");
    let mut command = command_as(&node, Mode::Plain, Some(&user), &copy);
    command.env("FREEPORT_MONITOR", node.monitor_path());
    let output = command.args(["sockets", "why", &scene.end, "--json"]).output().expect("it runs");
    let reported: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an answer");
    assert_eq!(name(&reported), "NotPermitted", "{reported}");
}
