// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client-side caching: messages to clients that keep copies, beside redis-server byte by byte, and
//! among several workers, where no copy may stay that is invalid.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use freeport_kv_protocol::resp::Value;
use freeport_kv_server::Server;
use freeport_testbed::redis::RedisServer;
use freeport_testbed::wait::wait_until;

use crate::client::{Client, server};

const SESSIONS: &str = include_str!("tracking_sessions.txt");

/// The clients of a session.
struct Session {
    clients: BTreeMap<String, (Client, String)>,
}

impl Session {
    fn new(address: SocketAddr, version: &str) -> Self {
        let mut clients = BTreeMap::new();
        for name in ["A", "B", "C", "R"] {
            let mut client = Client::connect(address);
            client.ask(&format!("HELLO {version}"));
            let id = client.call("CLIENT ID").replace("(integer) ", "");
            clients.insert(name.to_owned(), (client, id));
        }
        let mut session = Self { clients };
        session.client("B").ask("FLUSHALL");
        session
    }

    fn client(&mut self, name: &str) -> &mut Client {
        &mut self.clients.get_mut(name).expect("a client of the session").0
    }

    /// Does a line of a session; returns the bytes that a client has got.
    fn play(&mut self, line: &str) -> String {
        let (name, words) = line.split_once(' ').expect("a line has words");
        let mut words = words.to_owned();
        for (name, (_, id)) in &self.clients {
            words = words.replace(&format!("{{{name}}}"), id);
        }
        let received = match (name, &words[..]) {
            ("wait", condition) => {
                self.wait(condition);
                return String::new();
            }
            (_, "<") => self.client(name).raw(),
            (_, later) if later.starts_with("> ") => {
                self.client(name).send(&later[2..]);
                return String::new();
            }
            (_, words) => self.client(name).ask(words),
        };
        // The two servers number their clients differently.
        match received.contains("redir") || line.contains("GETREDIR") {
            true => received.replace(&format!(":{}\r\n", self.clients["R"].1), ":{R}\r\n"),
            false => received,
        }
    }

    fn wait(&mut self, condition: &str) {
        let gone = condition.strip_prefix("gone ").map(|name| self.clients[name].1.clone());
        wait_until(condition, || match &gone {
            Some(id) => self.client("B").call(&format!("CLIENT LIST ID {id}")).len() < 3,
            None => self.client("B").call("INFO clients").contains("blocked_clients:1"),
        });
    }
}

/// Plays all sessions on both servers; returns the first difference of each session.
fn differences(addresses: [SocketAddr; 2]) -> Vec<String> {
    let (mut sessions, mut name, mut differing) = (None, "", vec![]);
    for line in SESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(begin) = line.strip_prefix("session ") {
            let version;
            (name, version) = begin.split_once(' ').expect("a session has a version");
            sessions = Some(addresses.map(|address| Session::new(address, version)));
        } else if let Some([ours, theirs]) = &mut sessions {
            let [ours, theirs] = [ours, theirs].map(|session| session.play(line));
            if ours != theirs {
                differing.push(format!("{name}: {line}\n ours:  {ours:?}\n redis: {theirs:?}"));
                sessions = None;
            }
        }
    }
    differing
}

#[test]
fn messages_are_those_of_redis() {
    let Some(redis) = RedisServer::start(&[]) else {
        return freeport_testbed::skip("redis-server is not installed");
    };
    for workers in [1, 3] {
        let server = server(workers);
        let differing = differences([server.addresses()[0], redis.address()]);
        assert!(differing.is_empty(), "{workers} workers:\n{}", differing.join("\n"));
    }
}

/// Redis does so since 7.2.
#[test]
fn messages_come_also_without_replies() {
    let server = server(1);
    let [mut client, mut other] = [Client::new(&server), Client::new(&server)];
    client.ask("HELLO 3");
    client.check("CLIENT TRACKING ON", "+OK\r\n");
    client.send("CLIENT REPLY OFF");
    client.send("GET one");
    client.send("SET one 1");
    assert_eq!(client.text(), "1> \"invalidate\" 2> 1) \"one\"");
    client.send("MGET one two");
    client.check("CLIENT REPLY ON", "+OK\r\n");
    other.check("SET two 2", "+OK\r\n");
    assert_eq!(client.text(), "1> \"invalidate\" 2> 1) \"two\"");
}

/// Only keys that a script reads count, not those that it was given (Redis 7.2).
#[test]
fn keys_that_a_script_reads_are_remembered() {
    let server = server(3);
    let [mut client, mut other] = [Client::new(&server), Client::new(&server)];
    client.ask("HELLO 3");
    client.check("CLIENT TRACKING ON", "+OK\r\n");
    client.check("EVAL redis.call('get',KEYS[1]) 2 one two", "_\r\n");
    other.check("SET two 2", "+OK\r\n");
    other.check("SET one 1", "+OK\r\n");
    assert_eq!(client.text(), "1> \"invalidate\" 2> 1) \"one\"");
    assert!(client.ask("INFO stats").contains("tracking_total_keys:0\r\n"));
}

#[test]
fn copies_end_with_the_time_of_their_keys() {
    let server = server(2);
    let [mut client, mut other] = [Client::new(&server), Client::new(&server)];
    client.ask("HELLO 3");
    client.check("CLIENT TRACKING ON NOLOOP", "+OK\r\n");
    // A key that is gone before it is read needs no message.
    let mut is_long_enough = |lasts_ms: &u64| {
        client.check(&format!("SET key value PX {lasts_ms}"), "+OK\r\n");
        client.ask("EXISTS key") == ":1\r\n"
    };
    (0..).map(|round| 1 << round).find(|lasts_ms| is_long_enough(lasts_ms));
    wait_until("the time is over", || other.ask("EXISTS key") == ":0\r\n");
    assert_eq!(client.text(), "1> \"invalidate\" 2> 1) \"key\"");
}

#[test]
fn a_full_table_forgets_keys_and_tells_their_readers() {
    let server = server(1);
    let [mut client, mut other] = [Client::new(&server), Client::new(&server)];
    client.ask("HELLO 3");
    client.check("CLIENT TRACKING ON", "+OK\r\n");
    for number in 0..2_500 {
        client.check(&format!("GET {number}"), "_\r\n");
    }
    let has_keys = |client: &mut Client, count: usize| {
        client.ask("INFO stats").contains(&format!("tracking_total_keys:{count}\r\n"))
    };
    assert!(has_keys(&mut other, 2_500));
    other.check("CONFIG SET tracking-table-max-keys 10", "+OK\r\n");
    let mut forgotten = BTreeSet::new();
    while forgotten.len() < 2_490 {
        assert!(forgotten.insert(client.text()), "each key is forgotten once");
    }
    assert!(has_keys(&mut other, 10));
    // One more takes the place of another.
    client.check("GET more", "_\r\n");
    assert!(client.text().starts_with("1> \"invalidate\""));
    assert!(has_keys(&mut other, 10));
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    for workers in [1, 2] {
        let server = server(workers);
        let [mut slow, mut other] = [Client::new(&server), Client::new(&server)];
        slow.ask("HELLO 3");
        slow.check("CLIENT TRACKING ON BCAST", "+OK\r\n");
        let long = "k".repeat(1 << 20);
        let mut number = 0;
        wait_until("the client is gone", || {
            number += 1;
            // The message has the key.
            other.check(&format!("SET {long}{} x", number % 8), "+OK\r\n");
            other.ask("INFO clients").contains("tracking_clients:0\r\n")
        });
    }
}

#[test]
fn lists_of_clients_show_who_tracks() {
    let server = server(2);
    let [mut client, mut other] = [Client::new(&server), Client::new(&server)];
    let id = other.call("CLIENT ID").replace("(integer) ", "");
    client.check(&format!("CLIENT TRACKING ON REDIRECT {id} BCAST"), "+OK\r\n");
    let info = client.call("CLIENT INFO");
    assert!(info.contains(" flags=tB ") && info.contains(&format!(" redir={id} ")), "{info}");
    assert!(other.ask("INFO stats").contains("tracking_total_prefixes:1\r\n"));
    assert!(other.ask("INFO clients").contains("tracking_clients:1\r\n"));
    client.check("RESET", "+RESET\r\n");
    let info = client.call("CLIENT INFO");
    assert!(info.contains(" flags=N ") && info.contains(" redir=-1 "), "{info}");
    client.check("CLIENT TRACKING ON", "+OK\r\n");
    drop(client);
    wait_until("the client is gone", || {
        other.ask("INFO clients").contains("tracking_clients:0\r\n")
    });
}

/// A client that keeps copies of what it reads.
struct Cache {
    client: Client,
    copies: BTreeMap<String, Value>,
    /// Requests without a reply so far.
    asked: VecDeque<Asked>,
    /// It gets no message about its own changes.
    is_no_loop: bool,
}

/// A request.
enum Asked {
    Read(Vec<String>),
    Change(String),
    Ping,
}

impl Cache {
    fn new(server: &Server, mode: &str) -> Self {
        let mut client = Client::new(server);
        client.ask("HELLO 3");
        client.check(&format!("CLIENT TRACKING ON{mode}"), "+OK\r\n");
        let is_no_loop = mode.contains("NOLOOP");
        Self { client, copies: BTreeMap::new(), asked: VecDeque::new(), is_no_loop }
    }

    fn ask(&mut self, asked: Asked) {
        match &asked {
            Asked::Read(keys) => self.client.send(&format!("MGET {}", keys.join(" "))),
            Asked::Change(key) => self.client.send(&format!("INCR {key}")),
            Asked::Ping => self.client.send("PING"),
        }
        self.asked.push_back(asked);
    }

    /// Reads until no reply is missing.
    fn read(&mut self) {
        while !self.asked.is_empty() {
            match (self.client.reply(), self.asked.front()) {
                (Value::Push(message), _) => {
                    self.invalidate(&message);
                    continue;
                }
                (Value::Array(values), Some(Asked::Read(keys))) => {
                    self.copies.extend(keys.iter().cloned().zip(values));
                }
                (_, Some(Asked::Change(key))) if self.is_no_loop => _ = self.copies.remove(key),
                _ => {}
            }
            self.asked.pop_front();
        }
    }

    fn invalidate(&mut self, message: &[Value]) {
        let [_, Value::Array(keys)] = message else { panic!("{message:?} names keys") };
        for key in keys {
            let Value::Bulk(key) = key else { panic!("{key:?} is a key") };
            self.copies.remove(&*String::from_utf8_lossy(key));
        }
    }

    /// Reads and changes keys at random, several at once.
    fn work(&mut self, mut random: fastrand::Rng) {
        for _ in 0..100 {
            for _ in 0..random.usize(1..12) {
                let key = |random: &mut fastrand::Rng| format!("key{}", random.usize(..KEYS));
                let asked = match random.usize(..8) {
                    0 => Asked::Change(key(&mut random)),
                    1 => Asked::Read(vec![key(&mut random), key(&mut random)]),
                    _ => Asked::Read(vec![key(&mut random)]),
                };
                self.ask(asked);
            }
            self.read();
        }
    }
}

const KEYS: usize = 12;

/// All clients read and change the same few keys, which several workers have. Every copy that is
/// left in the end has to be the present value: no message was lost, and none came before the reply
/// that it made invalid.
#[test]
fn no_invalid_copy_stays() {
    let first = freeport_testbed::seed();
    for (mode, seed) in ["", " NOLOOP", " BCAST", " BCAST PREFIX key1"].into_iter().zip(first..) {
        let server = server(3);
        let mut caches: Vec<_> = (0..6).map(|_| Cache::new(&server, mode)).collect();
        std::thread::scope(|scope| {
            for (number, cache) in caches.iter_mut().enumerate() {
                let random = fastrand::Rng::with_seed(seed << 8 | number as u64);
                scope.spawn(move || cache.work(random));
            }
        });
        let mut reader = Client::new(&server);
        let mut value = |key: &String| {
            reader.send(&format!("GET {key}"));
            reader.reply()
        };
        let is_told = |key: &str| !mode.contains("PREFIX") || key.starts_with("key1");
        for cache in &mut caches {
            wait_until("all copies are valid", || {
                cache.ask(Asked::Ping);
                cache.read();
                cache.copies.iter().all(|(key, copy)| !is_told(key) || value(key) == *copy)
            });
        }
    }
}
