// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two measurements: messages that go to and fro, and messages that follow each other one way.
//! Each is made by processes of its own, which meet before they begin.

use super::channel::{Channel, Open};
use super::content::{Reader, Writer};
use super::processes::Processes;
use super::shared::{Atomics, Shared};
use crate::histogram::{BUCKETS, Histogram, bucket};
use anyhow::{Context, Result, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes of a message.
    pub size: usize,
    /// Messages of each pair.
    pub messages: u64,
    /// Whether all bytes are compared, rather than a number in each message.
    pub is_full_check: bool,
    /// The core of each process, of one pair after the other.
    pub cores: Vec<[usize; 2]>,
}

impl Plan {
    /// The cores of the only pair.
    fn first_cores(&self) -> Result<[usize; 2]> {
        self.cores.first().copied().context("a pair has cores")
    }
}

/// How long a measurement may take at most, which is far more than it ever should.
const LONGEST: Duration = Duration::from_secs(60);
/// What a receiver makes room for at least, and at most where messages are longer than that.
const READ_BYTES: (usize, usize) = (64 << 10, 256 << 10);

/// Sends messages to and fro; gives how long the round trips took.
///
/// # Errors
/// A process failed, or a byte was lost or damaged.
pub fn round_trips<C: Channel>([near, far]: [Open<C>; 2], plan: &Plan) -> Result<Histogram> {
    let desk = Shared::<Desk>::new()?;
    let mut processes = Processes::default();
    let cores = plan.first_cores()?;
    processes.start("who asks", cores[0], || ask(near()?, plan, &desk))?;
    processes.start("who answers", cores[1], || answer(far()?, plan, &desk))?;
    processes.finish(LONGEST)?;
    Ok(Histogram::of_counts(desk.trips.iter().map(|it| it.load(Ordering::Relaxed))))
}

fn ask<C: Channel>(mut channel: C, plan: &Plan, desk: &Desk) -> Result<()> {
    let mut writer = Writer::new(plan.size, plan.is_full_check);
    let mut reader = Reader::new(plan.size, plan.is_full_check);
    let mut answer = vec![1; plan.size];
    desk.meet(2);
    let mut before = now();
    for _ in 0..plan.messages {
        channel.send(writer.next())?;
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

fn answer<C: Channel>(mut channel: C, plan: &Plan, desk: &Desk) -> Result<()> {
    let mut message = vec![1; plan.size];
    desk.meet(2);
    for _ in 0..plan.messages {
        channel.receive_all(&mut message)?;
        channel.send(&message)?;
    }
    Ok(())
}

/// Sends messages one way, in all pairs at once; gives how long that took.
///
/// # Errors
/// A process failed, or a byte was lost or damaged.
pub fn stream<C: Channel>(pairs: Vec<[Open<C>; 2]>, plan: &Plan) -> Result<Duration> {
    let desk = Shared::<Desk>::new()?;
    let parties = 2 * pairs.len() as u64;
    let mut processes = Processes::default();
    for ([near, far], cores) in pairs.into_iter().zip(&plan.cores) {
        processes.start("who sends", cores[0], || send(near()?, plan, &desk, parties))?;
        processes.start("who receives", cores[1], || receive(far()?, plan, &desk, parties))?;
    }
    processes.finish(LONGEST)?;
    Ok(desk.elapsed())
}

fn send<C: Channel>(mut channel: C, plan: &Plan, desk: &Desk, parties: u64) -> Result<()> {
    let mut writer = Writer::new(plan.size, plan.is_full_check);
    desk.meet(parties);
    desk.begin();
    for _ in 0..plan.messages {
        channel.send(writer.next())?;
    }
    Ok(())
}

fn receive<C: Channel>(mut channel: C, plan: &Plan, desk: &Desk, parties: u64) -> Result<()> {
    let mut reader = Reader::new(plan.size, plan.is_full_check);
    let mut buffer = vec![1; plan.size.clamp(READ_BYTES.0, READ_BYTES.1)];
    desk.meet(parties);
    while reader.messages() < plan.messages {
        let count = channel.receive(&mut buffer)?;
        reader.check(&buffer[..count])?;
    }
    ensure!(reader.messages() == plan.messages, "more came than was sent");
    desk.end();
    Ok(())
}

/// What it costs to wait for somebody who has nothing to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Processor time of who waits.
    pub waiting: Duration,
    /// The first round trip afterwards.
    pub trip: Duration,
}

/// Messages before the silence.
const BEFORE_SILENCE: usize = 100;

/// Sends some messages to and fro, then nothing for a time, then one.
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
    processes.start("who speaks", cores[0], break_silence)?;
    processes.start("who waits", cores[1], wait)?;
    processes.finish(LONGEST)?;
    let waiting = Duration::from_nanos(desk.waiting.load(Ordering::Acquire));
    Ok(Idle { waiting, trip: desk.elapsed() })
}

/// Copies messages from one place to another, with nobody else in it; gives how long that took.
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
                target.copy_from_slice(std::hint::black_box(writer.next()));
                std::hint::black_box(&mut target);
            }
            desk.end();
            anyhow::Ok(())
        };
        processes.start("who copies", cores[0], work)?;
    }
    processes.finish(LONGEST)?;
    Ok(desk.elapsed())
}

/// Where the processes of a measurement meet, and leave what they measured.
#[repr(C)]
struct Desk {
    arrived: AtomicU64,
    /// When the first began, counted from the end of time so that zero is none.
    began: AtomicU64,
    ended: AtomicU64,
    /// Processor time of who waited.
    waiting: AtomicU64,
    trips: [AtomicU64; BUCKETS],
}

// SAFETY: nothing but atomic numbers.
unsafe impl Atomics for Desk {}

impl Desk {
    /// Waits until all are there.
    fn meet(&self, parties: u64) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < parties {
            std::thread::yield_now();
        }
    }

    fn begin(&self) {
        self.began.fetch_max(u64::MAX - now(), Ordering::AcqRel);
    }

    fn end(&self) {
        self.ended.fetch_max(now(), Ordering::AcqRel);
    }

    fn elapsed(&self) -> Duration {
        let began = u64::MAX - self.began.load(Ordering::Acquire);
        Duration::from_nanos(self.ended.load(Ordering::Acquire).saturating_sub(began))
    }

    #[inline]
    fn count(&self, nanoseconds: u64) {
        let cell = &self.trips[bucket(nanoseconds)];
        // Only one process counts.
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Nanoseconds by a clock that all processes share.
#[inline]
fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds for which this process has had a processor.
fn processor_time() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the place given; these clocks are always there.
    unsafe { libc::clock_gettime(which, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
