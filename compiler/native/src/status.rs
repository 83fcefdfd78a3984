// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a run ended, and what a stalled graph waits for.

use freeport_ir::InstanceId;
use std::fmt;

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunStatus {
    /// All input is consumed, and nothing can fire.
    Idle,
    /// Items wait for room at an endpoint out of the graph.
    OutputFull,
    /// The recording is as long as the host wants it: it has to be taken before the graph goes on.
    RecordFull,
    /// Data waits, and neither more room nor the recording holds it up.
    Stalled(Stall),
    /// This instance is held by a breakpoint: it has just passed it, or nothing but what it is held
    /// from can go on.
    Breakpoint(InstanceId),
    /// Instances fire, and do nothing but ask for the time: run it again, after a while.
    Waiting,
    /// The graph can go on, but has had its share: run it again. Generators and loops come here.
    Budget,
}

/// What a stalled graph waits for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stall {
    /// Channels that hold their writers.
    pub full: Vec<StalledChannel>,
    /// Instances that have input and do not take it.
    pub waiting: Vec<WaitingInstance>,
}

/// A channel that is full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StalledChannel {
    /// Its ends, as `a.out -> b.in`.
    pub name: String,
    /// Items in it.
    pub fill: u32,
    /// Items that it may hold: at least its declared depth.
    pub depth: u32,
}

/// An instance that does not fire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitingInstance {
    /// Its name.
    pub name: String,
    /// The input ports that it waits for.
    pub mask: u64,
    /// The input ports that have an item, masked or not.
    pub ready: u64,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data waits that nothing takes")?;
        for channel in &self.full {
            write!(f, "\n  {} is full ({} of {})", channel.name, channel.fill, channel.depth)?;
        }
        for WaitingInstance { name, mask, ready } in &self.waiting {
            write!(f, "\n  {name} waits for ports {mask:#b} and has items at {ready:#b}")?;
        }
        Ok(())
    }
}
