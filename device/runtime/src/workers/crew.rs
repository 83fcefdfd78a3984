// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that each do one job in turns, rest when idle, and can be accessed between two turns.
//!
//! 1. A station has a job under a lock, which its thread holds for one turn at a time. The host
//!    accesses the job between two turns, under the same lock, and takes precedence.
//! 2. A turn that moved something is followed by another; before that, sleeping neighbours are
//!    woken, because there may be work for them, or room.
//! 3. After a turn that moved nothing the station rests: it polls for news for a while, because
//!    waking a thread takes longer than most waits, and then sleeps. `ring::Bell` explains why no
//!    station sleeps while it has work.
//! 4. A resting station is woken by its neighbours, by the host, and to stop.
//!
//! Station 0 belongs to the calling thread, which does its turns itself; it is notified when
//! another station starts to rest.
//!
//! **All stations rest** if no station works and none has news. That must hold at one moment: each
//! station has a number that it increments when it starts and when it stops working. If all numbers
//! are even, then no station is found to have news, and then all numbers are unchanged, no station
//! has worked in between. So nothing changed, and no station has work until the host or a port
//! provides some.

#[cfg(test)]
mod tests;

use crate::device::DeviceError;
use crate::ring::Bell;
use freeport_ir::InstanceId;
use freeport_native::RunStatus;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// Polls for news before a thread sleeps, some tens of microseconds: about the time that waking it
/// takes.
const LOOKS: u32 = 256;
/// Number of these polls that do not yield the processor to another thread.
const QUICK_LOOKS: u32 = 240;
/// Turns without news after which a job that keeps running by itself counts as resting.
pub(super) const MOST_TURNS_ALONE: u32 = 64;
/// Sleep of a job that keeps running by itself, without news.
const SELF_MOVING_SLEEP: Duration = Duration::from_micros(50);
/// Maximum sleep of the caller while others work: its ports cannot wake it.
const CALLER_SLEEPS: Duration = Duration::from_micros(200);

/// The work of a station.
pub(super) trait Job: Send {
    /// Does the work available now and returns the status, and whether anything moved. It returns
    /// soon after `wanted` is set.
    ///
    /// # Errors
    /// A failure that ends the job.
    fn turn(&mut self, wanted: &AtomicBool) -> Result<(RunStatus, bool), DeviceError>;

    /// Returns whether other stations have done something that makes another turn worthwhile.
    fn has_news(&self) -> bool;
}

/// Stations and their threads.
pub(super) struct Crew<J> {
    shared: Arc<Shared<J>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<J> {
    stations: Vec<Station<J>>,
    stops: AtomicBool,
}

struct Station<J> {
    /// Number of its worker, for messages.
    worker: usize,
    /// Stations with which it shares rings.
    neighbours: Vec<usize>,
    desk: Mutex<Desk<J>>,
    /// Number of the host's calls that wait for the desk.
    callers: AtomicU32,
    /// Set while another thread waits for the desk, so that the turn has to end soon.
    is_desk_wanted: AtomicBool,
    bell: Bell,
    /// The thread that sleeps here.
    thread: Mutex<Option<Thread>>,
    /// Incremented at each start and stop of work; odd while the station works.
    shift: AtomicU64,
    /// Set when the host has changed something.
    is_reported: AtomicBool,
    /// Set while its job keeps running by itself, and moves nothing.
    continues: AtomicBool,
    /// One more than the number of the job's instance that is paused at a breakpoint; 0 for none.
    held: AtomicU64,
    /// Reason why it has ended.
    failure: OnceLock<String>,
}

/// A job, and the status of its last turn.
struct Desk<J> {
    job: J,
    status: RunStatus,
}

/// A station to be started.
pub(super) struct Post<J> {
    /// Number of the worker.
    pub worker: usize,
    /// Stations with which it shares rings.
    pub neighbours: Vec<usize>,
    /// Its job.
    pub job: J,
    /// Processor core to which its thread is pinned, if any.
    pub core: Option<usize>,
}

impl<J: Job + 'static> Crew<J> {
    /// Starts a thread for each post but the first, which belongs to the caller.
    ///
    /// # Errors
    /// No more threads, or a core that a thread cannot be pinned to.
    pub fn start(posts: Vec<Post<J>>) -> Result<Self, DeviceError> {
        let cores: Vec<Option<usize>> = posts.iter().map(|post| post.core).collect();
        let station = |(at, post): (usize, Post<J>)| Station {
            worker: post.worker,
            neighbours: post.neighbours,
            desk: Mutex::new(Desk { job: post.job, status: RunStatus::Idle }),
            callers: AtomicU32::new(0),
            is_desk_wanted: AtomicBool::new(false),
            bell: Bell::new(),
            thread: Mutex::new(None),
            // All work initially, except the caller.
            shift: AtomicU64::new(u64::from(at != 0)),
            is_reported: AtomicBool::new(false),
            continues: AtomicBool::new(false),
            held: AtomicU64::new(0),
            failure: OnceLock::new(),
        };
        let stations = posts.into_iter().enumerate().map(station).collect();
        let shared = Arc::new(Shared { stations, stops: AtomicBool::new(false) });
        let mut crew = Self { shared, threads: vec![] };
        for (at, core) in cores.iter().enumerate().skip(1) {
            let shared = crew.shared.clone();
            let worker = shared.stations[at].worker;
            let builder = std::thread::Builder::new().name(format!("worker {worker}"));
            let thread = builder.spawn(move || shared.work(at));
            let thread = thread.map_err(|error| {
                let reason = format!("no thread could be started: {error}");
                DeviceError::Worker { worker, reason }
            })?;
            if let Some(core) = core {
                super::cores::pin(&thread, *core)
                    .map_err(|reason| DeviceError::Worker { worker, reason })?;
            }
            crew.threads.push(thread);
        }
        Ok(crew)
    }

    /// Accesses the job of a station between two turns.
    ///
    /// # Errors
    /// A station that has ended.
    pub fn ask<T>(&self, at: usize, ask: impl FnOnce(&mut J) -> T) -> Result<T, DeviceError> {
        let station = &self.shared.stations[at];
        station.check()?;
        Ok(ask(&mut station.desk_for_host().job))
    }

    /// Like `ask`, for an access that may give the job work.
    ///
    /// # Errors
    /// The errors of `ask`.
    pub fn tell<T>(&self, at: usize, tell: impl FnOnce(&mut J) -> T) -> Result<T, DeviceError> {
        let station = &self.shared.stations[at];
        let reported = self.ask(at, |job| {
            // Whether it is still paused at a breakpoint is known after its next turn.
            station.held.store(0, Ordering::SeqCst);
            station.is_reported.store(true, Ordering::SeqCst);
            tell(job)
        })?;
        station.wake();
        Ok(reported)
    }

    /// Makes the calling thread the one of station 0, until another takes its place.
    pub fn arrive(&self) {
        *locked(&self.shared.stations[0].thread) = Some(std::thread::current());
    }

    /// Does a turn of station 0: calls `turn` with its job.
    ///
    /// # Errors
    /// An error of `turn`, or another station that has ended.
    pub fn turn(
        &self,
        turn: impl FnOnce(&mut J) -> Result<(RunStatus, bool), DeviceError>,
    ) -> Result<(RunStatus, bool), DeviceError> {
        self.shared.stations.iter().try_for_each(Station::check)?;
        let station = &self.shared.stations[0];
        station.is_reported.store(false, Ordering::SeqCst);
        let mut desk = station.desk_for_host();
        let (status, has_moved) = turn(&mut desk.job)?;
        station.note(&mut desk, &status);
        drop(desk);
        if has_moved {
            self.shared.wake_neighbours(0);
        }
        Ok((status, has_moved))
    }

    /// Returns whether no station has work. A station that keeps running by itself counts as
    /// resting.
    pub fn rests(&self) -> bool {
        let others = &self.shared.stations[1..];
        let shifts = || others.iter().map(|station| station.shift.load(Ordering::SeqCst));
        let before: Vec<u64> = shifts().collect();
        let is_resting = |(station, shift): (&Station<J>, &u64)| {
            shift % 2 == 0 || station.continues.load(Ordering::SeqCst)
        };
        others.iter().zip(&before).all(is_resting)
            && !self.shared.stations.iter().any(Station::is_wanted)
            && shifts().eq(before)
    }

    /// Waits briefly until station 0 may have work, or another station has stopped working. `looks`
    /// is the number of successive calls before this one.
    pub fn wait(&self, looks: u32) {
        let station = &self.shared.stations[0];
        if pause(looks) {
            return;
        }
        station.bell.set();
        if !station.is_wanted() && !self.rests() {
            std::thread::park_timeout(CALLER_SLEEPS);
        }
        station.bell.unset();
    }

    /// Returns a station that is paused at a breakpoint, with the instance of its job.
    pub fn held(&self) -> Option<(usize, InstanceId)> {
        let held = |(at, station): (usize, &Station<J>)| {
            let held = station.held.load(Ordering::SeqCst).checked_sub(1)?;
            Some((at, InstanceId::new(held as usize)))
        };
        self.shared.stations.iter().enumerate().find_map(held)
    }

    /// Returns the number of stations.
    pub fn len(&self) -> usize {
        self.shared.stations.len()
    }

    /// Returns the status of each station's last turn, with the number of its worker.
    pub fn statuses(&self) -> Vec<(usize, RunStatus)> {
        let status = |station: &Station<J>| {
            // A job that keeps running by itself has only polled in between.
            match station.continues.load(Ordering::SeqCst) {
                true => match station.desk_for_host().status {
                    RunStatus::Waiting => (station.worker, RunStatus::Waiting),
                    _ => (station.worker, RunStatus::Budget),
                },
                false => (station.worker, station.desk_for_host().status.clone()),
            }
        };
        self.shared.stations.iter().map(status).collect()
    }
}

impl<J: Job> Shared<J> {
    /// Runs the main loop of a station's thread.
    fn work(&self, at: usize) {
        let station = &self.stations[at];
        *locked(&station.thread) = Some(std::thread::current());
        let mut turns_alone = 0;
        while !self.stops.load(Ordering::SeqCst) {
            station.is_reported.store(false, Ordering::SeqCst);
            let turn = catch_unwind(AssertUnwindSafe(|| station.turn(&self.stops)));
            let (continues, has_moved) = match turn {
                Ok(Ok(turn)) => turn,
                Ok(Err(error)) => return self.fail(at, error.to_string()),
                Err(panic) => return self.fail(at, panic_text(&*panic)),
            };
            turns_alone = if has_moved { 0 } else { turns_alone + 1 };
            let is_alone = continues && turns_alone >= MOST_TURNS_ALONE;
            if station.continues.swap(is_alone, Ordering::SeqCst) != is_alone {
                self.stations[0].wake();
            }
            if has_moved {
                self.wake_neighbours(at);
            }
            if station.held.load(Ordering::SeqCst) != 0 {
                self.stations[0].wake();
            }
            match continues {
                _ if has_moved => {}
                true if is_alone => station.doze(),
                true => {}
                false => self.rest(at),
            }
        }
    }

    fn rest(&self, at: usize) {
        let station = &self.stations[at];
        let is_wanted = || self.stops.load(Ordering::SeqCst) || station.is_wanted();
        station.shift.fetch_add(1, Ordering::SeqCst);
        self.stations[0].wake();
        let mut looks = 0;
        while !is_wanted() {
            if pause(looks) {
                looks += 1;
                continue;
            }
            station.bell.set();
            if !is_wanted() {
                std::thread::park();
            }
            station.bell.unset();
        }
        station.shift.fetch_add(1, Ordering::SeqCst);
    }

    fn wake_neighbours(&self, at: usize) {
        self.stations[at].neighbours.iter().for_each(|other| self.stations[*other].wake());
    }

    fn fail(&self, at: usize, reason: String) {
        // A station ends only once, so the reason is not yet set.
        let _ = self.stations[at].failure.set(reason);
        self.stations[0].wake();
    }
}

impl<J: Job> Station<J> {
    /// Does a turn; returns whether the job keeps running by itself, and whether anything moved.
    fn turn(&self, stops: &AtomicBool) -> Result<(bool, bool), DeviceError> {
        while self.callers.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        let mut desk = locked(&self.desk);
        // A caller that arrives after this check sets it again.
        self.is_desk_wanted.store(false, Ordering::SeqCst);
        if self.callers.load(Ordering::SeqCst) > 0 || stops.load(Ordering::SeqCst) {
            self.is_desk_wanted.store(true, Ordering::SeqCst);
        }
        let (status, has_moved) = desk.job.turn(&self.is_desk_wanted)?;
        self.note(&mut desk, &status);
        Ok((continues(&status), has_moved))
    }

    /// Records the status of a turn, under the lock of the job.
    fn note(&self, desk: &mut Desk<J>, status: &RunStatus) {
        let held = match status {
            RunStatus::Breakpoint(instance) => u64::from(instance.0) + 1,
            _ => 0,
        };
        self.held.store(held, Ordering::SeqCst);
        desk.status = status.clone();
    }

    /// Sleeps for a short time, or until it is woken: its job keeps running by itself.
    fn doze(&self) {
        self.bell.set();
        if !self.is_wanted() {
            std::thread::park_timeout(SELF_MOVING_SLEEP);
        }
        self.bell.unset();
    }

    fn is_wanted(&self) -> bool {
        self.is_reported.load(Ordering::SeqCst) || locked(&self.desk).job.has_news()
    }

    fn desk_for_host(&self) -> MutexGuard<'_, Desk<J>> {
        self.callers.fetch_add(1, Ordering::SeqCst);
        self.is_desk_wanted.store(true, Ordering::SeqCst);
        let desk = locked(&self.desk);
        self.callers.fetch_sub(1, Ordering::SeqCst);
        desk
    }
}

impl<J> Station<J> {
    /// Wakes the thread if it sleeps. The work for it has been written before.
    fn wake(&self) {
        if self.bell.has_to_ring()
            && let Some(thread) = &*locked(&self.thread)
        {
            thread.unpark();
        }
    }

    fn check(&self) -> Result<(), DeviceError> {
        match self.failure.get() {
            Some(reason) => {
                Err(DeviceError::Worker { worker: self.worker, reason: reason.clone() })
            }
            None => Ok(()),
        }
    }
}

impl<J> Drop for Crew<J> {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::SeqCst);
        for station in &self.shared.stations {
            station.is_desk_wanted.store(true, Ordering::SeqCst);
        }
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A panic was recorded where it occurred.
            let _ = thread.join();
        }
    }
}

/// Returns whether a job keeps running by itself.
pub(super) fn continues(status: &RunStatus) -> bool {
    matches!(status, RunStatus::Budget | RunStatus::Waiting)
}

/// Spends a moment; returns false when it is time to sleep instead.
fn pause(looks: u32) -> bool {
    match looks {
        0..QUICK_LOOKS => std::hint::spin_loop(),
        QUICK_LOOKS..LOOKS => std::thread::yield_now(),
        _ => return false,
    }
    true
}

/// Locks a mutex. A panic is recorded where it occurs; the protected data are not used after one.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.unwrap_or_else(|| "without a message".into()))
}
