// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measurements beside programs that compete for the processors: a number of busy loops.
//!
//! A process that waits without sleeping loses its time slice to them, and theirs last
//! milliseconds. So the worst round counts in addition to the median, and the whole time of a round
//! instead of its median message.

use super::applications::{Application, Cell, Measuring, Spread};
use super::carriers::Tcp;
use super::launcher::Mode;
use super::programs::Program;
use crate::between::measure::Plan;
use crate::between::placement::Placement;
use crate::between::rounds::Carrier;
use crate::between::wait::Wait;
use crate::harness::metrics::{Metric, MetricResult, Series, cost, rate};
use crate::harness::report::Traffic;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Default numbers of loops.
pub const LOADS: [u16; 4] = [0, 2, 4, 6];
/// Round trips of a round, one-way messages of a round, and their bytes.
const TRIPS: u64 = 15_000;
const TRIP_BYTES: usize = 64;
const STREAMED: u64 = 2_000;
const STREAMED_BYTES: usize = 64 << 10;

/// First metric of a round; applications have more.
const OF_TRIPS: [Metric; 1] = [cost("round_trip_mean", "us", "mean round trip")];
const OF_STREAMS: [Metric; 1] = [rate("throughput", "GB/s", "throughput")];

/// A measurement beside a number of loops.
pub struct Busy {
    /// Number of loops.
    pub load: u16,
    /// Title in tables.
    pub title: String,
    /// The result, of which the first metric counts.
    pub result: MetricResult,
}

/// Measures everything beside each number of loops. A measurement that fails is reported and left
/// out.
pub fn measure(
    loads: &[u16],
    with: &Measuring<'_>,
    progress: &mut dyn FnMut(&str),
    failures: &mut Vec<String>,
) -> Result<Vec<Busy>> {
    let mut all = vec![];
    for load in loads {
        let _loops = loops(*load, with.folder)?;
        for (title, measure) in subjects() {
            progress(&format!("{title} beside {load} loops"));
            match measure(with) {
                Ok(result) => {
                    let case = format!("{} beside {load} loops", result.case);
                    all.push(Busy { load: *load, title, result: MetricResult { case, ..result } });
                }
                Err(error) => failures.push(format!("{title} beside {load} loops: {error:#}")),
            }
        }
    }
    Ok(all)
}

/// Measures one case.
type Measure = Box<dyn Fn(&Measuring<'_>) -> Result<MetricResult>>;

fn subjects() -> Vec<(String, Measure)> {
    let anywhere = |application| Cell {
        application,
        value_bytes: TRIP_BYTES,
        connections: 20,
        pipeline: 1,
        workers: 2,
        spread: Spread::Anywhere,
    };
    let redis = Cell { workers: 1, ..anywhere(Application::RedisGet) };
    let cells = [redis, anywhere(Application::Nginx), anywhere(Application::Php)];
    let mut all: Vec<(String, Measure)> = vec![
        (format!("{TRIP_BYTES} B round trips"), Box::new(round_trips)),
        (format!("{} KiB one way", STREAMED_BYTES >> 10), Box::new(stream)),
    ];
    for cell in cells {
        all.push((cell.title(), Box::new(move |with| cell.measure(with))));
    }
    all
}

/// Starts busy loops.
fn loops(count: u16, folder: &Path) -> Result<Vec<Program>> {
    let begin = |at| {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        Program::start("a loop", command, &[], &folder.join(format!("loop-{at}.log")))
    };
    (0..count).map(begin).collect()
}

fn round_trips(with: &Measuring<'_>) -> Result<MetricResult> {
    pair(with, "latency", &OF_TRIPS, (TRIP_BYTES, TRIPS), |tcp, plan| {
        Ok(tcp.round_trips(plan, Wait::Yield)?.mean() / 1e3)
    })
}

fn stream(with: &Measuring<'_>) -> Result<MetricResult> {
    pair(with, "throughput", &OF_STREAMS, (STREAMED_BYTES, STREAMED), |tcp, plan| {
        let bytes = plan.size as f64 * plan.messages as f64;
        Ok(bytes / tcp.stream(plan, Wait::Yield)?.as_secs_f64() / 1e9)
    })
}

/// Measures two programs, plain and accelerated in turn.
fn pair(
    with: &Measuring<'_>,
    case: &str,
    metrics: &'static [Metric],
    (size, messages): (usize, u64),
    figure: impl Fn(&Tcp<'_>, &Plan) -> Result<f64>,
) -> Result<MetricResult> {
    let placement = if with.cores.len() > 1 { Placement::Across } else { Placement::Same };
    let cores = placement.cores(1, with.cores)?;
    let plan = Plan { size, messages, is_full_check: false, cores };
    let empty = |mode: Mode| Series { name: mode.name(), rounds: vec![] };
    let mut series: Vec<Series> = Mode::ALL.map(empty).into();
    let before = with.launcher.accelerated();
    for _ in 0..with.rounds {
        for mode in with.launcher.modes() {
            let tcp = Tcp { launcher: with.launcher, mode: *mode };
            let round = figure(&tcp, &plan).context(mode.name())?;
            let own = series.iter_mut().find(|it| it.name == mode.name());
            own.context("a mode has no series")?.rounds.push(vec![round]);
        }
    }
    Ok(MetricResult {
        bench: "sockets",
        case: case.into(),
        traffic: Traffic::Messages { message_bytes: size, placement: placement.name(), pairs: 1 },
        metrics,
        series,
        note: with.launcher.doubt_since(before),
    })
}

/// Returns the worst round and the median of a mode in the first metric; `None` if it was not
/// measured.
fn worst_and_median(result: &MetricResult, mode: Mode) -> Option<[f64; 2]> {
    let own = result.series.iter().find(|it| it.name == mode.name())?;
    let sorted = own.sorted(0);
    let is_rate = result.metrics[0].is_rate;
    let worst = if is_rate { sorted.first() } else { sorted.last() };
    Some([*worst?, own.median(0)])
}

/// Returns how many times better Freeport's value is than the plain one.
fn gain(is_rate: bool, ours: f64, plain: f64) -> f64 {
    if is_rate { ours / plain } else { plain / ours }
}

/// Returns how many times better than plain the worst round is, and the median.
fn gains(result: &MetricResult) -> Option<[f64; 2]> {
    let ours = worst_and_median(result, Mode::Accelerated)?;
    let plain = worst_and_median(result, Mode::Plain)?;
    let is_rate = result.metrics[0].is_rate;
    Some([gain(is_rate, ours[0], plain[0]), gain(is_rate, ours[1], plain[1])])
}

/// Formats the results as a table.
pub fn text(all: &[Busy]) -> String {
    let pair = format!("{:>12}{:>12}{:>8}", "plain", "freeport", "ratio");
    let mut text = format!(
        "beside programs that compete for the processors, measured; ratio: times better than \
         plain\n\
         {:<54}{:>6}{:>32}{:>32}\n{:60}{pair}{pair}\n",
        "", "loops", "median of rounds", "worst round", "",
    );
    for Busy { load, title, result } in all {
        let unit = result.metrics[0].unit;
        text += &format!("  {:<52}{load:>6}", format!("{title}, {unit}"));
        let both = [Mode::Plain, Mode::Accelerated].map(|mode| worst_and_median(result, mode));
        for at in [1, 0] {
            for figures in &both {
                let figure = figures.map_or("-".into(), |it| shown(it[at]));
                text += &format!("{figure:>12}");
            }
            let ratio = gains(result).map_or("-".into(), |it| format!("{:.2}x", it[at]));
            text += &format!("{ratio:>8}");
        }
        text += &result.note.as_ref().map_or(String::new(), |note| format!("   {note}"));
        text += "\n";
    }
    text
}

fn shown(value: f64) -> String {
    let digits = if value < 100.0 { 2 } else { 0 };
    format!("{value:.digits$}")
}

/// Returns the aims: no median below plain, and no worst round worse than 1.2 times plain's.
pub fn aims(all: &[Busy]) -> Vec<String> {
    const WORST: f64 = 1.0 / 1.2;
    let measured: Vec<(&Busy, [f64; 2])> =
        all.iter().filter_map(|it| Some((it, gains(&it.result)?))).collect();
    let least =
        |at: usize| measured.iter().min_by(|one, other| one.1[at].total_cmp(&other.1[at])).copied();
    let line = |what: &str, at: usize, aim: f64| {
        let (it, gains) = least(at)?;
        let is_met = if gains[at] >= aim { "met" } else { "missed" };
        let (gain, title, load) = (gains[at], &it.title, it.load);
        Some(format!(
            "{gain:.2} times plain in {what} where that is least, {title} beside {load} loops \
             (aim: at least {aim:.2}): {is_met}"
        ))
    };
    let lines = [line("the median", 1, 1.0), line("the worst round", 0, WORST)];
    lines.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(metrics: &'static [Metric], ours: [f64; 3], plain: [f64; 3]) -> Busy {
        let series = |mode: Mode, rounds: [f64; 3]| Series {
            name: mode.name(),
            rounds: rounds.map(|figure| vec![figure]).into(),
        };
        let result = MetricResult {
            bench: "sockets",
            case: "case".into(),
            traffic: Traffic::Messages { message_bytes: 64, placement: "across", pairs: 1 },
            metrics,
            series: vec![series(Mode::Accelerated, ours), series(Mode::Plain, plain)],
            note: None,
        };
        Busy { load: 4, title: "something".into(), result }
    }

    #[test]
    fn the_worst_round_is_the_longest_or_the_slowest() {
        let trips = busy(&OF_TRIPS, [1.0, 20.0, 2.0], [10.0, 8.0, 12.0]);
        assert_eq!(gains(&trips.result), Some([0.6, 5.0]));
        let stream = busy(&OF_STREAMS, [6.0, 3.0, 4.0], [2.0, 1.0, 2.0]);
        assert_eq!(gains(&stream.result), Some([3.0, 2.0]));
        let lines = aims(&[trips, stream]);
        assert!(lines[0].starts_with("2.00 times plain in the median"), "{lines:?}");
        assert!(lines[0].ends_with(": met"), "{lines:?}");
        assert!(lines[1].starts_with("0.60 times plain in the worst round"), "{lines:?}");
        assert!(lines[1].ends_with(": missed"), "{lines:?}");
    }

    #[test]
    fn what_was_not_measured_has_no_figures_and_no_aim() {
        let mut only = busy(&OF_TRIPS, [1.0; 3], [1.0; 3]);
        only.result.series[1].rounds.clear();
        assert_eq!(aims(std::slice::from_ref(&only)), Vec::<String>::new());
        assert!(text(&[only]).contains('-'));
    }
}
