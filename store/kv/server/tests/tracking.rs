// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client-side caching: messages to clients that keep copies, beside redis-server byte by byte, and
//! among several workers, where no copy may stay that is invalid.

use std::collections::BTreeMap;
use std::net::SocketAddr;

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
        self.clients.iter().fold(received, |received, (name, (_, id))| {
            received.replace(&format!(":{id}\r\n"), &format!(":{{{name}}}\r\n"))
        })
    }

    fn wait(&mut self, condition: &str) {
        let gone = condition.strip_prefix("gone ").map(|name| self.clients[name].1.clone());
        wait_until(condition, || match &gone {
            Some(id) => self.client("B").call(&format!("CLIENT LIST ID {id}")).len() < 3,
            None => self.client("B").call("INFO clients").contains("blocked_clients:1"),
        });
    }
}

#[test]
fn messages_are_those_of_redis() {
    let Some(redis) = RedisServer::start(&[]) else {
        return freeport_testbed::skip("redis-server is not installed");
    };
    for workers in [1, 3] {
        let server = server(workers);
        let addresses = [server.addresses()[0], redis.address()];
        let mut sessions = None;
        let mut name = "";
        for line in SESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(begin) = line.strip_prefix("session ") {
                let version;
                (name, version) = begin.split_once(' ').expect("a session has a version");
                sessions = Some(addresses.map(|address| Session::new(address, version)));
                continue;
            }
            let [ours, theirs] = sessions.as_mut().expect("a session has begun");
            assert_eq!(ours.play(line), theirs.play(line), "{name}, {workers} workers: {line}");
        }
    }
}
