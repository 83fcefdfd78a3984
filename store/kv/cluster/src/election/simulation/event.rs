// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The things that happen in a simulation.

use std::time::Duration;

use crate::election::{Leader, Swap};
use crate::id::NodeId;
use crate::registry::{Presence, RegistryError, Revision, State, SwapError};

/// Something that happens.
#[derive(Debug)]
pub enum Event {
    /// The agent of a node runs, unless it was woken since.
    Run(u64),
    /// A call takes effect. Its answer takes a time until it is with a process, or is lost.
    Effect(Call, Option<(Duration, u64)>),
    /// A call is answered.
    Answer(Answer),
    /// A node looks at the registry.
    Watch,
    /// A change of the part of a node is done.
    Change(Change),
    /// A replica gets changes.
    Pull,
    /// A primary gets a confirmation from a replica.
    Confirm(NodeId, usize),
    /// A client of the shard of a node writes.
    Write,
    /// The lease of a node may have ended.
    Expire,
    /// A node starts.
    Start,
    /// A node has a fault.
    Fault,
    /// A node reaches the registry again.
    Join,
    /// Two nodes reach each other again.
    Connect(usize),
}

/// A call of the registry.
#[derive(Debug)]
pub enum Call {
    /// Read it.
    Read,
    /// Prolong the lease, by a call that began at a time.
    Keep(Presence, Duration),
    /// Replace the topology.
    Swap(Box<Swap>),
    /// End the lease.
    Leave(u64),
}

/// An answer of the registry.
#[derive(Debug)]
pub enum Answer {
    /// The contents, or nothing.
    Read(Option<State>),
    /// The lease was prolonged.
    Keep(Presence, Duration, Result<(), RegistryError>),
    /// The topology was replaced.
    Swap(Result<Revision, SwapError>),
}

/// A change of the part of a node.
#[derive(Debug)]
pub enum Change {
    /// It leads.
    Lead(u64),
    /// It follows.
    Follow(Leader),
    /// It does neither.
    Seal,
    /// Clients wait.
    Stop,
}
