// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The project's aims for connections, reported beside the measured values. They are those of
//! sockets; the rings below them need some margin.

use super::subjects::Subject;
use crate::between::aims::{at_least, at_most};
use crate::between::placement::Placement;
use crate::between::results::{PairCase, PairResult};

/// Message sizes of the aims.
const SHORTEST: usize = 8;
const SHORT: usize = 64;
const LONG: usize = 1 << 20;

/// Returns a line for each aim whose values were all measured, for both ways that Freeport waits.
pub fn aims(results: &[PairResult]) -> Vec<String> {
    let of = |ours| {
        let seen = Seen { results, ours };
        let lines = [
            seen.against_a_cache_line(),
            seen.against_the_best_tcp(),
            seen.against_tcp_across(),
            seen.on_one_core(),
            seen.rate(),
            seen.rate_of_tcp(),
            seen.throughput_of_tcp(),
        ];
        lines.into_iter().flatten().map(move |line| format!("{}: {line}", ours.name()))
    };
    [Subject::Awake, Subject::Sleeping].into_iter().flat_map(of).collect()
}

struct Seen<'a> {
    results: &'a [PairResult],
    ours: Subject,
}

impl Seen<'_> {
    fn value(
        &self,
        case: PairCase,
        placement: Placement,
        size: usize,
        who: Subject,
    ) -> Option<f64> {
        let fits = |it: &&PairResult| {
            let of = it.setting;
            (of.case, of.placement, of.size, of.pairs) == (case, placement, size, 1)
        };
        self.results.iter().find(fits)?.value(who.name())
    }

    fn trip(&self, placement: Placement, who: Subject) -> Option<f64> {
        self.value(PairCase::Latency, placement, SHORT, who)
    }

    fn rate_of(&self, placement: Placement, size: usize, who: Subject) -> Option<f64> {
        self.value(PairCase::Throughput, placement, size, who)
    }

    fn against_a_cache_line(&self) -> Option<String> {
        let line = self.trip(Placement::Across, Subject::CacheLine)?;
        let times = self.trip(Placement::Across, self.ours)? / line;
        Some(at_most(times, 2.2, "times a cache line, a round trip of 64 B"))
    }

    fn against_the_best_tcp(&self) -> Option<String> {
        let tcp = |placement| self.trip(placement, Subject::Tcp);
        let best = tcp(Placement::Across)?.min(tcp(Placement::Same)?);
        let times = best / self.trip(Placement::Across, self.ours)?;
        Some(at_least(times, 10.0, "times below TCP's best placement, a round trip of 64 B"))
    }

    fn against_tcp_across(&self) -> Option<String> {
        let tcp = self.trip(Placement::Across, Subject::Tcp)?;
        let times = tcp / self.trip(Placement::Across, self.ours)?;
        Some(at_least(times, 100.0, "times below TCP across cores, a round trip of 64 B"))
    }

    fn on_one_core(&self) -> Option<String> {
        let time = self.trip(Placement::Same, self.ours)?;
        Some(at_most(time, 2.5, "us, a round trip of 64 B on one core"))
    }

    fn rate(&self) -> Option<String> {
        let rate = self.rate_of(Placement::Across, SHORTEST, self.ours)?;
        Some(at_least(rate, 40.0, "million messages of 8 B a second"))
    }

    fn rate_of_tcp(&self) -> Option<String> {
        let times = self.times_tcp(SHORTEST)?;
        Some(at_least(times, 40.0, "times TCP's best rate of messages of 8 B"))
    }

    fn throughput_of_tcp(&self) -> Option<String> {
        let times = self.times_tcp(LONG)?;
        Some(at_least(times, 6.0, "times TCP's best throughput of messages of 1 MiB"))
    }

    fn times_tcp(&self, size: usize) -> Option<f64> {
        let tcp = |placement| self.rate_of(placement, size, Subject::Tcp);
        let best = tcp(Placement::Across)?.max(tcp(Placement::Same)?);
        Some(self.rate_of(Placement::Across, size, self.ours)? / best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::between::results::{Series, Setting};

    fn result(
        case: PairCase,
        placement: Placement,
        size: usize,
        of: &[(Subject, f64)],
    ) -> PairResult {
        let series = of.iter().map(|(subject, value)| {
            let mut own = Series::new(subject.name());
            own.rounds.rates = vec![*value];
            own
        });
        let setting = Setting { case, placement, pairs: 1, size };
        PairResult { bench: "fabric", setting, series: series.collect() }
    }

    #[test]
    fn aims_are_told_of_what_was_measured() {
        let (ours, tcp) = (Subject::Awake, Subject::Tcp);
        let across =
            result(PairCase::Throughput, Placement::Across, 8, &[(ours, 50.0), (tcp, 0.5)]);
        let same = result(PairCase::Throughput, Placement::Same, 8, &[(ours, 80.0), (tcp, 2.0)]);
        let lines = aims(&[across.clone(), same]);
        let rate =
            "freeport, awake: 50.00 million messages of 8 B a second; the aim is at least 40: met";
        let times = "freeport, awake: 25.00 times TCP's best rate of messages of 8 B; \
                     the aim is at least 40: missed";
        assert_eq!(lines, [rate, times]);
        assert_eq!(aims(&[across]), [rate], "TCP's best placement is not known");
        assert!(aims(&[]).is_empty());
    }
}
