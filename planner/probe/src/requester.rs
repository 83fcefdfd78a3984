// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The side that posts requests, over any transport, and measures their time in groups.

use crate::error::Error;
use crate::meeting::Place;
use crate::point::{Kind, Mode, Point};
use crate::responder::{Call, spins};
use crate::sample::Visit;
use freeport_fabric::endpoint::Transfer;
use freeport_fabric::{Completion, Endpoint};
use freeport_ring::Local;
use std::thread;
use std::time::{Duration, Instant};

/// Shortest time of a group; the clock takes about a hundredth of it.
const GROUP: Duration = Duration::from_micros(4);
/// Groups of a visit, at least.
const GROUPS_MIN: usize = 3;
/// Groups of a visit, at most.
const GROUPS_MAX: usize = 1 << 16;
/// Part of a visit's time in which requests are not measured.
const WARMING: f64 = 0.2;
/// Times that a range of addresses is read in its order before a visit: a last-level cache may keep
/// only what it has seen several times.
const IN_ORDER_TIMES: u64 = 4;
/// The most bytes that are read in that way.
const IN_ORDER_MAX: u64 = 128 << 20;
/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;
/// Polls without a completion between two checks of the peer.
const POLLS_BETWEEN_CHECKS: u32 = 1 << 12;

/// One end of a connection that posts requests.
pub struct Requester<E: Endpoint> {
    endpoint: E,
    /// Own memory: data are written from it and read into it. It stays zero.
    here: E::Region,
    there: E::Target,
    /// State of the generator of addresses.
    random: u64,
    /// Beginning of the other side's memory that was touched.
    touched: u64,
    /// Range of addresses of the last visit.
    range: u64,
    /// Whether the two sides of a message may have to share a core.
    shares_core: bool,
    /// Cost of reading the clock.
    clock: Duration,
}

impl<E: Endpoint> Requester<E> {
    /// Makes a requester of an endpoint, with memory of its own, which has room for the longest
    /// payload, and memory of the other side.
    pub fn new(endpoint: E, here: E::Region, there: E::Target) -> Self {
        let random = 0x9e37_79b9_7f4a_7c15;
        Self {
            endpoint,
            here,
            there,
            random,
            touched: 0,
            range: 0,
            shares_core: false,
            clock: cost_of_clock(),
        }
    }

    /// Measures a point for about this time, together with all threads of the
    /// meeting in which it has this place. `shares_core`
    /// is whether the two sides of a message may have to share a core. Returns none if another
    /// thread failed.
    ///
    /// # Errors
    /// The fabric refuses an operation, or the other side is gone. The meeting is called off.
    pub fn visit(
        &mut self,
        point: &Point,
        time: Duration,
        shares_core: bool,
        mut place: Place<'_>,
    ) -> Result<Option<Visit>, Error> {
        self.shares_core = shares_core;
        let group = self.prepare(point, time)?;
        place.prepared();
        // Requests without times: all threads load the machine before one of them measures.
        while !place.may_begin() {
            self.group(point, group)?;
        }
        let visit = self.measure(point, time, group)?;
        place.done();
        // Others measure beside the same load until the end.
        while !place.may_end() {
            self.group(point, group)?;
        }
        Ok((!place.is_off()).then_some(visit))
    }

    /// Warms up, and returns the number of requests of a group.
    fn prepare(&mut self, point: &Point, time: Duration) -> Result<u64, Error> {
        if point.kind != Kind::Send {
            self.warm(point)?;
        }
        let begin = Instant::now();
        let mut group = u64::from(point.batch);
        // The first requests are slower than others, so one short time is not enough.
        while self.shortest(point, group)? < GROUP {
            group *= 2;
        }
        while begin.elapsed() < time.mul_f64(WARMING) {
            self.group(point, group)?;
        }
        Ok(group)
    }

    /// Measures groups of requests for about this time.
    fn measure(&mut self, point: &Point, time: Duration, group: u64) -> Result<Visit, Error> {
        let time = time.mul_f64(1.0 - WARMING);
        let begin = Instant::now();
        let mut times = vec![];
        while times.len() < GROUPS_MIN || (times.len() < GROUPS_MAX && begin.elapsed() < time) {
            let elapsed = self.group(point, group)?.saturating_sub(self.clock);
            times.push(elapsed.as_nanos() as f64 / group as f64);
        }
        Ok(Visit::of(&mut times, group))
    }

    /// Brings pages and caches into the state that earlier requests in this range would leave. A
    /// range of which a cache can hold little keeps its state between visits.
    fn warm(&mut self, point: &Point) -> Result<(), Error> {
        while self.touched < point.range {
            self.write(self.touched, 8)?;
            self.wait(1, 0)?;
            self.touched += PAGE_BYTES;
        }
        let is_kept = self.range == point.range && 2 * point.range > IN_ORDER_MAX;
        self.range = point.range;
        let times = if is_kept { 0 } else { (IN_ORDER_MAX / point.range).clamp(1, IN_ORDER_TIMES) };
        let step = PAGE_BYTES.min(point.range);
        let end = point.range.min(IN_ORDER_MAX) - step;
        for _ in 0..times {
            for at in (0..=end).step_by(step as usize) {
                self.endpoint.read(self.transfer(at, step))?;
                self.wait(1, 0)?;
            }
        }
        Ok(())
    }

    /// Returns the shortest time of a few groups.
    fn shortest(&mut self, point: &Point, requests: u64) -> Result<Duration, Error> {
        let mut shortest = Duration::MAX;
        for _ in 0..GROUPS_MIN {
            shortest = shortest.min(self.group(point, requests)?);
        }
        Ok(shortest)
    }

    /// Carries out requests, in batches, and returns their time.
    fn group(&mut self, point: &Point, requests: u64) -> Result<Duration, Error> {
        let mut left = requests;
        let begin = Instant::now();
        while left > 0 {
            let batch = left.min(u64::from(point.batch));
            match (point.kind, point.mode) {
                (Kind::Read, Mode::Latency) => self.chained_read(point)?,
                (Kind::Read, Mode::Rate) => self.batch(point, batch, |this, at| {
                    this.endpoint.read(this.transfer(at, point.bytes)).map_err(Error::from)
                })?,
                (Kind::Write, _) => {
                    self.batch(point, batch, |this, at| this.write(at, point.bytes))?;
                }
                (Kind::FetchAdd, _) => self.batch(point, batch, |this, at| {
                    Ok(this.endpoint.fetch_add(&this.there, at as usize, 0, 0)?)
                })?,
                (Kind::CompareSwap, _) => self.batch(point, batch, |this, at| {
                    Ok(this.endpoint.compare_swap(&this.there, at as usize, 0, 0, 0)?)
                })?,
                (Kind::Send, _) => self.messages(point, batch)?,
            }
            left -= batch;
        }
        Ok(begin.elapsed())
    }

    #[inline]
    fn batch(
        &mut self,
        point: &Point,
        batch: u64,
        post: impl Fn(&Self, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for _ in 0..batch {
            let at = self.address(point);
            post(self, at)?;
        }
        self.wait(batch, 0)
    }

    /// Reads from an address that depends on the data of the read before.
    #[inline]
    fn chained_read(&mut self, point: &Point) -> Result<(), Error> {
        let at = self.address(point).wrapping_add(first_word(&self.here));
        self.endpoint.read(self.transfer(at, point.bytes))?;
        self.wait(1, 0)
    }

    /// Sends messages and waits for their answers.
    fn messages(&mut self, point: &Point, batch: u64) -> Result<(), Error> {
        for slot in 0..batch {
            let call = Call { slot: slot as u8, bytes: point.bytes, shares_core: self.shares_core };
            let transfer = self.transfer(slot * point.bytes, point.bytes);
            self.endpoint.write_with_data(transfer, call.data())?;
        }
        self.wait(batch, batch)
    }

    #[inline]
    fn write(&self, at: u64, bytes: u64) -> Result<(), Error> {
        Ok(self.endpoint.write(self.transfer(at, bytes))?)
    }

    #[inline]
    fn transfer(&self, there_at: u64, bytes: u64) -> Transfer<'_, E> {
        let (there_at, bytes) = (there_at as usize, bytes as usize);
        Transfer { here: &self.here, here_at: 0, there: &self.there, there_at, bytes, token: 0 }
    }

    /// Returns a random address in the range, at a multiple of the payload (xorshift).
    #[inline]
    fn address(&mut self, point: &Point) -> u64 {
        let mut random = self.random;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random = random;
        let places = point.range / point.bytes;
        (((random >> 32) * places) >> 32) * point.bytes
    }

    /// Polls until these numbers of requests are done, and of answers have arrived.
    #[inline]
    fn wait(&self, mut done: u64, mut answers: u64) -> Result<(), Error> {
        let mut polls = 0_u32;
        let spins = spins(self.shares_core);
        while done + answers > 0 {
            match self.endpoint.poll()? {
                Some(Completion::Done { .. } | Completion::Fetched { .. }) => done -= 1,
                Some(Completion::Arrived { .. }) => answers = answers.saturating_sub(1),
                None => {
                    polls += 1;
                    if polls >= spins {
                        thread::yield_now();
                    }
                    if polls.is_multiple_of(POLLS_BETWEEN_CHECKS)
                        && !self.endpoint.peer_is_alive()?
                    {
                        return Err(Error::Gone);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the first word of a region.
#[inline]
#[allow(unsafe_code)]
fn first_word<R: Local>(region: &R) -> u64 {
    // SAFETY: a region has a word at least, and begins at a multiple of 8.
    let word = unsafe { region.load(0) };
    // CLAIM: part of an address, which the endpoint checks.
    word.raw()
}

/// Returns the least time between two readings of the clock.
fn cost_of_clock() -> Duration {
    let measure = |_| {
        let begin = Instant::now();
        begin.elapsed()
    };
    (0..1000).map(measure).min().unwrap_or_default()
}
