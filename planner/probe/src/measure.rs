// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Visits of all points in turn, several times, so that a disturbance meets only a part of each
//! point's visits.

use crate::error::Error;
use crate::host::{Host, pin_to};
use crate::meeting::Meeting;
use crate::partner::Partner;
use crate::point::{Kind, Point};
use crate::sample::{Sample, Visit};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Visits of a point, unless the time ends before.
const ROUNDS: u32 = 5;
/// Longest measurement in seconds.
const SECONDS_MAX: f64 = 3600.0;
/// Share of the whole time for visits; the rest is for populating memory and warming up caches.
const VISITS: f64 = 0.5;

/// How to measure.
pub struct Settings<'a> {
    /// About the time of all visits, in seconds.
    pub seconds: f64,
    /// Makes the command of the second process, which calls [`respond`](crate::respond).
    pub command: &'a (dyn Fn() -> Command + Sync),
}

/// A visit of a point.
struct Order {
    point: Point,
    /// All threads of the visit.
    meeting: Arc<Meeting>,
    time: Duration,
    /// Whether threads and processes of the point have to share cores.
    shares_core: bool,
}

/// A thread that posts requests to a process of its own.
struct Worker {
    orders: Sender<Order>,
    results: Receiver<Result<Option<Visit>, Error>>,
}

/// Measures points. `on_visit` gets the share of visits that are done, from 0 to 1, and the next
/// point.
///
/// # Errors
/// The settings are impossible, a process cannot be started, or the fabric refuses an operation.
pub fn measure(
    host: &Host,
    points: &[Point],
    settings: &Settings<'_>,
    mut on_visit: impl FnMut(f64, &Point),
) -> Result<Vec<Sample>, Error> {
    let Settings { seconds, command } = *settings;
    if !(seconds > 0.0 && seconds <= SECONDS_MAX) {
        return Err(Error::Seconds { value: seconds, most: SECONDS_MAX });
    }
    if let Some((point, fault)) = points.iter().find_map(|point| Some((point, point.fault()?))) {
        return Err(Error::Point(format!("{point:?}"), fault));
    }
    let most = |of: fn(&Point) -> u64| points.iter().map(of).max().unwrap_or(1);
    let range = most(|point| point.range);
    let payload = most(|point| point.bytes * u64::from(point.batch)).max(4096);
    let visits = f64::from(ROUNDS) * points.len().max(1) as f64;
    let time = Duration::from_secs_f64(VISITS * seconds / visits);
    // Beginning and populating memory takes time as well: rounds end with the time.
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    thread::scope(|scope| {
        let threads = most(|point| point.threads.into()) as usize;
        let workers: Vec<Worker> = (0..threads)
            .map(|number| Worker::start(scope, host, number, command, (range, payload)))
            .collect();
        // Points of a range follow each other: each change of the range warms up caches.
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by_key(|number| (points[*number].range, points[*number].kind));
        let mut found: Vec<Vec<Vec<Visit>>> = vec![vec![]; points.len()];
        'rounds: for round in 0..ROUNDS {
            for (done, number) in order.iter().enumerate() {
                if round > 0 && Instant::now() >= end {
                    break 'rounds;
                }
                let done = f64::from(round) * points.len() as f64 + done as f64;
                let point = points[*number];
                on_visit(done / visits, &point);
                let workers = &workers[..point.threads as usize];
                found[*number].push(visit(workers, point, time, shares_core(host, &point))?);
            }
        }
        let sample = |(point, visits): (&Point, Vec<_>)| {
            Sample::of(*point, &visits, shares_core(host, point))
        };
        Ok(points.iter().zip(found).map(sample).collect())
    })
}

/// Returns whether threads and processes of a point have to share cores.
fn shares_core(host: &Host, point: &Point) -> bool {
    let sides = if point.kind == Kind::Send { 2 } else { 1 };
    sides * point.threads as usize > host.cores.len()
}

/// Lets workers visit a point at the same time.
fn visit(
    workers: &[Worker],
    point: Point,
    time: Duration,
    shares_core: bool,
) -> Result<Vec<Visit>, Error> {
    let meeting = Arc::new(Meeting::new(workers.len()));
    for worker in workers {
        let order = Order { point, meeting: Arc::clone(&meeting), time, shares_core };
        if worker.orders.send(order).is_err() {
            // The thread panicked, and others may wait for it already.
            meeting.call_off();
        }
    }
    // All results are received, so that no worker is left behind.
    let results: Vec<_> = workers.iter().map(|worker| worker.results.recv()).collect();
    let visits = results.into_iter().map(|result| result.map_err(|_| Error::Thread)?);
    let visits: Vec<Option<Visit>> = visits.collect::<Result<_, _>>()?;
    // A meeting is off only if a thread failed: its error was returned.
    visits.into_iter().collect::<Option<_>>().ok_or(Error::Thread)
}

impl Worker {
    /// Starts a thread on a core; its process is on another one, counted from the last core.
    fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        host: &'scope Host,
        number: usize,
        command: &'scope (dyn Fn() -> Command + Sync),
        (range, payload): (u64, u64),
    ) -> Self {
        let (orders, inbox) = channel::<Order>();
        let (outbox, results) = channel();
        let count = host.cores.len();
        let core = host.cores[number % count];
        let other = host.cores[(2 * count - 1 - number % count) % count];
        scope.spawn(move || {
            pin_to(core);
            let mut partner = None;
            // The process begins with the first order, and its memory is touched when it is needed.
            while let Ok(Order { point, meeting, time, shares_core }) = inbox.recv() {
                let place = meeting.join();
                let result = match &mut partner {
                    Some(partner) => Ok(partner),
                    none => Partner::start(command(), other, range, payload)
                        .map(|started| none.insert(started)),
                };
                let visit = result
                    .and_then(|partner| partner.requester.visit(&point, time, shares_core, place));
                if outbox.send(visit).is_err() {
                    return;
                }
            }
        });
        Self { orders, results }
    }
}
