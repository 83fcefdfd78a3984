// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several clients that send the next request when the previous one is answered: closed loops.

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
    /// A new connection for each request.
    Fresh,
    /// One connection for all requests of a client.
    Kept,
}

/// The requests to send.
#[derive(Clone, Debug)]
pub struct Load<'a> {
    /// Host of the clients.
    pub host: &'a Host,
    /// Address of the server.
    pub server: SocketAddrV4,
    /// Requested path.
    pub path: &'a str,
    /// Use of connections.
    pub connections: Connections,
    /// Number of concurrent clients.
    pub clients: usize,
    /// Maximum number of requests in total.
    pub requests: u64,
    /// Time limit, after which no more requests are sent.
    pub limit: Duration,
}

/// Results of a load.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Latency of each answered request, including its connection if that was new.
    pub latencies: Histogram,
    /// Times of the answers since the start, sorted.
    pub answered: Vec<Duration>,
    /// Requests without an answer of status 200, by the reason.
    pub failures: BTreeMap<String, u64>,
    /// Answers by backend.
    pub backends: BTreeMap<String, u64>,
    /// Time from the first request to the last answer.
    pub elapsed: Duration,
}

/// Results of one client.
#[derive(Default)]
struct Seen {
    /// Start and end of each answered request.
    times: Vec<(Instant, Instant)>,
    failures: BTreeMap<String, u64>,
    backends: BTreeMap<String, u64>,
}

impl Load<'_> {
    /// Sends requests until their number is reached, the time is up, or `is_to_stop` is set.
    ///
    /// # Errors
    /// The host cannot be entered. Failed requests are counted.
    pub fn run(&self, is_to_stop: &AtomicBool) -> Result<Outcome> {
        ensure!(self.clients > 0, "a load needs at least one client");
        let begin = Instant::now();
        let begun = AtomicU64::new(0);
        let continues = || {
            begin.elapsed() < self.limit
                && !is_to_stop.load(Ordering::Relaxed)
                && begun.fetch_add(1, Ordering::Relaxed) < self.requests
        };
        // Threads inherit the host of the thread that starts them.
        let seen = self.host.within(|| {
            std::thread::scope(|scope| {
                let clients: Vec<_> =
                    (0..self.clients).map(|_| scope.spawn(|| self.ask(&continues))).collect();
                let joined =
                    clients.into_iter().map(|it| it.join().ok().context("a client panicked"));
                joined.collect::<Result<Vec<Seen>>>()
            })
        })?;
        Ok(Outcome::of(seen, begin))
    }

    fn ask(&self, continues: &dyn Fn() -> bool) -> Seen {
        let mut seen = Seen::default();
        let mut kept = None;
        while continues() {
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
                kept.as_mut().context("the connection is not open")?.get(self.path)?
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

    /// Returns the number of answered requests per second.
    pub fn per_second(&self) -> f64 {
        self.answered.len() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the number of failed requests.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}
