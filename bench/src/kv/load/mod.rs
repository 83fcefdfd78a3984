// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A load generator for key-value servers: one thread with many connections, each of which sends
//! its next batch of requests when the previous one is answered.
//!
//! It is meant to take much less time than a server. Requests are made in advance
//! ([`script::Script`]), replies are not parsed but compared with what they have to be
//! ([`Shape`](wire::Shape)), and the clock is read once for what arrives together. The null server
//! ([`Null`](null::Null)) shows how fast it can be.

pub mod canned;
mod connection;
pub mod contents;
mod datagrams;
mod drive;
pub mod null;
mod packets;
pub mod script;
mod tally;
pub mod target;
pub mod wire;

use crate::harness::histogram::Histogram;
use anyhow::{Result, ensure};
use contents::Contents;
use drive::Drive;
use script::Script;
use std::time::Duration;
use tally::Tally;
use target::Target;

/// The way in which a script is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan<'a> {
    /// Where the server listens.
    pub target: &'a Target,
    /// Number of connections.
    pub connections: usize,
    /// Requests that a connection sends before it waits for replies, if they are not in packets.
    pub pipeline: usize,
    /// When it ends.
    pub span: Span,
    /// Whether some of the values that are returned are compared with those that were stored.
    pub compares: bool,
}

/// The length of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// Each request of the script is sent once, and all are measured.
    Once,
    /// The script is repeated until this number of requests is sent, and all are measured. The last
    /// packet is sent whole.
    Requests(u64),
    /// The script is repeated. Replies in `window` are measured, which begins after `warm_up`, and
    /// lasts until something is answered.
    Time { warm_up: Duration, window: Duration },
}

/// The result of a load.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Requests that were sent. All were answered, but for those that were lost.
    pub requests: u64,
    /// Requests without a reply, over UDP.
    pub lost: u64,
    /// Requests that were answered in the measured time.
    pub measured: u64,
    /// The measured time.
    pub elapsed: Duration,
    /// For each of the measured requests, the time from the beginning of its batch to its reply.
    pub latencies: Histogram,
}

impl Outcome {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.measured as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// A quantile of the latencies in microseconds.
    pub fn latency_us(&self, part: f64) -> f64 {
        self.latencies.quantile(part) / 1e3
    }
}

/// The progress of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Requests that were answered in the measured time.
    pub answered: u64,
}

/// Runs a load in the calling thread.
///
/// # Errors
/// A connection fails, or a reply is missing or not what it has to be.
pub fn run(script: &Script, plan: &Plan<'_>) -> Result<Outcome> {
    let (outcome, end) = run_watched(script, plan, &mut |_| true);
    end.map(|()| outcome)
}

/// Runs a load in the calling thread. `watch` is called several times a second, and returns whether
/// the load shall continue. The result is what was reached before the end, also before an error.
pub fn run_watched(
    script: &Script,
    plan: &Plan<'_>,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> (Outcome, Result<()>) {
    let mut tally = Tally::new(plan.span);
    let end = drive(script, plan, &mut tally, watch);
    (tally.outcome(), end)
}

fn drive(
    script: &Script,
    plan: &Plan<'_>,
    tally: &mut Tally,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<()> {
    ensure!(script.len() > 0 && plan.connections > 0, "there are no requests to send");
    let drive = Drive::new(script, plan, tally)?;
    drive.run(watch)
}

/// Records and bytes that are stored by one script.
const RECORDS: u64 = 1 << 16;
const FILL_BYTES: u64 = 64 << 20;
const FILL_PIPELINE: usize = 64;

/// Stores all pairs. `watch` gets the number of those stored, and returns whether to continue.
///
/// # Errors
/// A pair is not stored.
pub fn fill(
    target: &Target,
    contents: &Contents,
    watch: &mut dyn FnMut(u64) -> bool,
) -> Result<()> {
    let pair_bytes = (contents.key_bytes + contents.value_bytes) as u64;
    let records = RECORDS.min(FILL_BYTES / pair_bytes).max(1);
    let (pipeline, span) = (FILL_PIPELINE, Span::Once);
    let plan = Plan { target, connections: 1, pipeline, span, compares: true };
    let mut first = 0;
    while first < contents.pairs && watch(first) {
        let ranks = first..(first + records).min(contents.pairs);
        first = ranks.end;
        run(&Script::fill(*contents, ranks, pipeline), &plan)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::draws::Spread;
    use super::canned::Canned;
    use super::contents::{Form, Workload};
    use super::null::Null;
    use super::script::Recipe;
    use super::wire::{Kind, Wire};
    use super::*;

    fn contents(form: Form) -> Contents {
        Contents { form, key_bytes: 6, value_bytes: 30, pairs: 500, are_counters: false }
    }

    fn forms() -> impl Iterator<Item = Form> {
        Wire::ALL.into_iter().map(Form::Single).chain([Form::STREAM])
    }

    fn once(target: &Target, connections: usize, pipeline: usize) -> Plan<'_> {
        Plan { target, connections, pipeline, span: Span::Once, compares: true }
    }

    fn recipe(workload: Workload, pipeline: usize) -> Recipe {
        Recipe { workload, spread: Spread::Uniform, pipeline, seed: 20 }
    }

    #[test]
    fn every_request_is_sent_and_answered_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, form) in forms().enumerate() {
            let canned = Canned::new(&contents(form));
            let null = Null::start(canned.clone(), None).expect("a server");
            let path = folder.path().join(number.to_string());
            let on_fabric = Null::start_on_fabric(&path, canned, None).expect("a server");
            for (connections, pipeline) in [(1, 1), (7, 3), (40, 64)] {
                let script = Script::fill(contents(form), 0..500, pipeline);
                for null in [&null, &on_fabric] {
                    let outcome = run(&script, &once(null.target(), connections, pipeline));
                    let outcome = outcome.expect("it is answered");
                    assert_eq!((outcome.requests, outcome.measured), (500, 500));
                    assert_eq!(outcome.latencies.len(), 500);
                }
            }
            for null in [null, on_fabric] {
                assert_eq!(null.end().expect("it has answered"), 3 * 500);
            }
        }
    }

    #[test]
    fn the_requests_of_a_time_are_all_answered_and_some_are_measured() {
        for form in forms() {
            let contents = contents(form);
            let script = Script::mixed(contents, &recipe(Workload::A, 7));
            let null = Null::start(Canned::new(&contents), None).expect("a server");
            let mut requests = 0;
            // A window that is too short for a reply lasts longer.
            for window in [Duration::from_millis(50), Duration::ZERO] {
                let span = Span::Time { warm_up: Duration::from_millis(5), window };
                let target = null.target();
                let plan = Plan { target, connections: 3, pipeline: 7, span, compares: false };
                let outcome = run(&script, &plan).expect("it is answered");
                assert_eq!(outcome.latencies.len(), outcome.measured);
                assert!((1..=outcome.requests).contains(&outcome.measured));
                assert!(outcome.elapsed >= window && !outcome.elapsed.is_zero());
                requests += outcome.requests;
            }
            assert_eq!(null.end().expect("it has answered"), requests);
        }
    }

    #[test]
    fn a_number_of_requests_is_sent_again_and_again() {
        for (form, expected) in
            [(Form::Single(Wire::Resp), 9_001..=9_001), (Form::STREAM, 9_001..=9_016)]
        {
            let contents = contents(form).of_counters();
            let script = Script::mixed(contents, &recipe(Workload::FetchAdd, 16));
            let null = Null::start(Canned::new(&contents), None).expect("a server");
            let span = Span::Requests(9_001);
            let target = null.target();
            let plan = Plan { target, connections: 3, pipeline: 16, span, compares: true };
            let outcome = run(&script, &plan).expect("it is answered");
            assert!(expected.contains(&outcome.requests), "{outcome:?}");
            assert_eq!(outcome.requests, outcome.measured);
        }
    }

    #[test]
    fn a_load_that_is_stopped_has_reached_something() {
        let contents = contents(Form::Single(Wire::Resp));
        let script = Script::mixed(contents, &recipe(Workload::A, 1));
        let null = Null::start(Canned::new(&contents), None).expect("a server");
        let span = Span::Requests(u64::MAX);
        let target = null.target();
        let plan = Plan { target, connections: 2, pipeline: 1, span, compares: false };
        let mut reports = 0;
        let (outcome, end) = run_watched(&script, &plan, &mut |progress| {
            reports += 1;
            progress.answered == 0
        });
        end.expect("no error");
        assert!(reports > 0 && outcome.measured > 0 && outcome.rate() > 0.0);
    }

    #[test]
    fn batches_larger_than_the_buffers_of_sockets_pass() {
        for form in [Form::Single(Wire::Text), Form::STREAM] {
            let contents = Contents { value_bytes: 200_000, pairs: 100, ..contents(form) };
            let script = Script::fill(contents, 0..100, 100);
            let null = Null::start(Canned::new(&contents), None).expect("a server");
            let outcome = run(&script, &once(null.target(), 1, 100)).expect("it is answered");
            assert_eq!((outcome.requests, null.end().expect("it has answered")), (100, 100));
        }
    }

    #[test]
    fn a_wrong_reply_ends_the_load() {
        let contents = contents(Form::Single(Wire::Resp));
        let failed = |script: &Script, kind: Kind, reply: &str| {
            let mut canned = Canned::new(&contents);
            let Canned::Single(single) = &mut canned else { panic!("not packets") };
            if !reply.is_empty() {
                single.replies[kind as usize] = reply.into();
            }
            let null = Null::start(canned, None).expect("a server");
            let error = run(script, &once(null.target(), 2, 4)).expect_err("a wrong reply");
            error.to_string()
        };
        let writes = Script::fill(contents, 0..500, 1);
        let said = failed(&writes, Kind::Write, "-OOM\r\n");
        assert!(said.contains("-OOM"), "{said}");
        let said = failed(&writes, Kind::Write, "+OK\r\n+");
        assert!(said.contains("unexpected reply") || said.contains("more than"), "{said}");
        let reads = Script::mixed(contents, &recipe(Workload::C, 1));
        let said = failed(&reads, Kind::Read, "$-1\r\n");
        assert!(said.contains("unexpected reply"), "{said}");
        // The right shape with a value that nobody has stored.
        assert!(failed(&reads, Kind::Read, "").contains("a wrong value"));
    }

    #[test]
    fn wrong_values_in_packets_end_the_load() {
        let reads = Script::mixed(contents(Form::STREAM), &recipe(Workload::C, 16));
        for (value, expected) in [
            (vec![], "an unexpected reply"),
            (vec![0; 29], "an unexpected reply"),
            (vec![0; 30], "a wrong value"),
        ] {
            let null = Null::start(Canned::Packets(value), None).expect("a server");
            let error = run(&reads, &once(null.target(), 2, 16)).expect_err("a wrong reply");
            assert!(error.to_string().contains(expected), "{error:#}");
        }
    }
}
