// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cost of many open connections and their message rate: pairs of programs that hold thousands
//! each, beside the same pairs with a few.

use super::carriers::argue;
use super::launcher::{Launcher, Mode};
use super::peer::{MESSAGE_BYTES, Role};
use super::programs::Program;
use crate::between::aims::{at_least, at_most};
use crate::between::desk::Desk;
use crate::between::shared::Shared;
use crate::harness::metrics::{Metric, MetricResult, Series, cost, rate};
use crate::harness::report::Traffic;
use anyhow::{Context, Result, ensure};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Metrics of a round.
const METRICS: [Metric; 10] = [
    rate("accelerated", "connections", "accelerated"),
    cost("ready", "s", "opened and used"),
    rate("messages", "messages/s", "all in turn"),
    cost("round_trip", "us", "round trip, median"),
    cost("memory", "MiB", "memory, altogether"),
    cost("programs", "MiB", "of it programs (PSS)"),
    cost("shared", "MiB", "of it shared (Shmem)"),
    cost("kernel_objects", "MiB", "of it Slab"),
    cost("page_tables", "MiB", "of it PageTables"),
    cost("kernel_stacks", "MiB", "of it KernelStack"),
];
/// Indices of the metrics that have aims.
const MESSAGES: usize = 2;
const MEMORY: usize = 4;

/// Number of pairs of programs, and for `--quick`.
const PAIRS: usize = 10;
const QUICK_PAIRS: usize = 2;
/// Connections per pair.
pub const CONNECTIONS: u32 = 10_000;
pub const QUICK_CONNECTIONS: u32 = 200;
/// Connections per pair where they are few.
const FEW: usize = 10;
/// Aim for the memory of all connections together, in MiB.
const MEMORY_MAX: f64 = 2048.0;
/// Number of connections that the aim applies to.
const AIMED_AT: usize = 100_000;
/// Time limit until all connections are open and have been used.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time for outstanding work after all programs have become silent.
const SETTLING: Duration = Duration::from_millis(500);
/// Interval between two polls.
const LOOKING: Duration = Duration::from_millis(5);

/// Number of connections, and the time for which they are used.
#[derive(Clone, Copy)]
pub struct Plan {
    pairs: usize,
    connections: usize,
    time: Duration,
}

impl Plan {
    /// Creates a plan with this number of connections per pair.
    pub fn new(connections: usize, time: Duration, is_quick: bool) -> Self {
        Self { pairs: if is_quick { QUICK_PAIRS } else { PAIRS }, connections, time }
    }

    /// Measures few and many connections, plain and accelerated, `rounds` times.
    ///
    /// # Errors
    /// A program fails.
    pub fn measure(
        self,
        launcher: &Launcher,
        rounds: u32,
        folder: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<MetricResult>> {
        let few = Self { connections: FEW.min(self.connections), ..self };
        let of = |plan: Self| {
            progress(&format!("{} open connections", plan.all()));
            plan.result(launcher, rounds, folder)
        };
        [few, self].into_iter().map(of).collect()
    }

    fn all(self) -> usize {
        self.pairs * self.connections
    }

    fn result(self, launcher: &Launcher, rounds: u32, folder: &Path) -> Result<MetricResult> {
        let accelerated = launcher.accelerated();
        let empty = |mode: Mode| Series { name: mode.name(), rounds: vec![] };
        let mut series: Vec<Series> = Mode::ALL.map(empty).into();
        for _ in 0..rounds {
            for mode in launcher.modes() {
                let what = || format!("{} open connections, {}", self.all(), mode.name());
                let round = self.round(launcher, *mode, folder).with_context(what)?;
                let own = series.iter_mut().find(|it| it.name == mode.name());
                own.context("a mode has no series")?.rounds.push(round);
            }
        }
        Ok(MetricResult {
            bench: "sockets",
            case: "connections".into(),
            traffic: Traffic::Requests {
                value_bytes: MESSAGE_BYTES,
                connections: self.all(),
                pipeline: 1,
                workers: self.pairs,
                placement: "anywhere",
            },
            metrics: &METRICS,
            series,
            note: launcher.doubt_since(accelerated),
        })
    }

    fn round(self, launcher: &Launcher, mode: Mode, folder: &Path) -> Result<Vec<f64>> {
        let before = Memory::of_machine()?;
        let began = Instant::now();
        let (mut programs, mut desks) = (vec![], vec![]);
        for pair in 0..self.pairs {
            let (desk, descriptor) = Shared::<Desk>::inherited()?;
            for role in [Role::Echo, Role::Crowd] {
                let mut command = launcher.peer(mode);
                command.arg(role.word());
                argue(&mut command, "desk", descriptor.as_raw_fd());
                argue(&mut command, "connections", self.connections);
                argue(&mut command, "time-ms", self.time.as_millis());
                let output = folder.join(format!("{}-{pair}.log", role.word()));
                programs.push(Program::start(role.word(), command, &[], &output)?);
            }
            desks.push(desk);
        }
        wait(&desks, &programs, |desk| desk.arrived() > 0)?;
        let ready = began.elapsed();
        thread::sleep(SETTLING);
        let taken = Memory::of_machine()?.since(&before);
        let resident: u64 = programs.iter().map(Program::resident_bytes).sum();
        desks.iter().for_each(|desk| desk.arrive());
        wait(&desks, &programs, |desk| desk.has_ended())?;
        let accelerated = desks.iter().map(|desk| desk.accelerated.load(Ordering::Acquire));
        let rates = desks.iter().map(|it| it.trips().len() as f64 / it.elapsed().as_secs_f64());
        let mut medians: Vec<f64> = desks.iter().map(|it| it.trips().quantile(0.5)).collect();
        medians.sort_by(f64::total_cmp);
        let median = medians.get(medians.len() / 2).copied().unwrap_or(f64::NAN);
        let [altogether, kernel @ ..] = taken;
        let mut round = vec![accelerated.sum::<u64>() as f64, ready.as_secs_f64(), rates.sum()];
        round.extend([median / 1e3, altogether, resident as f64 / MIB]);
        round.extend(kernel);
        Ok(round)
    }
}

/// Waits until a condition holds on all desks.
fn wait(desks: &[Shared<Desk>], programs: &[Program], is_so: impl Fn(&Desk) -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !desks.iter().all(|desk| is_so(desk)) {
        for desk in desks {
            let reason = desk.reason.said();
            ensure!(reason.is_empty(), "{reason}");
        }
        let ended = programs.iter().find_map(Program::end);
        ensure!(
            ended.is_none() || desks.iter().all(|desk| is_so(desk)),
            "{}",
            ended.unwrap_or_default()
        );
        ensure!(Instant::now() < deadline, "the programs do not reach that point in time");
        thread::sleep(LOOKING);
    }
    Ok(())
}

const MIB: f64 = (1 << 20) as f64;

/// Memory use of the machine as the kernel reports it, in MiB.
struct Memory([f64; 5]);

impl Memory {
    const NAMES: [&str; 5] = ["MemAvailable", "Shmem", "Slab", "PageTables", "KernelStack"];

    fn of_machine() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
        Self::parse(&text).context("/proc/meminfo has another format")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut all = [0.0; Self::NAMES.len()];
        for (own, name) in all.iter_mut().zip(Self::NAMES) {
            let of = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
            let value = text.lines().find_map(of)?;
            let kilobytes: f64 = value.split_whitespace().next()?.parse().ok()?;
            *own = kilobytes / 1024.0;
        }
        Some(Self(all))
    }

    /// Returns the difference since then: the decrease of available memory, and the increase of
    /// each of the others.
    fn since(&self, before: &Self) -> [f64; 5] {
        let mut taken: [f64; 5] = std::array::from_fn(|at| self.0[at] - before.0[at]);
        taken[0] = -taken[0];
        taken
    }
}

/// Formats the results as a table.
pub fn text(result: &MetricResult) -> String {
    let all = match result.traffic {
        Traffic::Requests { connections, .. } => connections,
        _ => 0,
    };
    format!("{all} open {}", result.text())
}

/// Returns the aims: the memory of many connections, and their rate compared with few.
pub fn aims(results: &[MetricResult]) -> Vec<String> {
    let value = |result: &MetricResult, metric| {
        let ours = result.series.iter().find(|it| it.name == Mode::Accelerated.name())?;
        Some(ours.median(metric)).filter(|it| !it.is_nan())
    };
    let [few, many] = results else { return vec![] };
    let is_whole =
        matches!(many.traffic, Traffic::Requests { connections, .. } if connections >= AIMED_AT);
    let memory = value(many, MEMORY).filter(|_| is_whole);
    let memory = memory.map(|it| at_most(it, MEMORY_MAX, "MiB for 100,000 open connections"));
    let rates = value(many, MESSAGES).zip(value(few, MESSAGES)).filter(|_| is_whole);
    let times = "times the rate of 10 connections per pair, with 10,000 per pair";
    let kept = rates.map(|(many, few)| at_least(many / few, 0.9, times));
    memory.into_iter().chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_what_was_taken_is_told() {
        let text = "MemFree: 5 kB\nMemAvailable:  4096 kB\nSlab: 1024 kB\nShmem:  0 kB\n\
                    ShmemHugePages: 9 kB\nPageTables: 512 kB\nKernelStack: 0 kB\n";
        let before = Memory::parse(text).expect("all are there");
        let after =
            Memory::parse(&text.replace("4096", "1024").replace("Shmem:  0", "Shmem: 2048"));
        assert_eq!(after.expect("all are there").since(&before), [3.0, 2.0, 0.0, 0.0, 0.0]);
        assert!(Memory::parse("MemAvailable: 4096 kB\n").is_none());
    }

    #[test]
    fn aims_are_told_of_all_connections_only() {
        let result = |connections, messages: f64, memory: f64| {
            let plan = Plan::new(connections, Duration::ZERO, false);
            let mut round = vec![0.0; METRICS.len()];
            (round[MESSAGES], round[MEMORY]) = (messages, memory);
            MetricResult {
                bench: "sockets",
                case: "connections".into(),
                traffic: Traffic::Requests {
                    value_bytes: MESSAGE_BYTES,
                    connections: plan.all(),
                    pipeline: 1,
                    workers: PAIRS,
                    placement: "anywhere",
                },
                metrics: &METRICS,
                series: vec![Series { name: Mode::Accelerated.name(), rounds: vec![round] }],
                note: None,
            }
        };
        let reported = aims(&[result(10, 100.0, 1.0), result(10_000, 50.0, 2000.0)]);
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert!(
            reported[0].starts_with("2000.00 MiB") && reported[0].ends_with(": met"),
            "{reported:?}"
        );
        assert!(
            reported[1].starts_with("0.50 times") && reported[1].ends_with(": missed"),
            "{reported:?}"
        );
        assert_eq!(aims(&[result(10, 1.0, 1.0), result(100, 1.0, 1.0)]), Vec::<String>::new());
    }
}
