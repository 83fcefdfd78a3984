// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections that the rules no longer allow are moved back into the kernel by
//! `freeport sockets recall`, whatever their state, without losing bytes.

use crate::harness::{Mode, Node, content, find, free_port, wait_until};
use crate::resp::{Answer, Client};
use crate::roles;
use std::fs;
use std::path::Path;

/// Files that signal that the connections are accelerated, and that they have been recalled.
const SETTLED: &str = "settled";
const RECALLED: &str = "recalled";
/// Number of bytes per write.
const BYTES: usize = 300_000;

#[test]
fn what_is_denied_comes_back_while_it_is_used_and_the_rest_when_it_is() {
    let (node, _monitor) = Node::new();
    let ports = [free_port(), free_port()];
    let _servers = ports.map(|port| {
        let server = find("redis-server").expect("redis-server is installed");
        let mut command = node.command(Mode::Accelerated, &server);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.arg("--dir").arg(node.path());
        node.serve("redis-server", command, port)
    });
    let both = format!("{} {}", ports[0], ports[1]);
    let mut clients = node.role(Mode::Accelerated, "recalled clients", &both);
    clients.wait_until("they are past the kernel", || node.path().join(SETTLED).exists());
    let recall = |wait: &str| {
        let reported = node.ask(&["sockets", "recall", "--wait", wait, "--json"]).expect("it does");
        ["pending", "returned"].map(|name| reported[name].as_u64().expect("a number"))
    };
    assert_eq!(recall("0"), [0, 0], "nothing is denied");
    node.ask(&["sockets", "policy", "deny", "port", &ports[0].to_string(), "--json"])
        .expect("it does");
    // One connection is transferring; two are idle, and move without an operation.
    wait_until("the busy one comes back", || recall("0")[1] >= 1);
    node.write(RECALLED, "");
    clients.finish();
    let [_, returned] = recall("10");
    assert_eq!(recall("0")[0], 0, "{returned} have come back");
    assert!(node.returned() >= 3, "{}", node.stats());
}

/// Role: has connections to two servers; those to the first are recalled.
pub fn clients(ports: &str) {
    let ports: Vec<u16> = ports.split(' ').map(|port| port.parse().expect("a port")).collect();
    let mut busy = Client::settled(ports[0]);
    let mut idle = Client::settled(ports[0]);
    let mut subscriber = Client::settled(ports[0]);
    let mut elsewhere = Client::settled(ports[1]);
    let subscribed = subscriber.call(&["SUBSCRIBE", "news"]);
    assert!(matches!(subscribed, Answer::List(Some(_))), "{subscribed:?}");
    fs::write(SETTLED, "").expect("it can be written");
    let value = content(1, BYTES);
    wait_until("it is recalled", || {
        let answer = busy.call(&[b"ECHO".as_slice(), &value]);
        assert!(answer == Answer::of(&value), "bytes have changed");
        Path::new(RECALLED).exists()
    });
    let is_back = |client: &mut Client| {
        let answer = client.call(&[b"ECHO".as_slice(), &value]);
        assert!(answer == Answer::of(&value), "bytes have changed");
        !roles::is_accelerated(client.stream())
    };
    assert!(is_back(&mut busy) && is_back(&mut idle));
    assert_eq!(idle.call(&["PUBLISH", "news", "all is well"]), Answer::Number(1));
    let news = ["message", "news", "all is well"].map(|word| Answer::of(word.as_bytes()));
    assert_eq!(subscriber.answer().expect("it is told"), Answer::List(Some(news.to_vec())));
    assert!(!roles::is_accelerated(subscriber.stream()), "its server has brought it back");
    // The rule does not apply to the other port.
    assert!(!is_back(&mut elsewhere));
}
