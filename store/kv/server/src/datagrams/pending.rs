// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams with keys of other workers, whose replies have not all come.

use std::collections::HashMap;
use std::net::SocketAddr;

/// Such datagrams of a socket at most. No others are received meanwhile; the system keeps them.
const PENDING_MAX: usize = 1_024;
/// Tickets are no numbers of clients.
const TICKETS: u64 = 1 << 63;

/// Datagrams that are under way, by ticket. `G` gathers the replies of one.
#[derive(Debug)]
pub struct Pending<G> {
    all: HashMap<u64, Underway<G>>,
    last_ticket: u64,
}

/// A datagram that is under way.
#[derive(Debug)]
pub struct Underway<G> {
    /// Its client, and the bytes of the longest datagram that the client receives.
    pub target: (SocketAddr, usize),
    /// It has changed something that is in the append log.
    pub has_written: bool,
    /// Replies that have come.
    pub gathering: G,
}

impl<G> Pending<G> {
    /// None, with tickets of their own for a socket of a worker.
    pub fn new(socket: usize) -> Self {
        Self { all: HashMap::new(), last_ticket: TICKETS | (socket as u64) << 48 }
    }

    /// Another batch of datagrams may be under way too.
    pub fn has_room(&self, batch: usize) -> bool {
        self.all.len() + batch <= PENDING_MAX
    }

    /// A ticket that no other datagram has.
    pub fn next_ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// A datagram is under way.
    pub fn insert(&mut self, ticket: u64, underway: Underway<G>) {
        self.all.insert(ticket, underway);
    }

    /// A datagram that is under way.
    pub fn get_mut(&mut self, ticket: u64) -> Option<&mut Underway<G>> {
        self.all.get_mut(&ticket)
    }

    /// All replies to a datagram have come.
    pub fn remove(&mut self, ticket: u64) -> Option<Underway<G>> {
        self.all.remove(&ticket)
    }
}
