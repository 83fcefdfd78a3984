// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cost of idle servers: ten of them, each with an open connection that was busy before.

use super::carriers::argue;
use super::launcher::{Launcher, Mode};
use super::peer::Role;
use super::programs::Program;
use crate::between::desk::Desk;
use crate::between::shared::Shared;
use crate::harness::metrics::{Metric, MetricResult, Series, cost};
use crate::harness::report::Traffic;
use anyhow::{Context, Result, ensure};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Metrics of a round.
const METRICS: [Metric; 3] = [
    cost("servers_cpu", "% of a core", "all servers together"),
    cost("clients_cpu", "% of a core", "all clients together"),
    cost("monitor_cpu", "% of a core", "the monitor"),
];

const SERVERS: usize = 10;
/// Time for which each connection is busy first, in milliseconds.
const BUSY_MS: u64 = 100;
/// Time limit for which clients keep connections open, in milliseconds.
const OPEN_MS: u64 = 120_000;
/// Time limit until all connections have been busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Message of the busy phase.
const MESSAGE: &str = "something";
/// Time for outstanding work of connections that have become silent.
const SETTLING: Duration = Duration::from_millis(200);

/// Lets servers be idle for `time`, plain and accelerated.
///
/// # Errors
/// A server or a client fails.
pub fn measure(
    launcher: &Launcher,
    rounds: u32,
    silence: Duration,
    folder: &Path,
) -> Result<MetricResult> {
    let accelerated = launcher.accelerated();
    let empty = |mode: Mode| Series { name: mode.name(), rounds: vec![] };
    let mut series: Vec<Series> = Mode::ALL.map(empty).into();
    for _ in 0..rounds {
        for mode in launcher.modes() {
            let round = round(launcher, *mode, silence, folder).context(mode.name())?;
            let own = series.iter_mut().find(|it| it.name == mode.name());
            own.context("a mode has no series")?.rounds.push(round);
        }
    }
    Ok(MetricResult {
        bench: "sockets",
        case: "idle".into(),
        traffic: Traffic::Requests {
            value_bytes: MESSAGE.len(),
            connections: SERVERS,
            pipeline: 1,
            workers: SERVERS,
            placement: "anywhere",
        },
        metrics: &METRICS,
        series,
        note: launcher.doubt_since(accelerated),
    })
}

fn round(launcher: &Launcher, mode: Mode, silence: Duration, folder: &Path) -> Result<Vec<f64>> {
    let (mut servers, mut clients, mut desks) = (vec![], vec![], vec![]);
    for at in 0..SERVERS {
        let (desk, descriptor) = Shared::<Desk>::inherited()?;
        for role in [Role::Echo, Role::Load] {
            let mut command = launcher.peer(mode);
            command.arg(role.word());
            argue(&mut command, "desk", descriptor.as_raw_fd());
            if role == Role::Load {
                argue(&mut command, "time-ms", BUSY_MS);
                argue(&mut command, "silence-ms", OPEN_MS);
                argue(&mut command, "request", MESSAGE);
                argue(&mut command, "answer", MESSAGE);
            }
            let output = folder.join(format!("{}-{at}.log", role.word()));
            let program = Program::start(role.word(), command, &[], &output)?;
            let programs = if role == Role::Echo { &mut servers } else { &mut clients };
            programs.push(program);
        }
        desks.push(desk);
    }
    let deadline = Instant::now() + PATIENCE;
    for desk in &desks {
        while !desk.has_ended() {
            let reason = desk.reason.said();
            ensure!(reason.is_empty(), "{reason}");
            ensure!(Instant::now() < deadline, "no answer from an idle server");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    std::thread::sleep(SETTLING);
    let monitor: Vec<&Program> =
        launcher.monitor().filter(|_| mode == Mode::Accelerated).into_iter().collect();
    let (servers, clients) = (servers.iter().collect::<Vec<_>>(), clients.iter().collect());
    let groups: [Vec<&Program>; 3] = [servers, clients, monitor];
    let spent = || {
        groups.each_ref().map(|group| {
            group.iter().map(|program| program.processor_time()).sum::<Duration>().as_secs_f64()
        })
    };
    let (before, began) = (spent(), Instant::now());
    std::thread::sleep(silence);
    let (after, elapsed) = (spent(), began.elapsed().as_secs_f64());
    Ok(before.iter().zip(after).map(|(before, after)| (after - before) / elapsed * 100.0).collect())
}
