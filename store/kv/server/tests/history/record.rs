// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random clients, and the history of what they asked for.

use std::io::Write;
use std::time::Instant;

use fastrand::Rng;
use freeport_kv_protocol::resp::Value;
use freeport_kv_server::Server;

use super::model::{Call, Command, KEYS, Key, Operation};
use super::packets::Packets;
use crate::client::{Client, request, script};

/// How clients behave.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Number of clients of Redis.
    pub clients: usize,
    /// Number of clients of the batched protocol, at the second address of the server.
    pub batched: usize,
    /// Number of turns of each.
    pub turns: usize,
    /// Number of workers of the server; requests that a client sends at once to different ones may
    /// take effect in any order.
    pub workers: usize,
}

/// Operations of one client that were sent at once.
pub type Burst = Vec<Operation>;

/// The history of random clients of a server without keys.
pub fn record(server: &Server, behaviour: Behaviour, seed: u64) -> Vec<Operation> {
    let begin = Instant::now();
    let bursts: Vec<Burst> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..behaviour.clients)
            .map(|number| {
                let mut random = Rng::with_seed(seed * 100 + number as u64);
                let client = Client::new(server);
                let mut one = Recorder { number, client, begin, values: 0, bursts: vec![] };
                scope.spawn(move || {
                    (0..behaviour.turns).for_each(|_| one.turn(&mut random));
                    one.bursts
                })
            })
            .collect();
        let batched: Vec<_> = (behaviour.clients..behaviour.clients + behaviour.batched)
            .map(|number| {
                let mut random = Rng::with_seed(seed * 100 + number as u64);
                let mut one = Packets::new(server.addresses()[1], number, begin);
                scope.spawn(move || {
                    (0..behaviour.turns).map(|_| one.turn(&mut random)).collect::<Vec<Burst>>()
                })
            })
            .collect();
        let all = clients.into_iter().chain(batched);
        all.flat_map(|client| client.join().expect("no client panics")).collect()
    });
    in_order(bursts, behaviour.workers)
}

/// All operations in the order of their calls, with the order that the server promises for bursts.
fn in_order(mut bursts: Vec<Burst>, workers: usize) -> Vec<Operation> {
    bursts.sort_by_key(|burst| burst[0].called_ns);
    let mut history: Vec<Operation> = vec![];
    for burst in bursts {
        let first = history.len();
        for mut operation in burst {
            let earlier = (first..history.len())
                .filter(|at| workers == 1 || are_ordered(&history[*at].call, &operation.call));
            operation.after = earlier.collect();
            history.push(operation);
        }
    }
    history
}

/// Whether two operations that a client sends at once take effect in their order: if they have a
/// key in common, or one of them is a command of the server.
fn are_ordered(one: &Call, other: &Call) -> bool {
    match (one, other) {
        (Call::Command(one), Call::Command(other)) => {
            let keys = other.keys();
            one.keys().iter().any(|key| keys.contains(key))
        }
        _ => true,
    }
}

struct Recorder {
    number: usize,
    client: Client,
    begin: Instant,
    /// Number of values that it has made, all different.
    values: usize,
    bursts: Vec<Burst>,
}

impl Recorder {
    fn turn(&mut self, random: &mut Rng) {
        match random.u32(..10) {
            0..5 => {
                let call = self.call(random);
                self.send(vec![call]);
            }
            5..8 => {
                let calls = (0..random.usize(2..6)).map(|_| self.call(random)).collect();
                self.send(calls);
            }
            _ => self.watched(random),
        }
    }

    /// A transaction that depends on what was read before it.
    fn watched(&mut self, random: &mut Rng) {
        let keys = some_keys(random);
        self.send(vec![Call::Watch(keys.clone())]);
        self.send(vec![Call::Command(Command::MGet(keys))]);
        let commands = (0..random.usize(1..4)).map(|_| self.command(random)).collect();
        self.send(vec![Call::Exec(commands)]);
    }

    fn call(&mut self, random: &mut Rng) -> Call {
        let count = random.usize(1..4);
        match random.u32(..10) {
            0 => Call::Exec((0..count).map(|_| self.command(random)).collect()),
            1 => Call::Eval((0..count).map(|_| self.command(random)).collect()),
            _ => Call::Command(self.command(random)),
        }
    }

    fn command(&mut self, random: &mut Rng) -> Command {
        let key = random.usize(..KEYS.len());
        match random.u32(..19) {
            0..3 => Command::Get(key),
            3 => Command::Set(key, self.value()),
            4 => Command::Incr(key),
            5 => Command::Append(key, random.u32(1..10).to_string()),
            6 => Command::Append(key, format!("x{}", self.value())),
            7 => Command::Del(key),
            8 => Command::GetSet(key, self.value()),
            9 => Command::LPush(key, self.value()),
            10 => Command::LPop(key),
            11 => Command::LRange(key),
            12 => {
                let keys = some_keys(random);
                Command::MSet(keys.into_iter().map(|key| (key, self.value())).collect())
            }
            13..15 => Command::MGet(some_keys(random)),
            15..17 => Command::Mix(key, random.u8(..9)),
            17 => Command::Fold(key),
            _ => Command::Rename(key, (key + random.usize(1..KEYS.len())) % KEYS.len()),
        }
    }

    /// A number that nobody else writes.
    fn value(&mut self) -> String {
        self.values += 1;
        (self.values * 100 + self.number + 1).to_string()
    }

    /// Sends requests at once, and receives their replies.
    fn send(&mut self, calls: Vec<Call>) {
        let mut bytes = vec![];
        let counts: Vec<usize> = calls.iter().map(|call| write(call, &mut bytes)).collect();
        let called_ns = self.now_ns();
        self.client.stream.write_all(&bytes).expect("the server reads");
        let burst = calls.into_iter().zip(counts).map(|(call, count)| {
            // `EXEC` comes after the replies to the commands that it executes.
            let reply = (0..count).map(|_| self.client.reply()).last();
            let returned_ns = self.now_ns();
            let reply: Option<Value> = reply.inspect(assert_known);
            Operation { client: self.number, call, reply, called_ns, returned_ns, after: vec![] }
        });
        let burst = burst.collect();
        self.bursts.push(burst);
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }
}

/// A reply that no model has would only say that the history cannot be explained.
fn assert_known(reply: &Value) {
    if let Value::Error(text) = reply {
        let text = String::from_utf8_lossy(text);
        let is_known = ["WRONGTYPE ", "ERR value is not", "ERR no such key"];
        assert!(is_known.iter().any(|begin| text.starts_with(begin)), "{text}");
    }
}

/// Writes the requests of a call; returns their number.
fn write(call: &Call, out: &mut Vec<u8>) -> usize {
    let mut count = 0;
    let mut write = |words: &[String]| {
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        out.extend(request(&words));
        count += 1;
    };
    match call {
        Call::Command(command) => write(&command.words()),
        Call::Watch(keys) => {
            let keys = keys.iter().map(|key| KEYS[*key].to_owned());
            write(&std::iter::once("WATCH".to_owned()).chain(keys).collect::<Vec<_>>());
        }
        Call::Exec(commands) => {
            write(&["MULTI".to_owned()]);
            commands.iter().for_each(|command| write(&command.words()));
            write(&["EXEC".to_owned()]);
        }
        Call::Eval(commands) => {
            write(&script(&[], commands.iter().map(Command::words)));
        }
    }
    count
}

/// One to three different keys.
fn some_keys(random: &mut Rng) -> Vec<Key> {
    let mut keys: Vec<Key> = (0..KEYS.len()).collect();
    random.shuffle(&mut keys);
    keys.truncate(random.usize(1..4));
    keys
}
