// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the monitor knows at one time, as plain data: one kind for each question. The monitor makes
//! it between two messages, and leaves out what the user may not see.

use crate::activity::Counts;
use crate::kept::Kept;
use crate::ledger::{EndNote, Ledger, Refusal};
use crate::process::Process;
use crate::slab::Words;
use std::time::Instant;

/// A connection that has a slot.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'m> {
    /// Number of its slab.
    pub slab: u32,
    /// Number of its slot in the slab.
    pub slot: u32,
    /// Its two ends, the first side first.
    pub ends: &'m [EndNote; 2],
    /// When it was given the slot.
    pub since: Instant,
    /// What both sides have written.
    pub words: [Words; 2],
}

/// A member.
#[derive(Clone, Copy, Debug)]
pub struct Program<'m> {
    /// Its process.
    pub process: &'m Process,
    /// What it keeps in the kernel.
    pub kept: &'m Kept,
    /// What it has counted in connections that have ended: TCP's, and those of Unix sockets.
    pub ended: &'m [Counts; 2],
}

/// Everything that a user may see.
#[derive(Clone, Debug)]
pub struct Listing<'m> {
    /// Connections of which the user may see an end.
    pub connections: Vec<Connection<'m>>,
    /// The last refusals, the newest first.
    pub refusals: Vec<&'m Refusal>,
    /// Members.
    pub programs: Vec<Program<'m>>,
}

/// What was counted.
#[derive(Clone, Copy)]
pub struct Statistics<'m> {
    /// When the monitor began.
    pub begun: Instant,
    /// Counters of what has happened.
    pub ledger: &'m Ledger,
    /// Number of members.
    pub members: usize,
    /// Number of connections that have a slot.
    pub connections: usize,
    /// Number of connections that were made over their streams besides the first of each.
    pub reused: u64,
    /// Number of slabs.
    pub slabs: usize,
    /// Number of bytes that the slabs take.
    pub slab_bytes: u64,
    /// Sockets that were passed on.
    pub passed: Passed,
}

/// Counts of sockets that were passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Number of sockets that are known to have been passed on.
    pub sockets: usize,
    /// How often one was passed on.
    pub times: u64,
    /// Number of sockets that were forgotten for lack of room.
    pub forgotten: u64,
}

/// What is known of one socket.
#[derive(Clone, Debug)]
pub struct Known<'m> {
    /// The member that was asked about.
    pub program: Option<Program<'m>>,
    /// Its connection, if it has a slot.
    pub connection: Option<Connection<'m>>,
    /// Whether it waits for the claim of the other end.
    pub is_waiting: bool,
    /// The last refusal, if it was refused.
    pub refusal: Option<&'m Refusal>,
}
