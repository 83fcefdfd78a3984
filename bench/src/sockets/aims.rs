// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the project wants to reach with sockets, beside what was measured.

use super::applications::{Application, Cell, Spread};
use super::carriers::{OURS, TCP};
use super::launcher::Mode;
use crate::between::aims::{at_least, at_most};
use crate::between::placement::Placement;
use crate::between::results::{Case, PairResult};
use crate::fabric::Subject;
use crate::metrics::MetricResult;

/// The sizes that aims are about.
const SHORTEST: usize = 8;
const SHORT: usize = 64;
const LONG: usize = 1 << 20;

/// A line for each aim of which everything was measured: between two programs of the bench.
pub fn of_pairs(results: &[PairResult]) -> Vec<String> {
    let value = |case, placement, size, who: &str| {
        let fits = |it: &&PairResult| {
            let of = it.setting;
            (of.case, of.placement, of.size, of.pairs) == (case, placement, size, 1)
        };
        results.iter().find(fits)?.value(who)
    };
    let (across, same) = (Placement::Across, Placement::Same);
    let trip = |placement, who| value(Case::Latency, placement, SHORT, who);
    let rate = |placement, size, who| value(Case::Throughput, placement, size, who);
    let best_rate = |size| Some(rate(across, size, TCP)?.max(rate(same, size, TCP)?));
    let connect = |placement| {
        let of = |who| value(Case::Connect, placement, 0, who);
        Some(of(OURS)? / of(TCP)?)
    };
    let lines = [
        ratio(trip(across, OURS), trip(across, Subject::CacheLine.name()))
            .map(|it| at_most(it, 2.2, "times a cache line, a round trip of 64 B")),
        ratio(least(trip(across, TCP), trip(same, TCP)), trip(across, OURS))
            .map(|it| at_least(it, 10.0, "times below TCP's best placement, a round trip of 64 B")),
        ratio(trip(across, TCP), trip(across, OURS))
            .map(|it| at_least(it, 100.0, "times below TCP across cores, a round trip of 64 B")),
        trip(same, OURS).map(|it| at_most(it, 2.5, "us, a round trip of 64 B on one core")),
        rate(across, SHORTEST, OURS)
            .map(|it| at_least(it, 40.0, "million messages of 8 B a second")),
        ratio(rate(across, SHORTEST, OURS), best_rate(SHORTEST))
            .map(|it| at_least(it, 40.0, "times TCP's best rate of messages of 8 B")),
        ratio(rate(across, LONG, OURS), best_rate(LONG))
            .map(|it| at_least(it, 6.0, "times TCP's best throughput of messages of 1 MiB")),
        connect(across).map(|it| at_least(it, 1.0, "times TCP's connections, across cores")),
        connect(same).map(|it| at_least(it, 1.0, "times TCP's connections, on one core")),
    ];
    lines.into_iter().flatten().collect()
}

/// The same for applications, and what is slower accelerated than plain.
pub fn of_applications(results: &[(Cell, MetricResult)]) -> Vec<String> {
    let mut lines = vec![];
    for (cell, result) in results {
        let of = |mode: Mode| result.series.iter().find(|it| it.name == mode.name());
        let median = |mode| of(mode).map(|it| it.median(0)).filter(|it| !it.is_nan());
        let Some(times) = ratio(median(Mode::Accelerated), median(Mode::Plain)) else { continue };
        match aim(cell) {
            Some(aim) => {
                lines.push(at_least(times, aim, &format!("times plain, {}", cell.title())))
            }
            None if times < 1.0 => {
                lines.push(at_least(times, 1.0, &format!("times plain, {}", cell.title())));
            }
            None => {}
        }
    }
    lines
}

fn aim(cell: &Cell) -> Option<f64> {
    match (cell.application, cell.connections, cell.pipeline, cell.spread) {
        (Application::RedisGet, 1, 1, Spread::Across) => Some(10.0),
        (Application::RedisGet, 1, 1, Spread::Same) => Some(3.0),
        (Application::RedisGet, 20, 1, _) => Some(3.0),
        (Application::Nginx, ..) if cell.value_bytes == SHORT => Some(2.0),
        _ => None,
    }
}

/// A line for servers that have nothing to do.
pub fn of_idle(result: &MetricResult) -> Option<String> {
    let ours = result.series.iter().find(|it| it.name == Mode::Accelerated.name())?;
    let percent = ours.median(0);
    (!percent.is_nan()).then(|| at_most(percent, 1.0, "% of a core for ten idle servers"))
}

fn ratio(over: Option<f64>, under: Option<f64>) -> Option<f64> {
    Some(over? / under?)
}

fn least(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one?.min(other?))
}
