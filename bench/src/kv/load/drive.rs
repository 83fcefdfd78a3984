// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loop of a load: each connection sends its next batch when the previous one is answered.
//! Connections over sockets are waited for. Those over the fabric are polled, and waited for after
//! many polls that found nothing.

use super::connection::Connection;
use super::script::Script;
use super::tally::{Cursor, Tally};
use super::{Plan, Progress, Span};
use crate::sockets::peer::epoll::Epoll;
use anyhow::{Result, ensure};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// Time limit for a reply.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two reports, and longest wait without one.
const TICK: Duration = Duration::from_millis(100);
/// Time after which a reply by datagrams is lost.
const LOST_AFTER: Duration = Duration::from_millis(500);
/// Polls in vain before others may use the core between two of them: the server may have no other.
const POLLS_ALONE: u32 = 4_000;
/// Polls in vain before connections are waited for: waiting takes system calls, on both sides. On a
/// busy machine, each poll that lets others work may take milliseconds, so there are few of them.
const POLLS: u32 = POLLS_ALONE + 40;

/// A load under way.
pub struct Drive<'a> {
    script: &'a Script,
    cursor: Cursor,
    tally: &'a mut Tally,
    connections: Vec<Connection>,
    epoll: Epoll,
    is_polled: bool,
    /// Whether requests without a reply are sent again.
    repeats: bool,
    /// Number of connections that wait for replies.
    busy: usize,
    /// Polls in vain since something arrived.
    idle: u32,
    reported: Instant,
    heard: Instant,
}

impl<'a> Drive<'a> {
    /// Connects.
    ///
    /// # Errors
    /// Nothing listens.
    pub fn new(script: &'a Script, plan: &Plan<'_>, tally: &'a mut Tally) -> Result<Self> {
        let epoll = Epoll::new()?;
        let mut connections = vec![];
        for number in 0..plan.connections {
            let connection = Connection::open(plan.target, plan.compares)?;
            epoll.add(&connection.link, number)?;
            connections.push(connection);
        }
        let cursor = Cursor::new(script, plan);
        let (now, is_polled) = (tally.now, plan.target.is_polled());
        let own = Self {
            script,
            cursor,
            tally,
            connections,
            epoll,
            is_polled,
            repeats: plan.span == Span::Once,
            busy: 0,
            idle: 0,
            reported: now,
            heard: now,
        };
        Ok(own)
    }

    /// Works until all is sent and answered, or `watch` says that it shall end.
    ///
    /// # Errors
    /// A connection fails, or a reply is missing or not what it has to be.
    pub fn run(mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<()> {
        for number in 0..self.connections.len() {
            self.ask(number)?;
        }
        while self.busy > 0 {
            self.turn()?;
            let now = self.tally.now;
            if now - self.reported >= TICK {
                self.reported = now;
                let waited = now - self.heard;
                ensure!(waited < PATIENCE, "no reply within {} s", PATIENCE.as_secs());
                let progress = Progress { answered: self.tally.measured() };
                if !watch(&progress) {
                    break;
                }
                self.give_up(now)?;
            }
        }
        Ok(())
    }

    /// Serves the connections that may have received something.
    fn turn(&mut self) -> Result<()> {
        let waits = !self.is_polled || (self.idle >= POLLS && self.arm()?);
        if self.is_polled && self.idle >= POLLS_ALONE {
            yield_now();
        }
        if waits {
            let ready = self.epoll.wait(TICK.as_millis() as i32)?;
            if ready.is_empty() {
                self.tally.now = Instant::now();
            }
            if !self.is_polled {
                return ready.into_iter().try_for_each(|number| self.serve(number));
            }
        }
        (0..self.connections.len()).try_for_each(|number| {
            match self.connections[number].is_done() {
                true => Ok(()),
                false => self.serve(number),
            }
        })
    }

    /// Prepares all connections for a wait; returns whether none has anything to do.
    fn arm(&mut self) -> Result<bool> {
        self.idle = 0;
        for connection in &mut self.connections {
            let room = connection.is_stuck();
            if !connection.link.arm(room)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends and receives on a connection.
    fn serve(&mut self, number: usize) -> Result<()> {
        let connection = &mut self.connections[number];
        if connection.is_stuck() {
            connection.send(self.script)?;
            if !self.is_polled {
                self.epoll.change(&connection.link, number, connection.is_stuck())?;
            }
        }
        let replies = connection.receive(self.script)?;
        if replies == 0 {
            self.idle += 1;
            return Ok(());
        }
        self.idle = 0;
        self.tally.count(replies as u64, connection.asked());
        self.heard = self.tally.now;
        if connection.is_done() {
            self.busy -= 1;
            self.ask(number)?;
        }
        Ok(())
    }

    /// Continues without replies that are lost. If all requests have to be executed, theirs are
    /// sent again.
    fn give_up(&mut self, now: Instant) -> Result<()> {
        for number in 0..self.connections.len() {
            let connection = &mut self.connections[number];
            let when = now.checked_sub(LOST_AFTER);
            let Some(lost) = when.and_then(|when| connection.give_up(when)) else { continue };
            self.tally.lost += lost.requests;
            if self.repeats {
                self.tally.requests += lost.batch.len() as u64;
                connection.ask(self.script, lost.batch, now)?;
            } else {
                self.busy -= 1;
                self.ask(number)?;
            }
        }
        Ok(())
    }

    /// Sends the next batch of a connection, if there is one.
    fn ask(&mut self, number: usize) -> Result<()> {
        if self.tally.is_over() {
            return Ok(());
        }
        let Some(batch) = self.cursor.next() else { return Ok(()) };
        self.tally.requests += batch.len() as u64;
        let connection = &mut self.connections[number];
        connection.ask(self.script, batch, self.tally.now)?;
        if connection.is_stuck() && !self.is_polled {
            self.epoll.change(&connection.link, number, true)?;
        }
        self.busy += 1;
        Ok(())
    }
}
