// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--case shared-queue`: many connections that share one queue, compared with one connection in
//! the same queue, and the memory of each.
//!
//! One process opens all connections and sends short messages one way: on the connections in turn,
//! at random, or at random with the queue being told the connection in advance. The other one polls
//! and receives. Time runs from the first message sent to the last one received. Memory is the
//! increase of both processes since before the queue was created, once all connections have been
//! used.

use crate::between::aims::{at_least, at_most};
use crate::between::placement::Placement;
use crate::between::processes::Processes;
use crate::between::shared::{Atomics, Shared};
use crate::harness::Measurement;
use crate::harness::report::{Kind, Line, Traffic, rounded};
use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use freeport_fabric::shared_queue::{Connection, Event, Limits};
use freeport_fabric::shm::{Options, SharedQueue};
use freeport_fabric::wait::Waiting;
use std::fs;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const COUNTS: [u32; 4] = [1, 1_000, 100_000, 1_000_000];
const QUICK_COUNTS: [u32; 2] = [1, 1_000];
const MESSAGES: u64 = 4_000_000;
const QUICK_MESSAGES: u64 = 100_000;
const MESSAGE_BYTES: usize = 8;
const WINDOW: u16 = 32;
const RING_BYTES: usize = 256 << 10;
/// Number of messages by which a connection is announced to the queue in advance.
const FORETOLD: usize = 12;
/// Maximum number of connections per poll.
const EVENTS: usize = 64;
const LONGEST: Duration = Duration::from_secs(120);
/// With fewer connections, the queue itself takes most of the memory.
const MEMORY_FROM: u32 = 100_000;

/// Order in which connections are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    InTurn,
    AtRandom,
    /// At random, with each connection announced to the queue a few messages in advance.
    Predicted,
}

/// Results of one setting.
pub struct QueueResult {
    placement: Placement,
    connections: u32,
    order: Order,
    /// Millions of messages per second, by round.
    rates: Measurement,
    /// Bytes per connection in the last round, of both processes together.
    bytes: f64,
}

/// Results of the processes.
struct Found {
    /// Whether the sender has prepared its order, and the receiver has read all first messages.
    begun: [AtomicU64; 2],
    nanoseconds: AtomicU64,
    /// Increase of memory of each process, in bytes.
    more: [AtomicU64; 2],
}

// SAFETY: all fields are atomic numbers.
unsafe impl Atomics for Found {}

/// Measures all settings in turn, round after round.
///
/// # Errors
/// A process fails, or a message was lost.
pub fn measure(
    placements: &[Placement],
    rounds: u32,
    is_quick: bool,
    cores: &[usize],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<QueueResult>> {
    let counts: &[u32] = if is_quick { &QUICK_COUNTS } else { &COUNTS };
    let messages = if is_quick { QUICK_MESSAGES } else { MESSAGES };
    let mut results = vec![];
    for &placement in placements {
        for &connections in counts {
            let orders: &[Order] = if connections == 1 { &[Order::InTurn] } else { &Order::ALL };
            results.extend(orders.iter().map(|&order| QueueResult {
                placement,
                connections,
                order,
                rates: Measurement { name: order.name().into(), rates: vec![] },
                bytes: f64::NAN,
            }));
        }
    }
    for round in 0..rounds {
        for result in &mut results {
            let QueueResult { placement, connections, order, .. } = *result;
            let name = placement.name();
            progress(&format!(
                "round {} of {rounds}: {connections} connections, {name}",
                round + 1
            ));
            let run = Run { placement, connections, order, messages };
            let (rate, bytes) = run.measure(cores)?;
            result.rates.rates.push(rate);
            result.bytes = bytes;
        }
    }
    Ok(results)
}

struct Run {
    placement: Placement,
    connections: u32,
    order: Order,
    messages: u64,
}

impl Run {
    /// Returns millions of messages per second, and bytes per connection.
    fn measure(&self, cores: &[usize]) -> Result<(f64, f64)> {
        let [here, there] = self.placement.cores(1, cores)?.first().copied().context("cores")?;
        let waiting = self.placement.wait(1, cores).of_freeport();
        let (near, far) = UnixStream::pair()?;
        let found = Shared::<Found>::new()?;
        let mut processes = Processes::default();
        processes.start("the sender", here, || self.send(near, waiting, &found))?;
        processes.start("the receiver", there, || self.receive(far, waiting, &found))?;
        processes.finish(LONGEST)?;
        let seconds = found.nanoseconds.load(Ordering::Acquire) as f64 / 1e9;
        let more: u64 = found.more.iter().map(|it| it.load(Ordering::Acquire)).sum();
        let rate = self.messages as f64 / seconds.max(1e-9) / 1e6;
        Ok((rate, more as f64 / f64::from(self.connections)))
    }

    fn limits(&self) -> Limits {
        Limits { connections: [self.connections, 0], window: WINDOW }
    }

    fn send(&self, stream: UnixStream, waiting: Waiting, found: &Found) -> Result<()> {
        let mut connections = vec![Default::default(); self.connections as usize];
        let mut random = Rng::with_seed(1);
        let before = resident_bytes()?;
        let mut queue = SharedQueue::connect(stream, &options(waiting), self.limits())?;
        for connection in &mut connections {
            *connection = queue.open()?;
            queue.send(*connection, &0_u64.to_ne_bytes())?;
        }
        found.more[0].store(resident_bytes()?.saturating_sub(before), Ordering::Release);
        // The order is prepared in an array, so that the measurement does not include its
        // computation.
        let turns = (0..self.messages as usize).map(|number| match self.order {
            Order::InTurn => connections[number % connections.len()],
            Order::AtRandom | Order::Predicted => connections[random.usize(..connections.len())],
        });
        let turns: Vec<Connection> = turns.collect();
        found.begun[0].store(1, Ordering::Release);
        await_start(&found.begun[1]);
        let mut ahead = turns.iter().skip(FORETOLD);
        for (number, connection) in turns.iter().enumerate() {
            if self.order == Order::Predicted
                && let Some(later) = ahead.next()
            {
                queue.will_send(*later);
            }
            queue.send(*connection, &(number as u64).to_ne_bytes())?;
        }
        Ok(())
    }

    fn receive(&self, stream: UnixStream, waiting: Waiting, found: &Found) -> Result<()> {
        let before = resident_bytes()?;
        let mut queue = SharedQueue::accept(stream, &options(waiting), self.limits())?;
        let first = take(&mut queue, u64::from(self.connections), self.connections)?;
        ensure!(first == 0, "the first messages are zero, and their sum is {first}");
        await_start(&found.begun[0]);
        let begin = Instant::now();
        found.begun[1].store(1, Ordering::Release);
        let sum = take(&mut queue, self.messages, self.connections)?;
        let elapsed = begin.elapsed();
        let expected = self.messages * (self.messages - 1) / 2;
        ensure!(sum == expected, "messages were lost or damaged: the sum is {sum}, not {expected}");
        found.nanoseconds.store(elapsed.as_nanos() as u64, Ordering::Release);
        found.more[1].store(resident_bytes()?.saturating_sub(before), Ordering::Release);
        Ok(())
    }
}

fn await_start(begun: &AtomicU64) {
    while begun.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
}

/// Receives this many messages; returns the sum of the numbers in them.
fn take(queue: &mut SharedQueue, messages: u64, connections: u32) -> Result<u64> {
    let mut events = [Event::default(); EVENTS];
    let mut into = [0; MESSAGE_BYTES];
    let (mut taken, mut sum) = (0, 0_u64);
    while taken < messages {
        let count = queue.poll(&mut events)?;
        ensure!(count > 0, "the sender has exited after {taken} of {messages} messages");
        for event in &events[..count] {
            if taken == messages {
                break;
            }
            // A single connection is drained; of many, each gets its turn.
            let most = if connections == 1 { messages - taken } else { 1 };
            for _ in 0..most {
                match queue.try_receive(event.connection, &mut into) {
                    Ok(length) => ensure!(length == Some(MESSAGE_BYTES), "{length:?} bytes"),
                    Err(error) if error.is_would_block() => break,
                    Err(error) => return Err(error.into()),
                }
                sum += u64::from_ne_bytes(into);
                taken += 1;
            }
        }
    }
    Ok(sum)
}

/// Returns the resident memory of this process, shared or not.
fn resident_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.context("/proc/self/statm has no resident pages")? * 4096)
}

fn options(waiting: Waiting) -> Options {
    Options { waiting, ..Options::with_capacity(RING_BYTES) }
}

impl Order {
    const ALL: [Self; 3] = [Self::InTurn, Self::AtRandom, Self::Predicted];

    fn name(self) -> &'static str {
        match self {
            Self::InTurn => "in turn",
            Self::AtRandom => "at random",
            Self::Predicted => "foretold",
        }
    }
}

/// Formats a table of all settings.
pub fn text(results: &[QueueResult]) -> String {
    let mut text = format!(
        "shared queue, {MESSAGE_BYTES} B messages one way, measured\n\
         {:<18}{:>13}  {:<11}{:>14}{:>9}{:>15}{:>15}\n",
        "placement", "connections", "order", "million/s", "spread", "of one's rate", "B/connection"
    );
    for result in results {
        let QueueResult { placement, connections, order, rates, .. } = result;
        let part = times_one(results, result).map_or("-".into(), |times| format!("{times:.2}"));
        let bytes = result.bytes().map_or("-".into(), |bytes| format!("{bytes:.0}"));
        let (rate, spread) = (rates.median(), 100.0 * rates.spread());
        text += &format!(
            "{:<18}{connections:>13}  {:<11}{rate:>14.2}{spread:>8.0}%{part:>15}{bytes:>15}\n",
            placement.name(),
            order.name(),
        );
    }
    text
}

/// Returns the aims (SocksDirect 6.6.3 has 160 bytes), and whether they were reached.
pub fn aims(results: &[QueueResult]) -> Vec<String> {
    let most = results.iter().filter(|it| it.connections == COUNTS[3]);
    most.flat_map(|it| {
        let what = format!(
            "of {} connections {}, {}",
            it.connections,
            it.order.name(),
            it.placement.name()
        );
        let rate = times_one(results, it)
            .map(|times| at_least(times, 0.8, &format!("of the rate of one connection, {what}")));
        let bytes = it.bytes().map(|bytes| at_most(bytes, 200.0, &format!("B each, {what}")));
        rate.into_iter().chain(bytes)
    })
    .collect()
}

/// Returns the rate relative to that of one connection in the same placement.
fn times_one(results: &[QueueResult], of: &QueueResult) -> Option<f64> {
    let one = results.iter().find(|it| it.connections == 1 && it.placement == of.placement)?;
    (of.connections > 1).then(|| of.rates.median() / one.rates.median())
}

impl QueueResult {
    /// Returns the bytes per connection, if there are enough for the queue itself to be negligible.
    fn bytes(&self) -> Option<f64> {
        (self.connections >= MEMORY_FROM).then_some(self.bytes)
    }

    /// Returns the results as JSON lines.
    pub fn lines(&self) -> Vec<Line> {
        let Self { placement, connections, order, rates, .. } = self;
        let line = |metric: &str, unit: &str, value: f64, p99: f64| Line {
            bench: "fabric".into(),
            case: format!("shared queue, {connections} connections {}", order.name()),
            traffic: Traffic::Messages {
                message_bytes: MESSAGE_BYTES,
                placement: placement.word(),
                pairs: 1,
            },
            metric: metric.into(),
            unit: unit.into(),
            kind: Kind::Measured,
            value: rounded(value),
            p50: rounded(value),
            p99: rounded(p99),
            peer: None,
            peer_value: None,
            ratio: None,
            published: None,
            note: None,
        };
        let (rate, least) = (rates.median() * 1e6, rates.reached_by_99_percent() * 1e6);
        let rate = line("messages", "messages/s", rate, least);
        let bytes = self.bytes().map(|bytes| line("memory", "bytes/connection", bytes, bytes));
        [rate].into_iter().chain(bytes).collect()
    }
}
