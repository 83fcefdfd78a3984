// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subjects of measurement.

use super::connections::connections;
use crate::between::channel::{Open, pipes, tcp, unix};
use crate::between::limits::{bare_rings, cache_lines};
use crate::between::measure::{Idle, Plan, copy, idle, round_trips, stream};
use crate::between::rounds::Carrier;
use crate::between::wait::Wait;
use crate::harness::histogram::Histogram;
use anyhow::{Result, bail};
use freeport_fabric::wait::Waiting;
use std::time::Duration;

/// A channel between processes, or a limit of such channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// Freeport's connections over shared memory, with ends that never sleep.
    Awake,
    /// Freeport's connections with default settings: ends sleep after some time without data.
    Sleeping,
    /// TCP on the loopback interface.
    Tcp,
    /// Unix stream sockets.
    Unix,
    /// Pipes.
    Pipe,
    /// A ring without headers or checks.
    BareRing,
    /// A word in each direction.
    CacheLine,
    /// A copy of the bytes within one process.
    Copy,
}

impl Subject {
    /// Subjects with round trips, Freeport first.
    pub const OF_LATENCY: [Self; 7] = [
        Self::Awake,
        Self::Sleeping,
        Self::Tcp,
        Self::Unix,
        Self::Pipe,
        Self::BareRing,
        Self::CacheLine,
    ];
    /// Subjects with throughput, Freeport first.
    pub const OF_THROUGHPUT: [Self; 7] = [
        Self::Awake,
        Self::Sleeping,
        Self::Tcp,
        Self::Unix,
        Self::Pipe,
        Self::BareRing,
        Self::Copy,
    ];
    /// Subjects with a wait of their own, the default first.
    pub const OF_IDLE: [Self; 5] = [Self::Sleeping, Self::Awake, Self::Tcp, Self::Unix, Self::Pipe];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Awake => "freeport, awake",
            Self::Sleeping => "freeport",
            Self::Tcp => "TCP",
            Self::Unix => "AF_UNIX stream",
            Self::Pipe => "pipe",
            Self::BareRing => "bare ring (limit)",
            Self::CacheLine => "cache line (limit)",
            Self::Copy => "memory copy (limit)",
        }
    }
}

impl Carrier for Subject {
    fn name(&self) -> &'static str {
        Self::name(*self)
    }

    fn round_trips(&self, plan: &Plan, wait: Wait) -> Result<Histogram> {
        match self {
            Self::Awake => round_trips(connections(wait.of_freeport())?, plan),
            Self::Sleeping => round_trips(connections(Waiting::default())?, plan),
            Self::Tcp => round_trips(tcp(plan.buffer_bytes())?, plan),
            Self::Unix => round_trips(unix(plan.buffer_bytes())?, plan),
            Self::Pipe => round_trips(pipes()?, plan),
            Self::BareRing => round_trips(bare_rings(wait)?, plan),
            Self::CacheLine => round_trips(cache_lines(wait)?, plan),
            Self::Copy => bail!("a copy has no round trips"),
        }
    }

    fn stream(&self, plan: &Plan, wait: Wait) -> Result<Duration> {
        match self {
            Self::Awake => stream(pairs(plan, || connections(wait.of_freeport()))?, plan),
            Self::Sleeping => stream(pairs(plan, || connections(Waiting::default()))?, plan),
            Self::Tcp => stream(pairs(plan, || tcp(plan.buffer_bytes()))?, plan),
            Self::Unix => stream(pairs(plan, || unix(plan.buffer_bytes()))?, plan),
            Self::Pipe => stream(pairs(plan, pipes)?, plan),
            Self::BareRing => stream(pairs(plan, || bare_rings(wait))?, plan),
            Self::CacheLine => bail!("a cache line carries nothing"),
            Self::Copy => copy(plan),
        }
    }

    fn idle(&self, plan: &Plan, wait: Wait, time: Duration) -> Result<Idle> {
        match self {
            Self::Awake => idle(connections(wait.of_freeport())?, plan, time),
            Self::Sleeping => idle(connections(Waiting::default())?, plan, time),
            Self::Tcp => idle(tcp(plan.buffer_bytes())?, plan, time),
            Self::Unix => idle(unix(plan.buffer_bytes())?, plan, time),
            Self::Pipe => idle(pipes()?, plan, time),
            Self::BareRing | Self::CacheLine | Self::Copy => bail!("a limit does not wait"),
        }
    }
}

type Pair<C> = [Open<C>; 2];

fn pairs<C>(plan: &Plan, make: impl Fn() -> Result<Pair<C>>) -> Result<Vec<Pair<C>>> {
    plan.cores.iter().map(|_| make()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::between::placement::Placement;

    #[test]
    fn all_carry_every_byte_of_messages_of_all_sizes() {
        let allowed = crate::harness::machine::allowed_cores();
        let cores = Placement::Same.cores(2, &allowed).expect("a core");
        for size in [8, 1_001, 200_000] {
            let plan = Plan { size, messages: 20, is_full_check: true, cores: cores.clone() };
            for subject in Subject::OF_LATENCY {
                let trips = subject.round_trips(&plan, Wait::Yield).expect("bytes go to and fro");
                assert_eq!(trips.len(), 20, "{}", subject.name());
            }
            for subject in Subject::OF_THROUGHPUT {
                let time = subject.stream(&plan, Wait::Yield).expect("bytes arrive");
                assert!(!time.is_zero(), "{}", subject.name());
            }
            for subject in Subject::OF_IDLE {
                let silence = Duration::from_millis(1);
                let idle = subject.idle(&plan, Wait::Yield, silence).expect("a message arrives");
                assert!(!idle.trip.is_zero(), "{}", subject.name());
            }
        }
    }
}
