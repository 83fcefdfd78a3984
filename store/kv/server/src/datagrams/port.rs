// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A socket with its clients, and the replies that are on their way to them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use freeport_kv_datagrams::{BATCH, Inbox, Outbox, Sent, Socket};
use freeport_kv_journal::Position;
use freeport_kv_protocol::batch::{HEADER_BYTES, Operations, write_error};

use super::division::divide;
use super::greeting::Greeting;
use super::held::Held;
use super::pending::Pending;
use super::sessions::Sessions;
use super::token::Secret;
use crate::client::Client;
use crate::statistics::Statistics;
use crate::worker::BatchGathering;

/// Bytes of a packet's replies for which memory is kept.
const KEPT_BYTES: usize = 1 << 20;
/// Refusals of a datagram whose token is not that of its sender. The second one fits in the answer
/// to every datagram that has a token.
const NO_SESSION: [&str; 2] = ["there is no session with this token: say hello", "no token"];

/// A socket with its clients.
#[derive(Debug)]
pub struct Port {
    /// The socket.
    pub(super) socket: Socket,
    /// Its address.
    pub(super) address: SocketAddr,
    /// The key of its tokens.
    pub(super) secret: Secret,
    /// Its clients.
    pub sessions: Sessions<Greeting, Box<Client>>,
    /// Datagrams with keys of other workers.
    pub pending: Pending<Box<BatchGathering>>,
    /// The socket may have more datagrams.
    pub is_readable: bool,
    /// The operations of a datagram.
    pub operations: Operations,
    /// Replies to them.
    pub replies: Vec<u8>,
    part: Vec<u8>,
    outbox: Outbox,
    held: Option<Held>,
}

impl Port {
    /// The socket of a number, without clients.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(number: usize, socket: Socket) -> io::Result<Self> {
        Ok(Self {
            address: socket.address()?,
            socket,
            secret: Secret::new()?,
            sessions: Sessions::default(),
            pending: Pending::new(number),
            is_readable: true,
            operations: Operations::default(),
            replies: vec![],
            part: vec![],
            outbox: Outbox::default(),
            held: None,
        })
    }

    /// Number of the socket.
    pub(super) fn descriptor(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// There may be datagrams, and room for what becomes of them.
    pub fn may_receive(&self) -> bool {
        self.is_readable && self.pending.has_room(BATCH)
    }

    /// Receives datagrams. Returns false if there are none for now.
    pub fn receive(&mut self, inbox: &mut Inbox) -> bool {
        if !self.may_receive() {
            return false;
        }
        match inbox.receive(&self.socket) {
            Ok(count) => {
                // The next event reports more only if these were all.
                self.is_readable = count == BATCH;
                true
            }
            // Other errors belong to one datagram, and are reported once.
            Err(error) => {
                self.is_readable = error.kind() != io::ErrorKind::WouldBlock;
                false
            }
        }
    }

    /// Replies wait for the append log from now on.
    pub fn hold_replies(&mut self) {
        self.held = Some(Held::default());
    }

    /// Sends the replies to a datagram at the next [`Port::send`], or when the log releases them,
    /// as datagrams of at most `longest` bytes.
    pub fn reply(
        &mut self,
        (target, longest): (SocketAddr, usize),
        has_written: bool,
        statistics: &Statistics,
    ) {
        let Self { replies, part, outbox, held, .. } = self;
        divide(replies, longest, part, |datagram| match held {
            None => outbox.push(target, datagram),
            Some(held) => {
                let is_kept = held.push(target, datagram, has_written);
                statistics.datagrams.dropped.add(u64::from(!is_kept));
            }
        });
        if self.replies.capacity() > KEPT_BYTES {
            self.replies = vec![];
        }
    }

    /// Answers a datagram of somebody who has shown nothing, by a packet in `replies` that is not
    /// longer than the datagram. It depends on no change.
    pub(super) fn answer_unknown(&mut self, target: SocketAddr) {
        self.outbox.push(target, &self.replies);
    }

    /// Refuses a datagram whose token is not that of its sender.
    pub fn refuse(&mut self, sender: SocketAddr, batch: u32, bytes: usize) {
        let room = bytes.saturating_sub(HEADER_BYTES);
        let text = NO_SESSION.into_iter().find(|text| text.len() <= room);
        self.replies.clear();
        write_error(&mut self.replies, batch, text.unwrap_or_default());
        self.answer_unknown(sender);
    }

    /// Sends what need not wait.
    pub fn send(&mut self, statistics: &Statistics) {
        if !self.outbox.is_empty() {
            count(self.outbox.send(&self.socket), statistics);
        }
    }

    /// A turn has ended, and with it the log: replies are sent as far as it has released them.
    pub fn release(&mut self, end: Position, released: (Position, bool), statistics: &Statistics) {
        let Self { held: Some(held), socket, .. } = self else { return };
        held.end_turn(end);
        held.release(released, |outbox| count(outbox.send(socket), statistics));
    }

    /// Drops all replies that wait for the log.
    pub fn drop_held(&mut self, statistics: &Statistics) {
        if let Some(held) = &mut self.held {
            statistics.datagrams.dropped.add(held.clear() as u64);
        }
    }

    /// Replies wait for the log.
    pub fn is_waiting(&self) -> bool {
        self.held.as_ref().is_some_and(Held::is_waiting)
    }
}

/// Counts datagrams.
fn count(sent: Sent, statistics: &Statistics) {
    statistics.datagrams.replies.add(sent.sent);
    statistics.datagrams.dropped.add(sent.dropped);
    statistics.sent_bytes.add(sent.bytes);
}
