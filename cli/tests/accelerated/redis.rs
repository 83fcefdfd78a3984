// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Redis, with its own benchmark and with clients that check every answer.

use crate::harness::{Mode, Node, Program, content, find, free_port, is_long, wait_until};
use crate::resp::{Answer, Client};
use crate::roles;
use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

/// Limit for all tests of its benchmark: more than a million requests, on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(900);
/// Number of connections of many clients.
const CROWD: usize = 200;

fn server(node: &Node, mode: Mode, port: u16) -> Program {
    let server = find("redis-server").expect("redis-server is installed: scripts/install.sh");
    let mut command = node.command(mode, &server);
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.arg("--dir").arg(node.path());
    node.serve("redis-server", command, port)
}

/// Runs all tests of the benchmark, which must pass and move bytes past the kernel; then one that
/// runs until all of its connections are accelerated.
///
/// The benchmark connects again for each test, and the number of connections that live long enough
/// for an upgrade depends on timing.
pub fn benchmark(node: &Node, place: &[&str], clients: usize, arguments: &[&str]) {
    let benchmark = find("redis-benchmark").expect("redis-benchmark is installed");
    let begin = |own: &[&str]| {
        let mut command = node.command(Mode::Accelerated, &benchmark);
        command.args(place).args(["-c", &clients.to_string()]).args(arguments).args(own);
        node.start("redis-benchmark", command)
    };
    let is_pipelined = arguments.contains(&"-P");
    let count = if is_long() {
        "100000"
    } else if is_pipelined {
        "10000"
    } else {
        "2000"
    };
    node.run_until_moved(1, 1_000_000, || {
        let printed = begin(&["--csv", "-n", count]).finish_within(PATIENCE);
        let tests = printed.lines().filter(|line| line.starts_with('"')).count() - 1;
        assert!(tests >= 18, "{tests} tests:\n{printed}");
        assert!(!printed.contains("Error"), "{printed}");
    });
    let mut endless = begin(&["-t", "set", "-n", "2000000000", "-q"]);
    let pid = endless.pid();
    endless.wait_until("all leave the kernel", || node.accelerated_by(pid) >= clients);
}

#[test]
fn every_test_of_its_benchmark_passes() {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let _server = server(&node, Mode::Accelerated, port);
    let place = ["-p", &port.to_string()];
    benchmark(&node, &place, 1, &[]);
    benchmark(&node, &place, 20, &[]);
    benchmark(&node, &place, 20, &["-P", "16"]);
}

#[test]
fn every_answer_is_right() {
    every_answer(Mode::Accelerated, Mode::Accelerated);
}

#[test]
fn plain_clients_and_servers_talk_to_accelerated_ones() {
    every_answer(Mode::Plain, Mode::Accelerated);
    every_answer(Mode::Accelerated, Mode::Plain);
}

fn every_answer(server_mode: Mode, client_mode: Mode) {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let _server = server(&node, server_mode, port);
    let role = if server_mode == client_mode { "redis client" } else { "redis plain client" };
    node.role(client_mode, role, &port.to_string()).finish();
    if server_mode == client_mode {
        node.assert_moved(8, 10_000_000);
    } else {
        assert_eq!(node.moved().connections, 0);
    }
}

#[test]
fn two_hundred_connections_work_at_once() {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let _server = server(&node, Mode::Accelerated, port);
    node.role(Mode::Accelerated, "redis crowd", &port.to_string()).finish();
    node.assert_moved(CROWD as u64, 100_000);
}

#[test]
fn clients_see_the_end_when_it_shuts_down() {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let mut server = server(&node, Mode::Accelerated, port);
    let client = node.role(Mode::Accelerated, "redis until shutdown", &port.to_string());
    client.finish();
    assert!(server.wait().success());
    node.assert_moved(11, 100);
}

/// Role: checks answers of all kinds.
pub fn client(port: &str) {
    let port = port.parse().expect("a port");
    let rounds = if is_long() { 20 } else { 1 };
    for round in 0..rounds {
        values_come_back(port, round);
        transactions_are_whole(port);
        messages_reach_subscribers(port);
        blocking_pops_wait(port);
        clients_can_be_killed(port);
        monitors_see_commands(port);
        saving_in_the_background_disturbs_nobody(port, round);
    }
}

pub fn values_come_back(port: u16, round: u64) {
    let mut client = Client::settled(port);
    let around = [1 << 6, 1 << 12, 1 << 16, 1 << 17, 1 << 20];
    let around = around.into_iter().flat_map(|size| [size - 1, size, size + 1]);
    for size in [0, 1, 2, 7].into_iter().chain(around).chain([4 << 20]) {
        let value = content(round + size as u64, size);
        assert_eq!(client.call(&[b"SET".as_slice(), b"value", &value]), Answer::ok());
        let answer = client.call(&["GET", "value"]);
        assert!(answer == Answer::of(&value), "{size} bytes have changed");
    }
    // Pipelined requests are answered in order.
    for number in 0..500 {
        client.send(&["ECHO", &number.to_string()]).expect("it can be sent");
    }
    for number in 0..500 {
        let answer = client.answer().expect("it is answered");
        assert_eq!(answer, Answer::of(number.to_string().as_bytes()));
    }
}

pub fn transactions_are_whole(port: u16) {
    let mut client = Client::settled(port);
    assert_eq!(client.call(&["SET", "counter", "5"]), Answer::ok());
    assert_eq!(client.call(&["MULTI"]), Answer::ok());
    for _ in 0..3 {
        assert_eq!(client.call(&["INCR", "counter"]), Answer::Simple("QUEUED".to_owned()));
    }
    let all = [6, 7, 8].map(Answer::Number).to_vec();
    assert_eq!(client.call(&["EXEC"]), Answer::List(Some(all)));
}

pub fn messages_reach_subscribers(port: u16) {
    let mut subscriber = Client::settled(port);
    let mut publisher = Client::settled(port);
    let subscribed =
        Answer::List(Some(vec![Answer::of(b"subscribe"), Answer::of(b"news"), Answer::Number(1)]));
    assert_eq!(subscriber.call(&["SUBSCRIBE", "news"]), subscribed);
    let hears = thread::spawn(move || {
        for number in 0..300 {
            let message = number.to_string();
            let parts = [b"message".as_slice(), b"news", message.as_bytes()];
            let all = parts.map(Answer::of).to_vec();
            let heard = subscriber.answer().expect("it hears");
            assert_eq!(heard, Answer::List(Some(all)));
        }
    });
    for number in 0..300 {
        assert_eq!(publisher.call(&["PUBLISH", "news", &number.to_string()]), Answer::Number(1));
    }
    hears.join().expect("all was heard");
}

pub fn blocking_pops_wait(port: u16) {
    let mut waiter = Client::settled(port);
    let mut pusher = Client::settled(port);
    assert_eq!(waiter.call(&["BLPOP", "queue", "0.05"]), Answer::List(None));
    let waits = thread::spawn(move || {
        for number in 0..20 {
            let pair = [b"queue".as_slice(), number.to_string().as_bytes()].map(Answer::of);
            assert_eq!(waiter.call(&["BLPOP", "queue", "30"]), Answer::List(Some(pair.to_vec())));
        }
    });
    for number in 0..20 {
        // The reader waits already, or not yet.
        thread::sleep(std::time::Duration::from_millis(number % 3));
        pusher.call(&["RPUSH", "queue", &number.to_string()]);
    }
    waits.join().expect("all was popped");
}

pub fn clients_can_be_killed(port: u16) {
    let mut victim = Client::settled(port);
    let mut killer = Client::settled(port);
    let Answer::Number(id) = victim.call(&["CLIENT", "ID"]) else { panic!("no number") };
    let killed = killer.call(&["CLIENT", "KILL", "ID", &id.to_string()]);
    assert_eq!(killed, Answer::Number(1));
    assert_ended(&mut victim);
}

/// Checks that the connection has ended, in either way.
fn assert_ended(client: &mut Client) {
    let error = client.answer().expect_err("it has ended");
    let ends = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(ends.contains(&error.kind()), "{error:?}");
}

fn monitors_see_commands(port: u16) {
    let mut watcher = Client::settled(port);
    let mut client = Client::settled(port);
    assert_eq!(watcher.call(&["MONITOR"]), Answer::ok());
    for number in 0..100 {
        client.call(&["ECHO", &number.to_string()]);
        // Other answers may have arrived before.
        let seen = loop {
            let Ok(Answer::Simple(seen)) = watcher.answer() else { panic!("nothing seen") };
            if !seen.ends_with("\"PING\"") {
                break seen;
            }
        };
        assert!(seen.ends_with(&format!("\"ECHO\" \"{number}\"")), "{seen}");
    }
}

/// The server forks, with all of its connections.
fn saving_in_the_background_disturbs_nobody(port: u16, round: u64) {
    let mut chief = Client::settled(port);
    let busy = (0..4).map(|own| {
        let mut client = Client::settled(port);
        thread::spawn(move || {
            let key = format!("busy {own}");
            for number in 0..400 {
                let value = content(round + number, 1000 + number as usize);
                let words = [b"SET".as_slice(), key.as_bytes(), &value];
                assert_eq!(client.call(&words), Answer::ok());
                assert!(client.call(&["GET", &key]) == Answer::of(&value), "it has changed");
            }
        })
    });
    let busy: Vec<_> = busy.collect();
    let started = Answer::Simple("Background saving started".to_owned());
    assert_eq!(chief.call(&["BGSAVE"]), started);
    busy.into_iter().for_each(|thread| thread.join().expect("nobody is disturbed"));
    wait_until("the background is done", || {
        let Answer::Bytes(Some(reported)) = chief.call(&["INFO", "persistence"]) else {
            return false;
        };
        let reported = String::from_utf8_lossy(&reported).into_owned();
        assert!(reported.contains("rdb_last_bgsave_status:ok"), "{reported}");
        reported.contains("rdb_bgsave_in_progress:0")
    });
    // Connections after the fork are accelerated too, and earlier ones still work.
    values_come_back(port, round);
    assert_eq!(chief.call(&["PING"]), Answer::Simple("PONG".to_owned()));
}

/// Role: the same without acceleration.
pub fn plain_client(port: &str) {
    let port = port.parse().expect("a port");
    let mut client = Client::connect(port).expect("it can be connected");
    for size in [1, 100, 10_000, 1 << 20] {
        let value = content(size as u64, size);
        for _ in 0..20 {
            assert_eq!(client.call(&[b"SET".as_slice(), b"value", &value]), Answer::ok());
            assert!(client.call(&["GET", "value"]) == Answer::of(&value), "it has changed");
        }
    }
    assert!(!roles::is_accelerated(client.stream()));
}

/// Role: many connections, each with different answers.
pub fn crowd(port: &str) {
    let port = port.parse().expect("a port");
    let clients = || (0..CROWD).map(|_| Client::settled(port)).collect::<Vec<_>>();
    let mut clients = clients();
    for round in 0..if is_long() { 100 } else { 10 } {
        for (number, client) in clients.iter_mut().enumerate() {
            let key = format!("crowd {number}");
            client.send(&["SET", &key, &format!("{number} {round}")]).expect("it can be sent");
            client.send(&["GET", &key]).expect("it can be sent");
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.answer().expect("it is answered"), Answer::ok());
            let own = Answer::of(format!("{number} {round}").as_bytes());
            assert_eq!(client.answer().expect("it is answered"), own);
        }
    }
}

/// Role: some connections, until one of them shuts the server down.
pub fn until_shutdown(port: &str) {
    let port = port.parse().expect("a port");
    let mut clients: Vec<_> = (0..10).map(|_| Client::settled(port)).collect();
    let waiter = thread::spawn(move || {
        let mut client = Client::settled(port);
        client.send(&["BLPOP", "nothing", "0"]).expect("it can be sent");
        client
    });
    let mut waiter = waiter.join().expect("it waits");
    clients[0].send(&["SHUTDOWN", "NOSAVE"]).expect("it can be sent");
    clients.iter_mut().for_each(assert_ended);
    assert_ended(&mut waiter);
}
