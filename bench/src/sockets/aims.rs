// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The project's aims for sockets, reported beside the measured values.

use super::applications::{Application, Cell, Spread};
use super::carriers::{OURS, TCP};
use super::launcher::Mode;
use crate::between::aims::{at_least, at_most};
use crate::between::placement::Placement;
use crate::between::results::{PairCase, PairResult};
use crate::fabric::Subject;
use crate::harness::metrics::MetricResult;

/// Message sizes of the aims.
const SHORTEST: usize = 8;
const SHORT: usize = 64;
const LONG: usize = 1 << 20;

/// Returns a line for each aim whose values were all measured, between two programs of the bench.
pub fn of_pairs(results: &[PairResult]) -> Vec<String> {
    let value = |case, placement, size, who: &str| {
        let fits = |it: &&PairResult| {
            let of = it.setting;
            (of.case, of.placement, of.size, of.pairs) == (case, placement, size, 1)
        };
        results.iter().find(fits)?.value(who)
    };
    let (across, same) = (Placement::Across, Placement::Same);
    let trip = |placement, who| value(PairCase::Latency, placement, SHORT, who);
    let rate = |placement, size, who| value(PairCase::Throughput, placement, size, who);
    let best_rate = |size| Some(rate(across, size, TCP)?.max(rate(same, size, TCP)?));
    let connect = |case, placement| {
        let of = |who| value(case, placement, 0, who);
        Some(of(OURS)? / of(TCP)?)
    };
    let (first, again) =
        (|it| connect(PairCase::Connect, it), |it| connect(PairCase::Reconnect, it));
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
        first(across).map(|it| at_least(it, 1.0, "times TCP's first connections, across cores")),
        first(same).map(|it| at_least(it, 1.0, "times TCP's first connections, on one core")),
        again(across).map(|it| at_least(it, 1.5, "times TCP's connections again, across cores")),
        again(same).map(|it| at_least(it, 1.5, "times TCP's connections again, on one core")),
    ];
    lines.into_iter().flatten().collect()
}

/// Returns the same for applications, and a line for each that is slower accelerated than plain.
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

/// Returns a line for idle servers.
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

#[cfg(test)]
mod tests {
    use super::super::{self as sockets, cells};
    use super::*;
    use crate::between::results::{Series, Setting};

    fn pair(
        case: PairCase,
        placement: Placement,
        size: usize,
        of: &[(&'static str, f64)],
    ) -> PairResult {
        let series = of.iter().map(|(name, value)| {
            let mut own = Series::new(name);
            own.rounds.rates = vec![*value];
            own
        });
        let setting = Setting { case, placement, pairs: 1, size };
        PairResult { bench: "sockets", setting, series: series.collect() }
    }

    #[test]
    fn aims_are_told_of_what_was_measured() {
        let (across, same) = (Placement::Across, Placement::Same);
        let line = Subject::CacheLine.name();
        let trips = [(OURS, 0.3), (TCP, 40.0), (line, 0.1)];
        let results = [
            pair(PairCase::Latency, across, 64, &trips),
            pair(PairCase::Latency, same, 64, &[(OURS, 2.0), (TCP, 6.0), (line, 1.0)]),
            pair(PairCase::Connect, same, 0, &[(OURS, 2.0), (TCP, 4.0)]),
            pair(PairCase::Reconnect, same, 0, &[(OURS, 6.0), (TCP, 4.0)]),
        ];
        let lines = of_pairs(&results);
        let begins = ["3.00 times a cache line", "20.00 times below TCP's best", "133.33 times"];
        for (line, begin) in lines.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
        let words: Vec<&str> = lines.iter().filter_map(|line| line.split(": ").last()).collect();
        assert_eq!(words, ["missed", "met", "met", "met", "missed", "met"]);
        let plain_only = pair(PairCase::Latency, across, 64, &[(TCP, 40.0), (line, 0.1)]);
        assert_eq!(of_pairs(&[plain_only]), Vec::<String>::new());
    }

    #[test]
    fn what_is_slower_than_plain_is_told_where_there_is_no_aim() {
        let rates = |case: sockets::Case, ours: f64| {
            let cell = cells::of(case, true, 2)[0];
            let mut result = cell.nothing();
            result.series[0].rounds = vec![vec![ours]];
            result.series[1].rounds = vec![vec![100.0]];
            (cell, result)
        };
        let both = [rates(sockets::Case::Redis, 1_500.0), rates(sockets::Case::Memcached, 120.0)];
        let lines = of_applications(&both);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("15.00 times plain, redis get") && lines[0].ends_with(": met")
        );
        let lines = of_applications(&[rates(sockets::Case::Memcached, 80.0)]);
        assert!(lines[0].starts_with("0.80 times plain") && lines[0].ends_with(": missed"));
    }
}
