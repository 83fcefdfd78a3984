// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several clients that ask one after the other, each when it has its answer: closed loops.

use super::super::{Host, PATIENCE};
use super::Connection;
use crate::harness::histogram::Histogram;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How clients use connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connections {
    /// One for each request.
    Fresh,
    /// One for all requests of a client.
    Kept,
}

/// What is to be asked.
#[derive(Clone, Debug)]
pub struct Load<'a> {
    /// Where the clients are.
    pub host: &'a Host,
    /// Whom they ask.
    pub server: SocketAddrV4,
    /// For what.
    pub path: &'a str,
    /// Over which connections.
    pub connections: Connections,
    /// How many clients ask at a time.
    pub clients: usize,
    /// How many requests there are in all, at most.
    pub requests: u64,
    /// After how long no more are made.
    pub limit: Duration,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// How long each answered request took, with its connection if that was fresh.
    pub latencies: Histogram,
    /// When each of them was answered, from the beginning; sorted.
    pub answered: Vec<Duration>,
    /// Requests that got no answer, or another than 200, by what was the matter.
    pub failures: BTreeMap<String, u64>,
    /// Answers by who gave them.
    pub backends: BTreeMap<String, u64>,
    /// From the first request to the last answer.
    pub elapsed: Duration,
}

/// What one client saw.
#[derive(Default)]
struct Seen {
    /// Begin and end of each answered request.
    times: Vec<(Instant, Instant)>,
    failures: BTreeMap<String, u64>,
    backends: BTreeMap<String, u64>,
}

impl Load<'_> {
    /// Asks until there are as many requests as there are to be, the time is up, or `is_to_stop`.
    ///
    /// # Errors
    /// The host cannot be entered. Requests that fail are counted.
    pub fn run(&self, is_to_stop: &AtomicBool) -> Result<Outcome> {
        ensure!(self.clients > 0, "at least one client has to ask");
        let begin = Instant::now();
        let begun = AtomicU64::new(0);
        let goes_on = || {
            begin.elapsed() < self.limit
                && !is_to_stop.load(Ordering::Relaxed)
                && begun.fetch_add(1, Ordering::Relaxed) < self.requests
        };
        // Threads are on the host where the thread is that starts them.
        let seen = self.host.within(|| {
            std::thread::scope(|scope| {
                let clients: Vec<_> =
                    (0..self.clients).map(|_| scope.spawn(|| self.ask(&goes_on))).collect();
                let joined = clients.into_iter().map(|it| it.join().ok().context("it panicked"));
                joined.collect::<Result<Vec<Seen>>>()
            })
        })?;
        Ok(Outcome::of(seen, begin))
    }

    fn ask(&self, goes_on: &dyn Fn() -> bool) -> Seen {
        let mut seen = Seen::default();
        let mut kept = None;
        while goes_on() {
            let begin = Instant::now();
            match self.ask_once(&mut kept) {
                Ok((200, backend)) => {
                    seen.times.push((begin, Instant::now()));
                    *seen.backends.entry(backend).or_default() += 1;
                }
                Ok((status, _)) => *seen.failures.entry(status.to_string()).or_default() += 1,
                Err(error) => {
                    kept = None;
                    *seen.failures.entry(format!("{error:#}")).or_default() += 1;
                }
            }
        }
        seen
    }

    fn ask_once(&self, kept: &mut Option<Connection>) -> Result<(u16, String)> {
        let connect = || Connection::open_here(self.server, PATIENCE);
        let response = match self.connections {
            Connections::Fresh => connect()?.last(self.path)?,
            Connections::Kept => {
                if kept.is_none() {
                    *kept = Some(connect()?);
                }
                kept.as_mut().context("it was just made")?.get(self.path)?
            }
        };
        Ok((response.status, response.backend))
    }
}

impl Outcome {
    fn of(seen: Vec<Seen>, begin: Instant) -> Self {
        let mut outcome = Self::default();
        for Seen { times, failures, backends } in seen {
            times.iter().for_each(|(from, to)| outcome.latencies.add(*to - *from));
            outcome.answered.extend(times.iter().map(|(_, to)| *to - begin));
            for (to, from) in [(&mut outcome.failures, failures), (&mut outcome.backends, backends)]
            {
                from.into_iter().for_each(|(key, count)| *to.entry(key).or_default() += count);
            }
        }
        outcome.answered.sort_unstable();
        outcome.elapsed = outcome.answered.last().copied().unwrap_or_default();
        outcome
    }

    /// Answered requests a second.
    pub fn per_second(&self) -> f64 {
        self.answered.len() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Requests that were not answered as they should be.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}
