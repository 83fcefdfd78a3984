// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Leases and elections: what a node does when, without any input or output.
//!
//! 1. A node begins a lease, and prolongs it. Before the registry can end it, the node stops to
//!    serve by its own clock.
//! 2. The primary of a shard has a term of its own for every lease: when it has one, it counts up
//!    the term in the topology, and serves only then. So a term is one uninterrupted lease.
//! 3. A replica that sees the primary of a term without a lease *seals* the term: it takes no more
//!    changes of it, and publishes its last position. It never unseals a term.
//! 4. When all replicas with a lease have sealed the term, [`verdict`] names the best of them. It
//!    replaces the topology, which makes it the primary of a new term.
//! 5. A planned change is the primary's: it stops commands, lets the replica catch up, and names it
//!    in the topology.
//!
//! An [`Agent`] gives one [`Action`] at a time, and is told its result. All decisions take effect
//! by compare-and-swap of the topology, so an agent that has seen an old state does no harm.

mod acting;
mod agent;
mod ballot;
mod change;
mod lease;
mod publishing;
mod role;
#[cfg(test)]
mod simulation;

pub use agent::{Action, Agent, Facts, Leader, Me, Swap};
pub use ballot::{Verdict, verdict};
