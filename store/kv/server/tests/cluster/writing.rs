// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client that writes keys of one hash slot, while nodes end and stand still.
//!
//! 1. It sends several requests at once to the node that has the slot, sometimes with `WAIT` behind
//!    them.
//! 2. If the node refuses, it looks for another one.
//! 3. If the connection ends, requests without a reply have an unknown fate. It looks for the node
//!    that has the slot now, and reads all its keys, which show the fate.
//! 4. If there is no reply for a while, nothing is known. It waits until there is one, or the
//!    connection ends, or *another* node has the slot; then 3. follows, and the silent connection
//!    is kept: a reply that still comes is an acknowledgment by a node that has lost its slots.

use std::ops::Add;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use freeport_kv_protocol::resp::Value;
use freeport_kv_protocol::slots::slot_of;
use freeport_testbed::wait::PATIENCE;

use super::connection::{Answer, Connection, Waiting, is_late};
use super::history::History;
use super::progress::Progress;
use super::routes::{Routes, read};
use crate::crash::model::Times;
use crate::crash::reading::now_ms;
use crate::crash::step::Maker;

/// Pause before nodes are asked again.
const PAUSE: Duration = Duration::from_millis(10);
/// A server may use a time that it has read somewhat before a request came.
const CLOCK_MS: u64 = 1000;

/// Counts of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    pub acknowledged: u64,
    /// Number of times that `WAIT` found all requests on a replica.
    pub confirmations: u64,
    /// Acknowledged requests that are gone; they were not confirmed.
    pub lost: u64,
    /// Requests without a reply that were executed.
    pub executed: u64,
    /// Nodes that it has left because another one has the slot, or has taken its place.
    pub changes: u64,
    /// Replies of a node that came after another one had the slot.
    pub late: u64,
    /// Those of them to requests that were sent while the node stood still.
    pub wrong: u64,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            acknowledged: self.acknowledged + other.acknowledged,
            confirmations: self.confirmations + other.confirmations,
            lost: self.lost + other.lost,
            executed: self.executed + other.executed,
            changes: self.changes + other.changes,
            late: self.late + other.late,
            wrong: self.wrong + other.wrong,
        }
    }
}

/// A client with its knowledge.
pub struct Writer {
    pub counts: Counts,
    prefix: String,
    maker: Maker,
    random: Rng,
    history: History,
    connection: Option<Connection>,
    /// Connections to nodes that stood still and have lost the slot.
    silent: Vec<Connection>,
    /// It has asked on a connection that is late.
    has_looked: bool,
    /// Takes every reply for confirmed, which shows that the comparison can fail.
    pretends: bool,
    /// When the waiting requests were sent.
    sent_ms: u64,
    /// A request of those was refused.
    is_refused: bool,
}

impl Writer {
    /// A client whose slot is in a part of all slots: the parts are equal and in order.
    pub fn new(
        number: usize,
        (part, parts): (usize, usize),
        has_functions: bool,
        pretends: bool,
        seed: u64,
    ) -> Self {
        let is_in_part = |tag: &String| {
            let slots = usize::from(freeport_kv_protocol::slots::SLOTS);
            usize::from(slot_of(tag.as_bytes())) * parts / slots == part
        };
        let mut tags = (0..).map(|suffix| format!("c{number}.{suffix}"));
        let prefix = format!("{{{}}}:", tags.find(is_in_part).expect("slots are spread"));
        Self {
            counts: Counts::default(),
            maker: Maker::with_prefix(number, prefix.clone(), has_functions),
            prefix,
            random: Rng::with_seed(seed * 1000 + number as u64),
            history: History::default(),
            connection: None,
            silent: vec![],
            has_looked: false,
            pretends,
            sent_ms: 0,
            is_refused: false,
        }
    }

    /// The hash slot of its keys.
    pub fn slot(&self) -> u16 {
        slot_of(self.prefix.as_bytes())
    }

    /// Writes until it has to end, and all requests have their replies.
    ///
    /// # Errors
    /// A confirmed request is lost, or there is a wrong reply.
    pub fn write(&mut self, routes: &Routes, progress: &Progress) -> Result<(), String> {
        let ended = loop {
            let is_idle = self.connection.as_ref().is_some_and(Connection::is_idle);
            if progress.has_to_end(is_idle) {
                break Ok(());
            }
            if let Err(error) = self.turn(routes, progress) {
                break Err(format!("{}: {error}", self.prefix));
            }
        };
        progress.end();
        ended
    }

    fn turn(&mut self, routes: &Routes, progress: &Progress) -> Result<(), String> {
        let Some(connection) = &mut self.connection else {
            return self.settle(routes.find(&self.prefix, None));
        };
        if connection.is_idle() {
            self.send();
            return Ok(());
        }
        match connection.receive() {
            Ok((waiting, answer)) => self.answered(waiting, answer, progress),
            Err(error) if is_late(&error) => self.suspect(routes, progress),
            Err(_) => {
                self.forget();
                Ok(())
            }
        }
    }

    /// Sends some requests at once.
    fn send(&mut self) {
        let most = if self.random.u32(..3) == 0 { 2 } else { 10 };
        let connection = self.connection.as_mut().expect("there is one");
        for _ in 0..self.random.usize(1..most) {
            connection.send(Waiting::Request(self.maker.request(&mut self.random)), "");
        }
        if self.random.u32(..3) == 0 {
            connection.send(Waiting::Confirmation, "");
        }
        (self.sent_ms, self.is_refused) = (now_ms(), false);
    }

    fn times(&self) -> Times {
        Times { earliest_ms: self.sent_ms.saturating_sub(CLOCK_MS), latest_ms: now_ms() }
    }

    fn answered(
        &mut self,
        waiting: Waiting,
        answer: Answer,
        progress: &Progress,
    ) -> Result<(), String> {
        let times = self.times();
        match (waiting, answer) {
            (Waiting::Request(request), Answer::Reply(reply)) => {
                self.history.acknowledge(request, reply, times)?;
                self.counts.acknowledged += 1;
            }
            (Waiting::Confirmation, Answer::Reply(Value::Integer(replicas))) if replicas > 0 => {
                self.history.confirm(now_ms());
                self.counts.confirmations += 1;
            }
            (Waiting::Confirmation, Answer::Reply(Value::Integer(0))) => {}
            (Waiting::Confirmation, Answer::Reply(other)) => {
                return Err(format!("WAIT: {other:?}"));
            }
            (Waiting::Look, Answer::Reply(_)) => {}
            (_, Answer::Refused(_)) => self.is_refused = true,
        }
        if self.connection.as_ref().is_some_and(Connection::is_idle) {
            self.complete(progress);
        }
        Ok(())
    }

    /// All requests have their replies.
    fn complete(&mut self, progress: &Progress) {
        self.has_looked = false;
        if self.pretends {
            self.history.confirm(now_ms());
        }
        if self.is_refused {
            // Its keys show whether those that come after have them all.
            self.connection = None;
            thread::sleep(PAUSE);
        } else {
            progress.complete_round();
        }
    }

    /// The node is late. If another one has the slot, that one is used from now on.
    fn suspect(&mut self, routes: &Routes, progress: &Progress) -> Result<(), String> {
        let connection = self.connection.as_mut().expect("it is late");
        if !self.has_looked {
            connection.suspect();
            connection.send(Waiting::Request(self.maker.request(&mut self.random)), "");
            connection.send(Waiting::Look, &format!("{}text:0", self.prefix));
            self.has_looked = true;
        }
        let Some(other) = routes.find(&self.prefix, Some(connection.address)) else {
            thread::sleep(PAUSE);
            return Ok(());
        };
        // Replies that have come until now may be older than the change.
        while let Some(connection) = self.connection.as_mut().filter(|one| !one.is_idle()) {
            match connection.receive() {
                Ok((waiting, answer)) => self.answered(waiting, answer, progress)?,
                Err(_) => break,
            }
        }
        if let Some(connection) = self.connection.take().filter(|one| !one.is_idle()) {
            self.doubt(connection.waiting().cloned().collect());
            self.silent.push(connection);
        }
        self.settle(Some(other))
    }

    /// The connection has ended.
    fn forget(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.doubt(connection.waiting().cloned().collect());
        }
        self.has_looked = false;
    }

    fn doubt(&mut self, waiting: Vec<Waiting>) {
        let times = self.times();
        for one in waiting {
            if let Waiting::Request(request) = one {
                self.history.doubt(request, times);
            }
        }
    }

    /// Reads the keys at the node that has the slot now, and uses it.
    fn settle(&mut self, found: Option<Connection>) -> Result<(), String> {
        let reading = found.and_then(|mut connection| {
            // Without a whole reading, the next turn finds a node again.
            let reading = read(&mut connection, &self.prefix).ok().flatten()?;
            Some((connection, reading))
        });
        let Some((connection, reading)) = reading else {
            thread::sleep(PAUSE);
            return Ok(());
        };
        let settled = self.history.settle(reading)?;
        self.counts.lost += settled.lost;
        self.counts.executed += settled.executed;
        self.counts.changes += 1;
        self.connection = Some(connection);
        self.has_looked = false;
        Ok(())
    }

    /// Compares all keys with what it knows, after the cluster is whole again.
    ///
    /// # Errors
    /// An acknowledged request is missing, or a node does not answer.
    pub fn check(&mut self, routes: &Routes) -> Result<(), String> {
        let begin = Instant::now();
        let reading = loop {
            let connection = routes.find(&self.prefix, None);
            let reading =
                connection.and_then(|mut one| read(&mut one, &self.prefix).ok().flatten());
            match reading {
                Some(reading) => break reading,
                None if begin.elapsed() > PATIENCE => return Err("no node has the slot".into()),
                None => thread::sleep(PAUSE),
            }
        };
        self.history.check(&reading).map_err(|error| format!("{}: {error}", self.prefix))?;
        for connection in std::mem::take(&mut self.silent) {
            self.hear(connection)?;
        }
        Ok(())
    }

    /// Counts replies that come from a node that has lost the slot.
    fn hear(&mut self, mut connection: Connection) -> Result<(), String> {
        let begin = Instant::now();
        while !connection.is_idle() {
            let was_silent = connection.is_suspected();
            match connection.receive() {
                Ok((_, Answer::Refused(_))) => {}
                Ok((Waiting::Confirmation, Answer::Reply(Value::Integer(0)))) => {}
                Ok((waiting, Answer::Reply(reply))) => {
                    self.counts.late += 1;
                    self.counts.wrong += u64::from(was_silent);
                    let word = if was_silent { "wrong" } else { "late" };
                    let reply = reply.to_string();
                    println!("{word}, from {}: {reply:.60} to {waiting:.100?}", connection.address);
                }
                Err(error) if is_late(&error) && begin.elapsed() < PATIENCE => {}
                Err(error) if is_late(&error) => {
                    return Err(format!("{} does not answer", connection.address));
                }
                Err(_) => break,
            }
        }
        Ok(())
    }
}
