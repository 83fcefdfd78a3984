// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection of the load generator. It sends a batch of requests, and checks the replies as they
//! arrive. Nothing blocks: a server that stops reading until its replies are read is served.

use super::script::Script;
use super::target::{Link, Target};
use anyhow::{Context, Result, ensure};
use std::io::ErrorKind;
use std::ops::Range;
use std::time::Instant;

/// A connection with a batch of requests.
pub struct Connection {
    pub link: Link,
    /// Requests of the batch that are not answered.
    open: Range<usize>,
    /// Bytes of the script that are not sent.
    unsent: Range<usize>,
    batch: Range<usize>,
    asked: Instant,
    received: Vec<u8>,
    /// Bytes that were received, of which the first have been checked.
    filled: usize,
    checked: usize,
    compares: bool,
    /// Each receipt is a datagram, which may be late or one of two alike.
    is_lossy: bool,
}

impl Connection {
    /// Connects to a server. `compares` is whether values are compared.
    ///
    /// # Errors
    /// Nothing listens.
    pub fn open(target: &Target, compares: bool) -> Result<Self> {
        Ok(Self {
            link: Link::open(target)?,
            open: 0..0,
            unsent: 0..0,
            batch: 0..0,
            asked: Instant::now(),
            received: vec![],
            filled: 0,
            checked: 0,
            compares,
            is_lossy: target.is_lossy(),
        })
    }

    /// When the present batch was begun.
    pub fn asked(&self) -> Instant {
        self.asked
    }

    /// Returns whether the batch is answered.
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns whether requests wait for room.
    pub fn is_stuck(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Begins a batch.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn ask(&mut self, script: &Script, batch: Range<usize>, now: Instant) -> Result<()> {
        // One byte more shows that there is more than was asked for.
        let room = script.reply_bytes(&batch) + 1;
        if self.received.len() < room {
            self.received.resize(room, 0);
        }
        (self.filled, self.checked, self.asked) = (0, 0, now);
        self.unsent = 0..script.requests(&batch).len();
        self.open = batch.clone();
        self.batch = batch;
        self.send(script)
    }

    /// Sends what there is room for.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn send(&mut self, script: &Script) -> Result<()> {
        let requests = script.requests(&self.batch);
        while !self.unsent.is_empty() {
            match self.link.send(&requests[self.unsent.clone()]) {
                Ok(count) => self.unsent.start += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("a request cannot be sent"),
            }
        }
        Ok(())
    }

    /// Receives once; returns the number of replies that are complete by that.
    ///
    /// # Errors
    /// The server has closed the connection, or a reply is not what it has to be.
    pub fn receive(&mut self, script: &Script) -> Result<usize> {
        match self.link.receive(&mut self.received[self.filled..]) {
            Ok(0) => anyhow::bail!("the server has closed the connection instead of replying"),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(0),
            Err(error) => return Err(error).context("no reply"),
        }
        let received = &self.received[self.checked..self.filled];
        if self.is_lossy && !script.is_awaited(&self.open, received) {
            self.filled = self.checked;
            return Ok(0);
        }
        let replies = script.replies(&self.open, received, self.compares)?;
        self.checked += replies.bytes;
        self.open.start += replies.count;
        let is_surplus = self.filled > self.checked && (self.open.is_empty() || self.is_lossy);
        ensure!(!is_surplus, "the server has sent more than it was asked for");
        if self.is_lossy {
            (self.filled, self.checked) = (0, 0);
        }
        // One byte more shows that there is more than was asked for.
        let room = self.checked + replies.next_bytes + 1;
        if self.received.len() < room {
            self.received.resize(room, 0);
        }
        Ok(replies.count)
    }

    /// Gives up a batch that was begun before `when` and has no reply. Returns its requests without
    /// a reply.
    pub fn give_up(&mut self, when: Instant) -> Option<Lost> {
        if !self.is_lossy || self.is_done() || self.asked > when {
            return None;
        }
        let requests = self.open.len() as u64;
        self.open.start = self.open.end;
        self.unsent = 0..0;
        Some(Lost { requests, batch: self.batch.clone() })
    }
}

/// A batch of which something was lost.
pub struct Lost {
    /// Requests without a reply.
    pub requests: u64,
    /// All requests of the batch.
    pub batch: Range<usize>,
}
