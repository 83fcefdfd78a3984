// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random clients of the batched protocol: each packet is a burst of operations, which are the
//! commands of Redis that they stand for.

use std::net::SocketAddr;
use std::time::Instant;

use fastrand::Rng;
use freeport_kv_protocol::batch::{Operation as Sent, Status};
use freeport_kv_protocol::resp::Value;

use super::model::{Call, Command, KEYS, Operation};
use super::record::Burst;
use crate::batched::client::{BatchClient, Replied, Stream};

/// A client of the batched protocol.
pub struct Packets {
    number: usize,
    client: BatchClient,
    begin: Instant,
    /// Number of values that it has made, all different.
    values: usize,
}

impl Packets {
    /// Connects to an address.
    pub fn new(address: SocketAddr, number: usize, begin: Instant) -> Self {
        let client = BatchClient::over(Stream::tcp(address));
        Self { number, client, begin, values: 0 }
    }

    /// Sends a packet, and receives its replies.
    pub fn turn(&mut self, random: &mut Rng) -> Burst {
        let commands: Vec<Command> =
            (0..random.usize(1..6)).map(|_| self.command(random)).collect();
        let operations: Vec<Sent<'_>> = commands.iter().map(operation).collect();
        let called_ns = self.now_ns();
        let replies = self.client.run(&operations);
        let returned_ns = self.now_ns();
        let burst = commands.into_iter().zip(replies).map(|(command, reply)| Operation {
            client: self.number,
            reply: Some(value(&command, reply)),
            call: Call::Command(command),
            called_ns,
            returned_ns,
            after: vec![],
        });
        burst.collect()
    }

    fn command(&mut self, random: &mut Rng) -> Command {
        let key = random.usize(..KEYS.len());
        match random.u32(..5) {
            0..2 => Command::Get(key),
            2..4 => {
                self.values += 1;
                Command::Set(key, (self.values * 100 + self.number + 1).to_string())
            }
            _ => Command::Del(key),
        }
    }

    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }
}

fn operation(command: &Command) -> Sent<'_> {
    match command {
        Command::Get(key) => Sent::get(KEYS[*key].as_bytes()),
        Command::Set(key, value) => Sent::put(KEYS[*key].as_bytes(), value.as_bytes()),
        Command::Del(key) => Sent::delete(KEYS[*key].as_bytes()),
        other => panic!("{other:?} is no operation"),
    }
}

/// The reply as the command has it.
fn value(command: &Command, reply: Replied) -> Value {
    match (command, reply) {
        (Command::Get(_), (Status::Done, Some(value))) => Value::Bulk(value),
        (Command::Get(_), (Status::NotFound, None)) => Value::Null,
        (Command::Get(_), (Status::WrongType, Some(text))) => Value::Error(text),
        (Command::Set(..), (Status::Done, None)) => Value::Status(b"OK".to_vec()),
        (Command::Del(_), (Status::Done, None)) => Value::Integer(1),
        (Command::Del(_), (Status::NotFound, None)) => Value::Integer(0),
        other => panic!("{other:?}"),
    }
}
