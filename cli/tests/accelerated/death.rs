// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes that are killed, including the monitor.

use crate::harness::{Mode, Node, free_port, wait_until};
use crate::resp::Client;
use crate::roles;
use serde_json::Value;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Limit against hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// The process that is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    Client,
    Server,
}

#[test]
fn who_is_left_sees_the_end() {
    for victim in [Victim::Client, Victim::Server] {
        let (node, _monitor) = Node::new();
        let port = free_port();
        let ready = node.path().join("ready");
        let listener = node.role(Mode::Accelerated, "listen", &port.to_string());
        let argument = format!("{port} {}", ready.display());
        let mut talker = node.role(Mode::Accelerated, "talk", &argument);
        talker.wait_until("it has talked", || ready.exists());
        let (killed, left) = match victim {
            Victim::Client => (talker, listener),
            Victim::Server => (listener, talker),
        };
        killed.signal(libc::SIGKILL);
        // It checks itself whether it has read the end of file.
        left.finish();
        node.assert_moved(1, 4);
    }
}

#[test]
fn connections_go_on_without_the_monitor_and_new_ones_leave_with_the_next() {
    let node = Node::without_monitor();
    let port = free_port();
    let redis = crate::harness::find("redis-server").expect("redis-server is installed");
    let mut command = node.command(Mode::Accelerated, &redis);
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    let _server = node.serve("redis-server", command, port);
    let talk = || {
        node.role(Mode::Accelerated, "redis survivor", &format!("{port} {}", node.path().display()))
    };
    let mut survivor = talk();
    let settled = node.path().join("settled");
    survivor.wait_until("it has settled", || settled.exists());
    // The program that was started first has started the monitor.
    let monitor = Monitor::of(&node);
    monitor.kill();
    fs::write(node.path().join("killed"), "").expect("it can be written");
    let after = node.path().join("after");
    survivor.wait_until("it has gone on", || after.exists());
    // The next command starts another one, and new connections of the server are accelerated too.
    let next = node.role(Mode::Accelerated, "redis client", &port.to_string());
    next.finish();
    node.assert_moved(5, 1000);
    fs::write(node.path().join("end"), "").expect("it can be written");
    survivor.finish();
    Monitor::of(&node).kill();
}

#[test]
fn whatever_who_is_left_does_it_notices() {
    let node = Node::without_monitor();
    // The benchmark measures the time; this test fails only if it is very long.
    let arguments = ["bench", "sockets", "--case", "deaths", "--rounds", "1", "--json"];
    let reported = node.start("bench", node.freeport(&arguments)).finish();
    let is_figure = |value: &Value| value.as_f64().is_some_and(|ms| ms > 0.0);
    let lines: Vec<Value> =
        reported.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(lines.len(), 13, "{reported}");
    for line in lines {
        assert!(is_figure(&line["value"]) && is_figure(&line["peer_value"]), "{line}");
        assert_eq!(line["note"], Value::Null, "{line}");
    }
}

/// A monitor in the background.
struct Monitor(i32);

impl Monitor {
    fn of(node: &Node) -> Self {
        let pid = node.stats()["pid"].as_i64().expect("a process");
        Self(i32::try_from(pid).expect("a process"))
    }

    fn kill(&self) {
        // SAFETY: no memory is passed; the process has just answered, and belongs to this test.
        assert_eq!(unsafe { libc::kill(self.0, libc::SIGKILL) }, 0);
        let path = format!("/proc/{}/exe", self.0);
        wait_until("it is gone", || fs::read_link(&path).is_err());
    }
}

/// Role: a connection that outlives the monitor.
pub fn survivor(argument: &str) {
    let (port, folder) = argument.split_once(' ').expect("two words");
    let at = |name: &str| std::path::Path::new(folder).join(name);
    let exists = |name: &str| at(name).exists();
    let mut client = Client::settled(port.parse().expect("a port"));
    fs::write(at("settled"), "").expect("it can be written");
    wait_until("the monitor is killed", || exists("killed"));
    let mut talk = |rounds| {
        for _ in 0..rounds {
            client.call(&["PING"]);
        }
        assert!(roles::is_accelerated(client.stream()));
    };
    talk(1000);
    fs::write(at("after"), "").expect("it can be written");
    while !exists("end") {
        talk(100);
        thread::sleep(Duration::from_millis(10));
    }
}

/// Role: sends a word until the connection is accelerated, and then waits for an answer that never
/// arrives.
pub fn talk(argument: &str) {
    let (port, ready) = argument.split_once(' ').expect("two words");
    let port: u16 = port.parse().expect("a port");
    let mut stream = None;
    wait_until("somebody listens", || {
        stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok();
        stream.is_some()
    });
    let mut stream = stream.expect("it is connected");
    let mut word = [0; 4];
    wait_until("it leaves the kernel", || {
        stream.write_all(b"ping").expect("it can be sent");
        stream.read_exact(&mut word).expect("it is answered");
        roles::is_accelerated(&stream)
    });
    fs::write(ready, "").expect("it can be written");
    assert_end(&mut stream);
}

/// Role: echoes what it receives, until the end of file.
pub fn listen(port: &str) {
    let port: u16 = port.parse().expect("a port");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
    let (mut stream, _) = listener.accept().expect("somebody comes");
    assert_end(&mut stream);
}

/// Echoes what it receives, until the end of file.
fn assert_end(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).expect("it can be set");
    let mut bytes = [0; 64];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => stream.write_all(&bytes[..count]).expect("it can be sent"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error:?}");
                return;
            }
        }
    }
}
