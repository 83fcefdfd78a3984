// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measurements: round trips of messages, and messages one way. Each runs in its own processes,
//! which meet before they begin.

use super::channel::{Channel, Open};
use super::content::{Reader, Writer};
use super::desk::{Desk, now, processor_time};
use super::processes::Processes;
use super::shared::Shared;
use crate::harness::histogram::Histogram;
use anyhow::{Context, Result, ensure};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A measurement to make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes per message.
    pub size: usize,
    /// Messages per pair.
    pub messages: u64,
    /// Whether all bytes are compared, not only the number in each message.
    pub is_full_check: bool,
    /// The cores of both processes, by pair.
    pub cores: Vec<[usize; 2]>,
}

impl Plan {
    /// Returns the size of the kernel's buffers at which sockets performed best: on two cores, a
    /// few of the longest writes; on one, what stays in its cache between the two processes.
    pub fn buffer_bytes(&self) -> i32 {
        let is_on_one_core = self.cores.iter().any(|[near, far]| near == far);
        if is_on_one_core { 256 << 10 } else { 4 << 20 }
    }

    /// Returns the cores of the only pair.
    fn first_cores(&self) -> Result<[usize; 2]> {
        self.cores.first().copied().context("the plan has no pair of cores")
    }
}

/// Time limit of a measurement, much longer than any should take.
pub const LONGEST: Duration = Duration::from_secs(60);
/// Minimum receive buffer, and maximum where messages are longer.
const READ_BYTES: (usize, usize) = (64 << 10, 256 << 10);

/// Measures round trips of messages; returns the distribution of their times.
///
/// # Errors
/// A process failed, or a byte was lost or damaged.
pub fn round_trips<C: Channel>([near, far]: [Open<C>; 2], plan: &Plan) -> Result<Histogram> {
    let desk = Shared::<Desk>::new()?;
    let mut processes = Processes::default();
    let cores = plan.first_cores()?;
    processes.start("the client", cores[0], || ask(near()?, plan, &desk))?;
    processes.start("the server", cores[1], || answer(far()?, plan, &desk))?;
    processes.finish(LONGEST)?;
    Ok(desk.trips())
}

/// Sends requests and records the time until each response.
///
/// # Errors
/// The peer has closed its end, or a byte was damaged.
pub fn ask<C: Channel>(mut channel: C, plan: &Plan, desk: &Desk) -> Result<()> {
    let mut writer = Writer::new(plan.size, plan.is_full_check);
    let mut reader = Reader::new(plan.size, plan.is_full_check);
    let mut answer = vec![1; plan.size];
    desk.meet(2);
    let mut before = now();
    for _ in 0..plan.messages {
        channel.send(writer.compose())?;
        channel.receive_all(&mut answer)?;
        if C::IS_CARRYING {
            reader.check(&answer)?;
        }
        let after = now();
        desk.count(after - before);
        before = after;
    }
    Ok(())
}

/// Echoes what it receives.
///
/// # Errors
/// The peer has closed its end, or a byte was damaged.
pub fn answer<C: Channel>(mut channel: C, plan: &Plan, desk: &Desk) -> Result<()> {
    let mut message = vec![1; plan.size];
    desk.meet(2);
    for _ in 0..plan.messages {
        channel.receive_all(&mut message)?;
        channel.send(&message)?;
    }
    Ok(())
}

/// Sends messages one way in all pairs at once; returns the time that took.
///
/// # Errors
/// A process failed, or a byte was lost or damaged.
pub fn stream<C: Channel>(pairs: Vec<[Open<C>; 2]>, plan: &Plan) -> Result<Duration> {
    let desk = Shared::<Desk>::new()?;
    let parties = 2 * pairs.len() as u64;
    let mut processes = Processes::default();
    for ([near, far], cores) in pairs.into_iter().zip(&plan.cores) {
        processes.start("the sender", cores[0], || send(near()?, plan, &desk, parties))?;
        processes.start("the receiver", cores[1], || receive(far()?, plan, &desk, parties))?;
    }
    processes.finish(LONGEST)?;
    Ok(desk.elapsed())
}

/// Sends all messages of one pair, once all parties have arrived.
///
/// # Errors
/// The peer has closed its end, or a byte was damaged.
pub fn send<C: Channel>(mut channel: C, plan: &Plan, desk: &Desk, parties: u64) -> Result<()> {
    let mut writer = Writer::new(plan.size, plan.is_full_check);
    desk.meet(parties);
    desk.begin();
    for _ in 0..plan.messages {
        channel.send(writer.compose())?;
    }
    Ok(())
}

/// Receives all messages of one pair and verifies them.
///
/// # Errors
/// The peer has closed its end, or a byte was damaged.
pub fn receive<C: Channel>(mut channel: C, plan: &Plan, desk: &Desk, parties: u64) -> Result<()> {
    let mut reader = Reader::new(plan.size, plan.is_full_check);
    let mut buffer = vec![1; plan.size.clamp(READ_BYTES.0, READ_BYTES.1)];
    desk.meet(parties);
    while reader.messages() < plan.messages {
        let count = channel.receive(&mut buffer)?;
        reader.check(&buffer[..count])?;
    }
    ensure!(reader.messages() == plan.messages, "more arrived than was sent");
    desk.end();
    Ok(())
}

/// The cost of waiting for a peer that is silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Processor time of the waiting process.
    pub waiting: Duration,
    /// Duration of the first round trip after the silence.
    pub trip: Duration,
}

/// Messages before the silence.
const BEFORE_SILENCE: usize = 100;

/// Exchanges some messages, is silent for `time`, then sends one more.
///
/// # Errors
/// A process failed.
pub fn idle<C: Channel>([near, far]: [Open<C>; 2], plan: &Plan, time: Duration) -> Result<Idle> {
    let desk = Shared::<Desk>::new()?;
    let mut processes = Processes::default();
    let cores = plan.first_cores()?;
    let break_silence = || {
        let mut channel = near()?;
        let mut message = vec![1; plan.size];
        desk.meet(2);
        for _ in 0..BEFORE_SILENCE {
            channel.send(&message)?;
            channel.receive_all(&mut message)?;
        }
        std::thread::sleep(time);
        desk.begin();
        channel.send(&message)?;
        channel.receive_all(&mut message)?;
        desk.end();
        anyhow::Ok(())
    };
    let wait = || {
        let mut channel = far()?;
        let mut message = vec![1; plan.size];
        desk.meet(2);
        for _ in 0..BEFORE_SILENCE {
            channel.receive_all(&mut message)?;
            channel.send(&message)?;
        }
        let before = processor_time();
        channel.receive_all(&mut message)?;
        let waiting = processor_time() - before;
        channel.send(&message)?;
        desk.waiting.store(waiting, Ordering::Release);
        anyhow::Ok(())
    };
    processes.start("the sender", cores[0], break_silence)?;
    processes.start("the waiting process", cores[1], wait)?;
    processes.finish(LONGEST)?;
    let waiting = Duration::from_nanos(desk.waiting.load(Ordering::Acquire));
    Ok(Idle { waiting, trip: desk.elapsed() })
}

/// Copies messages within one process; returns the time that took.
///
/// # Errors
/// The process failed.
pub fn copy(plan: &Plan) -> Result<Duration> {
    let desk = Shared::<Desk>::new()?;
    let mut processes = Processes::default();
    for cores in &plan.cores {
        let work = || {
            let mut writer = Writer::new(plan.size, false);
            let mut target = vec![1; plan.size];
            desk.meet(plan.cores.len() as u64);
            desk.begin();
            for _ in 0..plan.messages {
                target.copy_from_slice(std::hint::black_box(writer.compose()));
                std::hint::black_box(&mut target);
            }
            desk.end();
            anyhow::Ok(())
        };
        processes.start("the copying process", cores[0], work)?;
    }
    processes.finish(LONGEST)?;
    Ok(desk.elapsed())
}
