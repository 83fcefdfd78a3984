// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of stations with jobs whose behaviour is easy to predict.

use super::*;
use crate::ring::{SlotReader, SlotWriter, slot_ring};
use freeport_testbed::wait::PATIENCE;
use freeport_testbed::{process, wait_until};
use std::time::{Duration, Instant};

/// A time that only a hanging test exceeds.
const LONG: Duration = PATIENCE;

/// Passes numbers from ring to ring, adding one; stalls from time to time.
struct Adder {
    input: SlotReader,
    output: SlotWriter,
    random: fastrand::Rng,
    /// The number at which it ends, and how.
    ends_at: Option<(u64, End)>,
    added: u64,
}

#[derive(Clone, Copy)]
enum End {
    Panic,
    Error,
}

impl Job for Adder {
    fn turn(&mut self, _wanted: &AtomicBool) -> Result<(RunStatus, bool), DeviceError> {
        if self.random.u8(..) == 0 {
            std::thread::sleep(Duration::from_micros(300));
        }
        let room = self.output.free();
        let mut count = 0;
        for (from, to) in self.input.filled().chunks_exact(8).zip(room.chunks_exact_mut(8)) {
            let number = u64::from_le_bytes(from.try_into().expect("8 bytes"));
            if let Some((at, end)) = self.ends_at
                && at == number
            {
                match end {
                    End::Panic => panic!("{number} is too much"),
                    End::Error => {
                        let what = "number".to_owned();
                        return Err(DeviceError::Unknown { instance: "adder".into(), what });
                    }
                }
            }
            to.copy_from_slice(&(number + self.added).to_le_bytes());
            count += 1;
        }
        self.input.give_back(count);
        self.output.publish(count);
        Ok((RunStatus::Idle, count > 0))
    }

    fn has_news(&self) -> bool {
        self.input.has_news() || self.output.has_news()
    }
}

/// A circle of stations, the first of which belongs to the test: it writes to `first` and reads
/// from `last` itself.
struct Circle {
    crew: Crew<Adder>,
}

const SLOTS: usize = 4;

fn circle(stations: usize, ends_at: Option<(u64, End)>) -> Circle {
    let mut rings: Vec<_> = (0..stations).map(|_| slot_ring(SLOTS, 8)).map(Some).collect();
    let mut writers: Vec<_> = vec![];
    let mut readers: Vec<_> = vec![];
    for ring in &mut rings {
        let (writer, reader) = ring.take().expect("each once");
        writers.push(Some(writer));
        readers.push(Some(reader));
    }
    let posts = (0..stations).map(|at| {
        let before = (at + stations - 1) % stations;
        let input = readers[before].take().expect("each once");
        let output = writers[at].take().expect("each once");
        let random = fastrand::Rng::with_seed(at as u64);
        let ends_at = ends_at.filter(|_| at == 2);
        let job = Adder { input, output, random, ends_at, added: 1 };
        let mut neighbours = vec![before, (at + 1) % stations];
        neighbours.dedup();
        Post { worker: at, neighbours, job, core: None }
    });
    Circle { crew: Crew::start(posts.collect()).expect("threads") }
}

impl Circle {
    /// Sends the numbers from 0 on around the circle and returns those that came back, until all
    /// have.
    fn send(&self, count: u64) -> Result<Vec<u64>, DeviceError> {
        self.crew.arrive();
        let (mut next, mut back, mut looks) = (0, vec![], 0);
        let began = Instant::now();
        while (back.len() as u64) < count {
            assert!(began.elapsed() < LONG, "{next} sent, {} back", back.len());
            let (_, has_moved) = self.crew.turn(|job| {
                let mut sent = 0;
                for slot in job.output.free().chunks_exact_mut(8) {
                    if next < count {
                        slot.copy_from_slice(&next.to_le_bytes());
                        (next, sent) = (next + 1, sent + 1);
                    }
                }
                job.output.publish(sent);
                let filled = job.input.filled();
                let numbers = filled.chunks_exact(8).map(|it| it.try_into().expect("8 bytes"));
                let before = back.len();
                back.extend(numbers.map(u64::from_le_bytes));
                job.input.give_back(back.len() - before);
                Ok((RunStatus::Idle, sent > 0 || back.len() > before))
            })?;
            looks = if has_moved { 0 } else { looks + 1 };
            if !has_moved {
                self.crew.wait(looks);
            }
        }
        Ok(back)
    }

    fn rest(&self) {
        let began = Instant::now();
        while !self.crew.rests() {
            assert!(began.elapsed() < LONG, "they never rest");
            self.crew.wait(u32::MAX);
        }
    }
}

#[test]
fn numbers_pass_stations_that_stall_and_sleep_in_order() {
    for stations in [2, 3, 5] {
        let circle = circle(stations, None);
        for count in [1, 3_000, 2, 1] {
            let expected: Vec<u64> = (0..count).map(|it| it + stations as u64 - 1).collect();
            assert_eq!(circle.send(count).expect("no worker fails"), expected);
            circle.rest();
            // Some rounds begin with all stations asleep.
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn who_rests_uses_no_processor() {
    let circle = circle(4, None);
    circle.send(100).expect("no worker fails");
    circle.rest();
    // The clocks of the single threads, because other tests run in this process.
    let clocks: Vec<libc::clockid_t> = circle.crew.threads.iter().map(clock_of).collect();
    let times = || clocks.iter().map(time_of).collect::<Vec<Duration>>();
    let mut before = times();
    wait_until("everybody is asleep", || {
        let are_asleep = clocks.iter().all(|clock| process::sleeps(thread_of(*clock)));
        let last = std::mem::replace(&mut before, times());
        are_asleep && last == before
    });
    // Other threads are busy in the meantime.
    circle_of_others_works();
    assert_eq!(times(), before, "a thread ran that has nothing to do");
    let expected: Vec<u64> = (0..50).map(|it| it + 3).collect();
    assert_eq!(circle.send(50).expect("no worker fails"), expected);
}

fn circle_of_others_works() {
    let others = circle(3, None);
    assert_eq!(others.send(3_000).expect("no worker fails").len(), 3_000);
    others.rest();
}

/// Returns the thread of a clock: the kernel encodes the thread's number in it, inverted.
fn thread_of(clock: libc::clockid_t) -> i32 {
    !(clock >> 3)
}

fn clock_of(thread: &JoinHandle<()>) -> libc::clockid_t {
    use std::os::unix::thread::JoinHandleExt;
    let mut clock = 0;
    // SAFETY: the thread is not joined, and the result has a place.
    let failed = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) };
    assert_eq!(failed, 0);
    clock
}

fn time_of(clock: &libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result has a place.
    assert_eq!(unsafe { libc::clock_gettime(*clock, &mut time) }, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_station_that_ends_is_told_and_stops_nobody_from_stopping() {
    for (end, expected) in [
        (End::Panic, "worker 2: it panicked: 101 is too much"),
        (End::Error, "worker 2: adder has no number"),
    ] {
        let circle = circle(4, Some((101, end)));
        let error = circle.send(1_000).expect_err("it ends at 100, to which one was added");
        assert_eq!(error.to_string(), expected);
        assert!(circle.crew.ask(2, |_| ()).is_err() && circle.crew.tell(2, |_| ()).is_err());
        assert!(circle.crew.ask(1, |_| ()).is_ok());
    }
}

#[test]
fn the_host_is_let_in_between_two_turns_of_busy_stations() {
    let circle = circle(3, None);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| circle.send(4_000));
        for _ in 0..200 {
            let added = circle.crew.tell(1, |job| std::mem::replace(&mut job.added, 1));
            assert_eq!(added.expect("no worker fails"), 1);
        }
        let back = sender.join().expect("it ends").expect("no worker fails");
        assert!(back.into_iter().eq(2..4_002));
    });
}

#[test]
fn what_the_host_changes_is_noticed_by_one_that_sleeps() {
    /// Moves something once for each call of the host.
    struct Reported(u32, u32);
    impl Job for Reported {
        fn turn(&mut self, _wanted: &AtomicBool) -> Result<(RunStatus, bool), DeviceError> {
            let moves = self.0 > 0;
            (self.0, self.1) = (self.0 - u32::from(moves), self.1 + u32::from(moves));
            Ok((RunStatus::Idle, moves))
        }

        fn has_news(&self) -> bool {
            false
        }
    }
    let post = |worker| Post { worker, neighbours: vec![], job: Reported(0, 0), core: None };
    let crew = Crew::start(vec![post(0), post(1)]).expect("threads");
    let began = Instant::now();
    for round in 1..200 {
        crew.tell(1, |job| job.0 += 3).expect("it works");
        while !crew.rests() {
            assert!(began.elapsed() < LONG, "it sleeps through what it was told");
            std::thread::yield_now();
        }
        assert_eq!(crew.ask(1, |job| job.1).expect("it works"), 3 * round);
    }
}
