// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time until a program notices that its peer was killed.

use super::carriers::argue;
use super::launcher::{Launcher, Mode};
use super::peer::{Role, Scene};
use super::programs::Program;
use crate::between::desk::Desk;
use crate::between::shared::Shared;
use crate::harness::histogram::Histogram;
use crate::harness::metrics::{Metric, MetricResult, Series, cost};
use crate::harness::report::Traffic;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

const METRICS: [Metric; 1] = [cost("noticed", "ms", "until it is noticed")];

/// Aim for the longest time, in milliseconds.
pub const AIM_MS: f64 = 50.0;
/// Time limit, after which a death counts as not noticed.
const PATIENCE: Duration = Duration::from_secs(20);
/// Range of the time for both programs to reach the point where they wait.
const SETTLING_US: std::ops::Range<u64> = 5_000..30_000;
/// The same for a new connection, which should be caught while it leaves the kernel.
const BEGINNING_US: std::ops::Range<u64> = 0..1_000;
/// Bounds of the bins of the histogram, in milliseconds.
const BOUNDS: [f64; 6] = [0.1, 0.3, 1.0, 5.0, AIM_MS, f64::INFINITY];

/// The deaths of one scene.
pub struct Deaths {
    pub scene: Scene,
    pub result: MetricResult,
}

/// Kills a process `count` times in each scene, plain and accelerated.
///
/// # Errors
/// A program fails, or does not notice at all.
pub fn measure(
    launcher: &Launcher,
    rounds: u32,
    folder: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Deaths>> {
    let scenes = Scene::value_variants().iter().map(|scene| {
        progress(&format!("deaths, {}", scene.title()));
        let accelerated = launcher.accelerated();
        let empty = |mode: Mode| Series { name: mode.name(), rounds: vec![] };
        let mut series: Vec<Series> = Mode::ALL.map(empty).into();
        for _ in 0..rounds {
            for mode in launcher.modes() {
                let what = || format!("{}, {}", scene.title(), mode.name());
                let time = death(launcher, *mode, *scene, folder).with_context(what)?;
                let own = series.iter_mut().find(|it| it.name == mode.name());
                own.context("a mode has no series")?.rounds.push(vec![time.as_secs_f64() * 1e3]);
            }
        }
        let may_be_none = matches!(scene, Scene::Halfway | Scene::NoMonitor);
        let result = MetricResult {
            bench: "sockets",
            case: format!("death, {}", scene.title()),
            traffic: Traffic::Messages { message_bytes: 64, placement: "anywhere", pairs: 1 },
            metrics: &METRICS,
            series,
            note: launcher.doubt_since(accelerated).filter(|_| !may_be_none),
        };
        Ok(Deaths { scene: *scene, result })
    });
    scenes.collect()
}

/// Kills one process; returns the time until that is noticed.
fn death(launcher: &Launcher, mode: Mode, scene: Scene, folder: &Path) -> Result<Duration> {
    let mut own = None;
    if scene == Scene::NoMonitor && mode == Mode::Accelerated {
        let place = tempfile::tempdir_in(folder)
            .context("no temporary folder can be created for a monitor")?;
        own = Some((Launcher::new(None, place.path())?, place));
    }
    let launcher = own.as_ref().map_or(launcher, |(launcher, _)| launcher);
    let (desk, descriptor) = Shared::<Desk>::inherited()?;
    let start = |role: Role| {
        let mut command = launcher.peer(mode);
        command.arg(role.word());
        argue(&mut command, "desk", descriptor.as_raw_fd());
        let scene = scene.to_possible_value().context("the scene has no name")?;
        argue(&mut command, "scene", scene.get_name());
        let output = folder.join(format!("{}.log", role.word()));
        Program::start(role.word(), command, &[], &output)
    };
    let (victim, survivor) = (start(Role::Die)?, start(Role::Survive)?);
    let begun = Instant::now();
    while desk.arrived() < 2 {
        let reason = desk.reason.said();
        ensure!(reason.is_empty(), "{reason}");
        ensure!(
            begun.elapsed() < PATIENCE,
            "the programs do not reach the scene in time: {}",
            survivor.said()
        );
        thread::sleep(Duration::from_micros(50));
    }
    if let Some(monitor) = own.as_ref().and_then(|(launcher, _)| launcher.monitor()) {
        monitor.kill();
    }
    let settling = if scene == Scene::Halfway { BEGINNING_US } else { SETTLING_US };
    thread::sleep(Duration::from_micros(fastrand::u64(settling)));
    let process = desk.process.load(Ordering::Acquire);
    desk.begin();
    // SAFETY: the process was started for this purpose and has not been waited for.
    let result = unsafe { libc::kill(process as i32, libc::SIGKILL) };
    ensure!(result == 0, "the process cannot be killed");
    let reason = || desk.reason.said();
    survivor.finish(PATIENCE).with_context(reason)?;
    drop(victim);
    Ok(desk.elapsed())
}

/// Formats the times by scene, and the distribution of all of them.
pub fn text(all: &[Deaths]) -> String {
    let mut text = "a process is killed, and its peer notices; milliseconds, \
                    measured\n"
        .to_owned();
    text += &format!("{:<26}", "the survivor is");
    for mode in Mode::ALL {
        text += &format!(" {:>18} {:>10}", format!("{}: median", mode.name()), "worst");
    }
    text += "\n";
    for Deaths { scene, result } in all {
        text += &format!("  {:<24}", scene.title());
        for series in &result.series {
            text += &format!(" {:>18.3} {:>10.3}", series.median(0), worst(series));
        }
        text += "\n";
    }
    text += "number of deaths by time until they were noticed, in milliseconds below each bound\n";
    for mode in Mode::ALL {
        let mut histogram = Histogram::default();
        let times: Vec<f64> = all.iter().flat_map(|it| times(&it.result, mode)).collect();
        times.iter().for_each(|ms| histogram.add(Duration::from_secs_f64(ms / 1e3)));
        text += &format!("  {:<10}", mode.name());
        let mut before = 0;
        for bound in BOUNDS {
            let below = times.iter().filter(|ms| **ms < bound).count();
            let name = if bound.is_finite() { format!("{bound}") } else { "more".into() };
            text += &format!(" {:>14}", format!("{name}: {}", below - before));
            before = below;
        }
        text += &format!("   99 % {:.3}\n", histogram.quantile(0.99) / 1e6);
    }
    text
}

fn times(result: &MetricResult, mode: Mode) -> impl Iterator<Item = f64> + '_ {
    let series = result.series.iter().find(|it| it.name == mode.name());
    series.into_iter().flat_map(|it| it.rounds.iter().flatten().copied())
}

fn worst(series: &Series) -> f64 {
    series.sorted(0).last().copied().unwrap_or(f64::NAN)
}

/// Reports the longest of all times beside the aim.
pub fn aim(all: &[Deaths]) -> Option<String> {
    let ours = all.iter().flat_map(|it| times(&it.result, Mode::Accelerated));
    let worst = ours.max_by(f64::total_cmp)?;
    let word = if worst <= AIM_MS { "met" } else { "missed" };
    Some(format!("{worst:.1} ms until a death was noticed at worst, aim {AIM_MS} ms: {word}"))
}
