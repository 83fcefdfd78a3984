// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who is measured, and where its processes are.

use super::channel::{Open, pipes, tcp, unix};
use super::connections::connections;
use super::limits::{bare_rings, cache_lines};
use super::measure::{Idle, Plan, copy, idle, round_trips, stream};
use super::wait::Wait;
use crate::histogram::Histogram;
use anyhow::{Context, Result, bail, ensure};
use freeport_fabric::wait::Waiting;
use std::time::Duration;

/// A way to move bytes from process to process, or what limits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// Freeport's connections over shared memory, with ends that never sleep.
    Awake,
    /// The same as they are by default: ends that find nothing for some time sleep.
    Sleeping,
    /// TCP on the loopback interface.
    Tcp,
    /// A stream of the UNIX domain.
    Unix,
    /// Pipes.
    Pipe,
    /// A ring without headers or checks.
    BareRing,
    /// One word each way.
    CacheLine,
    /// A copy of the bytes, by one process.
    Copy,
}

impl Subject {
    /// All that have round trips, ours first.
    pub const OF_LATENCY: [Self; 7] = [
        Self::Awake,
        Self::Sleeping,
        Self::Tcp,
        Self::Unix,
        Self::Pipe,
        Self::BareRing,
        Self::CacheLine,
    ];
    /// All that have a throughput, ours first.
    pub const OF_THROUGHPUT: [Self; 7] = [
        Self::Awake,
        Self::Sleeping,
        Self::Tcp,
        Self::Unix,
        Self::Pipe,
        Self::BareRing,
        Self::Copy,
    ];
    /// All that wait in some way of their own, the default first.
    pub const OF_IDLE: [Self; 5] = [Self::Sleeping, Self::Awake, Self::Tcp, Self::Unix, Self::Pipe];

    /// What to call it.
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

    /// Sends messages to and fro.
    ///
    /// # Errors
    /// What kept it from working.
    pub fn round_trips(self, plan: &Plan, wait: Wait) -> Result<Histogram> {
        match self {
            Self::Awake => round_trips(connections(wait.of_freeport())?, plan),
            Self::Sleeping => round_trips(connections(Waiting::default())?, plan),
            Self::Tcp => round_trips(tcp(buffer_bytes(plan))?, plan),
            Self::Unix => round_trips(unix(buffer_bytes(plan))?, plan),
            Self::Pipe => round_trips(pipes()?, plan),
            Self::BareRing => round_trips(bare_rings(wait)?, plan),
            Self::CacheLine => round_trips(cache_lines(wait)?, plan),
            Self::Copy => bail!("nothing goes to and fro in a copy"),
        }
        .context(self.name())
    }

    /// Sends messages one way; gives how long that took.
    ///
    /// # Errors
    /// What kept it from working.
    pub fn stream(self, plan: &Plan, wait: Wait) -> Result<Duration> {
        match self {
            Self::Awake => stream(pairs(plan, || connections(wait.of_freeport()))?, plan),
            Self::Sleeping => stream(pairs(plan, || connections(Waiting::default()))?, plan),
            Self::Tcp => stream(pairs(plan, || tcp(buffer_bytes(plan)))?, plan),
            Self::Unix => stream(pairs(plan, || unix(buffer_bytes(plan)))?, plan),
            Self::Pipe => stream(pairs(plan, pipes)?, plan),
            Self::BareRing => stream(pairs(plan, || bare_rings(wait))?, plan),
            Self::CacheLine => bail!("a cache line carries nothing"),
            Self::Copy => copy(plan),
        }
        .context(self.name())
    }

    /// Says nothing for a time.
    ///
    /// # Errors
    /// What kept it from working.
    pub fn idle(self, plan: &Plan, wait: Wait, time: Duration) -> Result<Idle> {
        match self {
            Self::Awake => idle(connections(wait.of_freeport())?, plan, time),
            Self::Sleeping => idle(connections(Waiting::default())?, plan, time),
            Self::Tcp => idle(tcp(buffer_bytes(plan))?, plan, time),
            Self::Unix => idle(unix(buffer_bytes(plan))?, plan, time),
            Self::Pipe => idle(pipes()?, plan, time),
            Self::BareRing | Self::CacheLine | Self::Copy => bail!("a limit has no way to wait"),
        }
        .context(self.name())
    }
}

/// What the kernel may keep of a stream: what was found to serve sockets best. On two cores, a few
/// of the longest writes; on one, what stays in its cache between the two processes.
fn buffer_bytes(plan: &Plan) -> i32 {
    let is_on_one_core = plan.cores.iter().any(|[near, far]| near == far);
    if is_on_one_core { 256 << 10 } else { 4 << 20 }
}

type Pair<C> = [Open<C>; 2];

fn pairs<C>(plan: &Plan, make: impl Fn() -> Result<Pair<C>>) -> Result<Vec<Pair<C>>> {
    plan.cores.iter().map(|_| make()).collect()
}

/// Where the two processes of a pair are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Placement {
    /// On two cores
    Across,
    /// Both on one core
    Same,
}

impl Placement {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Across, Self::Same];

    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Across => "across two cores",
            Self::Same => "on the same core",
        }
    }

    /// The same for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Across => "across",
            Self::Same => "same",
        }
    }

    /// The cores of so many pairs: as many different ones as there are.
    ///
    /// # Errors
    /// There is only one core, and two are wanted.
    pub fn cores(self, pairs: usize, allowed: &[usize]) -> Result<Vec<[usize; 2]>> {
        ensure!(!allowed.is_empty(), "the system does not say which cores there are");
        ensure!(self == Self::Same || allowed.len() > 1, "there is only one core");
        let core = |at: usize| allowed[at % allowed.len()];
        Ok((0..pairs)
            .map(|pair| match self {
                Self::Across => [core(2 * pair), core(2 * pair + 1)],
                Self::Same => [core(pair); 2],
            })
            .collect())
    }

    /// How processes wait when so many pairs are placed so: without a core of his own, nobody may
    /// keep it.
    pub fn wait(self, pairs: usize, allowed: &[usize]) -> Wait {
        match self {
            Self::Across if 2 * pairs <= allowed.len() => Wait::Spin,
            _ => Wait::Yield,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_spread_over_the_cores() {
        let across = Placement::Across.cores(2, &[3, 5, 7]).expect("three cores");
        assert_eq!(across, [[3, 5], [7, 3]]);
        assert_eq!(Placement::Same.cores(3, &[3, 5]).expect("cores"), [[3; 2], [5; 2], [3; 2]]);
        assert!(Placement::Across.cores(1, &[3]).is_err());
        assert_eq!(Placement::Across.wait(2, &[3, 5, 7]), Wait::Yield);
        assert_eq!(Placement::Across.wait(1, &[3, 5]), Wait::Spin);
        assert_eq!(Placement::Same.wait(1, &[3, 5]), Wait::Yield);
    }

    #[test]
    fn all_carry_every_byte_of_messages_of_all_sizes() {
        let allowed = crate::machine::allowed_cores();
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
