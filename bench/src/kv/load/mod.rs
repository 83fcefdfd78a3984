// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A load generator for key-value servers: one thread with many connections, each of which sends
//! its next batch of requests when the previous one is answered.
//!
//! It is meant to take much less time than a server. Requests are made in advance
//! ([`script::Script`]), replies are not parsed but compared with what they have to be
//! ([`Shape`](wire::Shape)), and the clock is read once for what arrives together. The null server
//! ([`Null`](null::Null)) shows how fast it can be.

mod connection;
pub mod null;
pub mod script;
pub mod wire;

use crate::harness::histogram::Histogram;
use crate::sockets::peer::epoll::Epoll;
use anyhow::{Result, ensure};
use connection::Connection;
use script::Script;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time limit for a reply.
const PATIENCE_MS: i32 = 10_000;

/// The way in which a script is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Port of the server on this machine.
    pub port: u16,
    /// Number of connections.
    pub connections: usize,
    /// Requests that a connection sends before it waits for replies.
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
    /// The script is repeated. Replies in `window` are measured, which begins after `warm_up`, and
    /// lasts until something is answered.
    Time { warm_up: Duration, window: Duration },
}

/// The result of a load.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Requests that were sent. All were answered.
    pub requests: u64,
    /// Requests that were answered in the measured time.
    pub measured: u64,
    /// The measured time.
    pub elapsed: Duration,
    /// For each of the measured requests, the time from the begin of its batch to its reply.
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

/// Runs a load in the calling thread.
///
/// # Errors
/// A connection fails, or a reply is missing or not what it has to be.
pub fn run(script: &Script, plan: &Plan) -> Result<Outcome> {
    ensure!(script.len() > 0 && plan.connections > 0, "there are no requests to send");
    let epoll = Epoll::new()?;
    let mut connections = vec![];
    for number in 0..plan.connections {
        let connection = Connection::open(plan.port, plan.compares)?;
        epoll.add(&connection.stream, number)?;
        connections.push(connection);
    }
    let mut cursor = Cursor::new(script.len(), plan);
    let mut tally = Tally::new(plan.span);
    let mut busy = 0;
    for (number, connection) in connections.iter_mut().enumerate() {
        busy += usize::from(go_on(script, &mut cursor, connection, &epoll, number, &mut tally)?);
    }
    while busy > 0 {
        let ready = epoll.wait(PATIENCE_MS)?;
        ensure!(!ready.is_empty(), "no reply within {PATIENCE_MS} ms");
        for number in ready {
            let connection = &mut connections[number];
            if connection.is_stuck() {
                connection.send(script)?;
                epoll.change(&connection.stream, number, connection.is_stuck())?;
            }
            let replies = connection.receive(script)?;
            tally.count(replies as u64, connection.asked());
            if replies > 0 && connection.is_done() {
                let goes_on = go_on(script, &mut cursor, connection, &epoll, number, &mut tally)?;
                busy -= usize::from(!goes_on);
            }
        }
    }
    Ok(tally.outcome())
}

/// Sends the next batch of a connection; returns whether there is one.
fn go_on(
    script: &Script,
    cursor: &mut Cursor,
    connection: &mut Connection,
    epoll: &Epoll,
    number: usize,
    tally: &mut Tally,
) -> Result<bool> {
    if tally.is_over() {
        return Ok(false);
    }
    let Some(batch) = cursor.next() else { return Ok(false) };
    tally.requests += batch.len() as u64;
    connection.ask(script, batch, tally.now)?;
    if connection.is_stuck() {
        epoll.change(&connection.stream, number, true)?;
    }
    Ok(true)
}

/// The place in a script that all connections share.
struct Cursor {
    next: usize,
    end: usize,
    pipeline: usize,
    is_repeated: bool,
}

impl Cursor {
    fn new(end: usize, plan: &Plan) -> Self {
        let is_repeated = plan.span != Span::Once;
        Self { next: 0, end, pipeline: plan.pipeline.max(1), is_repeated }
    }

    fn next(&mut self) -> Option<Range<usize>> {
        if self.next == self.end && self.is_repeated {
            self.next = 0;
        }
        let batch = self.next..(self.next + self.pipeline).min(self.end);
        self.next = batch.end;
        (!batch.is_empty()).then_some(batch)
    }
}

/// Counts, and reads the clock.
struct Tally {
    begin: Instant,
    end: Option<Instant>,
    /// When replies arrived last.
    now: Instant,
    requests: u64,
    measured: u64,
    latencies: Histogram,
}

impl Tally {
    fn new(span: Span) -> Self {
        let now = Instant::now();
        let (begin, end) = match span {
            Span::Once => (now, None),
            Span::Time { warm_up, window } => (now + warm_up, Some(now + warm_up + window)),
        };
        let latencies = Histogram::default();
        Self { begin, end, now, requests: 0, measured: 0, latencies }
    }

    #[inline]
    fn count(&mut self, replies: u64, asked: Instant) {
        self.now = Instant::now();
        if replies == 0 || self.now < self.begin || self.is_over() {
            return;
        }
        self.measured += replies;
        self.latencies.add_times(self.now - asked, replies);
        // On a busy machine, nothing may have been answered in the window.
        self.end = self.end.map(|end| end.max(self.now));
    }

    fn is_over(&self) -> bool {
        self.measured > 0 && self.end.is_some_and(|end| self.now >= end)
    }

    fn outcome(self) -> Outcome {
        let elapsed = self.end.unwrap_or(self.now) - self.begin;
        let Self { requests, measured, latencies, .. } = self;
        Outcome { requests, measured, elapsed, latencies }
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::Spread;
    use super::null::{Canned, Null};
    use super::script::{Contents, Workload};
    use super::wire::Wire;
    use super::*;

    fn contents(wire: Wire) -> Contents {
        Contents { wire, key_bytes: 6, value_bytes: 30, pairs: 500 }
    }

    fn once(port: u16, connections: usize, pipeline: usize) -> Plan {
        Plan { port, connections, pipeline, span: Span::Once, compares: true }
    }

    #[test]
    fn every_request_is_sent_and_answered_once() {
        for wire in Wire::ALL {
            let script = Script::fill(contents(wire), 0..500);
            let null = Null::start(Canned::new(&contents(wire)), None).expect("a server");
            for (connections, pipeline) in [(1, 1), (7, 3), (100, 64)] {
                let outcome = run(&script, &once(null.port(), connections, pipeline));
                let outcome = outcome.expect("it is answered");
                assert_eq!((outcome.requests, outcome.measured), (500, 500));
                assert_eq!(outcome.latencies.len(), 500);
            }
            assert_eq!(null.end().expect("it has answered"), 3 * 500);
        }
    }

    #[test]
    fn the_requests_of_a_time_are_all_answered_and_some_are_measured() {
        let contents = contents(Wire::Resp);
        let script = Script::mixed(contents, Workload::A, Spread::Uniform);
        let null = Null::start(Canned::new(&contents), None).expect("a server");
        let mut requests = 0;
        // A window that is too short for a reply lasts longer.
        for window in [Duration::from_millis(50), Duration::ZERO] {
            let span = Span::Time { warm_up: Duration::from_millis(5), window };
            let port = null.port();
            let plan = Plan { port, connections: 3, pipeline: 7, span, compares: false };
            let outcome = run(&script, &plan).expect("it is answered");
            assert_eq!(outcome.latencies.len(), outcome.measured);
            assert!((1..=outcome.requests).contains(&outcome.measured));
            assert!(outcome.elapsed >= window && !outcome.elapsed.is_zero());
            requests += outcome.requests;
        }
        assert_eq!(null.end().expect("it has answered"), requests);
    }

    #[test]
    fn batches_larger_than_the_buffers_of_sockets_pass() {
        let contents =
            Contents { wire: Wire::Text, key_bytes: 6, value_bytes: 200_000, pairs: 100 };
        let script = Script::fill(contents, 0..100);
        let null = Null::start(Canned::new(&contents), None).expect("a server");
        let outcome = run(&script, &once(null.port(), 1, 100)).expect("it is answered");
        assert_eq!((outcome.requests, null.end().expect("it has answered")), (100, 100));
    }

    #[test]
    fn a_wrong_reply_ends_the_load() {
        let contents = contents(Wire::Resp);
        let failed = |script: &Script, canned: Canned| {
            let null = Null::start(canned, None).expect("a server");
            let error = run(script, &once(null.port(), 2, 4)).expect_err("a wrong reply");
            error.to_string()
        };
        let right = || Canned::new(&contents);
        let writes = Script::fill(contents, 0..500);
        let said = failed(&writes, Canned { stored: b"-OOM\r\n".into(), ..right() });
        assert!(said.contains("-OOM"), "{said}");
        let said = failed(&writes, Canned { stored: b"+OK\r\n+".into(), ..right() });
        assert!(said.contains("unexpected reply") || said.contains("more than"), "{said}");
        let reads = Script::mixed(contents, Workload::C, Spread::Uniform);
        let said = failed(&reads, Canned { value: b"$-1\r\n".into(), ..right() });
        assert!(said.contains("unexpected reply"), "{said}");
        // The right shape with a value that nobody has stored.
        assert!(failed(&reads, right()).contains("a wrong value"));
    }
}
