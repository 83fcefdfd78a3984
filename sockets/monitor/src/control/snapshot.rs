// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The monitor's state at one time, as plain data: one type per question. The monitor makes it
//! between two messages, and leaves out what the user may not see.

use crate::activity::Counts;
use crate::kept::Kept;
use crate::ledger::{EndNote, Ledger, Refusal};
use crate::process::Process;
use crate::slab::Words;
use std::time::Instant;

/// A connection with a slot.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'m> {
    /// Number of its slab.
    pub slab: u32,
    /// Number of its slot in the slab.
    pub slot: u32,
    /// Its two ends, the first side first.
    pub ends: &'m [EndNote; 2],
    /// Time at which it got the slot.
    pub since: Instant,
    /// Words that the two sides have written.
    pub words: [Words; 2],
}

/// A member.
#[derive(Clone, Copy, Debug)]
pub struct Program<'m> {
    /// Process of the member.
    pub process: &'m Process,
    /// Sockets that it keeps in the kernel.
    pub kept: &'m Kept,
    /// Counts of its connections that have ended: TCP, then Unix sockets.
    pub ended: &'m [Counts; 2],
}

/// Everything a user may see.
#[derive(Clone, Debug)]
pub struct Listing<'m> {
    /// Connections with an end that the user may see.
    pub connections: Vec<Connection<'m>>,
    /// Most recent refusals, newest first.
    pub refusals: Vec<&'m Refusal>,
    /// Members.
    pub programs: Vec<Program<'m>>,
}

/// Counters of the monitor.
#[derive(Clone, Copy)]
pub struct Statistics<'m> {
    /// Start time of the monitor.
    pub begun: Instant,
    /// Counters of past events.
    pub ledger: &'m Ledger,
    /// Number of members.
    pub members: usize,
    /// Number of connections with a slot.
    pub connections: usize,
    /// Number of connections made over an existing stream, after the first of each.
    pub reused: u64,
    /// Number of slabs.
    pub slabs: usize,
    /// Number of bytes of all slabs.
    pub slab_bytes: u64,
    /// Counts of passed sockets.
    pub passed: Passed,
}

/// Counts of sockets that were passed to another process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Number of passed sockets that the monitor keeps track of.
    pub sockets: usize,
    /// Number of passes.
    pub times: u64,
    /// Number of sockets dropped from the table for lack of room.
    pub forgotten: u64,
}

/// State of one socket.
#[derive(Clone, Debug)]
pub struct Known<'m> {
    /// The member that the question is about.
    pub program: Option<Program<'m>>,
    /// Its connection, if it has a slot.
    pub connection: Option<Connection<'m>>,
    /// Whether its claim waits for the claim of the other end.
    pub is_waiting: bool,
    /// Its most recent refusal, if it was refused.
    pub refusal: Option<&'m Refusal>,
}
