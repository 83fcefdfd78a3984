// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A receiver that lends no more frames than its rate allows: steady traffic at less than full
//! load. What was due and not asked for comes later, up to [`MOST_LATE`]; beyond that it never
//! comes, as on a link.

use crate::port::{Batch, PortError, Receive};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Frames that may be due at once.
const MOST_LATE: f64 = 4_096.0;
/// Most wake-ups a second: between two of them several frames become due.
const MOST_WAKES: f64 = 1_000.0;

/// Wraps a receiver.
pub struct Pace<P> {
    inner: P,
    frames_per_second: f64,
    /// Frames that may be lent now, with what is due of the next one.
    due: f64,
    counted: Instant,
    timer: OwnedFd,
}

impl<P> Pace<P> {
    /// Lends at most `frames_per_second`, from now on.
    ///
    /// # Errors
    /// The kernel gives no timer.
    pub fn new(inner: P, frames_per_second: f64) -> io::Result<Self> {
        let timer =
            every(Duration::from_secs_f64(1.0 / frames_per_second.clamp(0.01, MOST_WAKES)))?;
        Ok(Self { inner, frames_per_second, due: 0.0, counted: Instant::now(), timer })
    }
}

/// A timer that becomes readable again and again.
fn every(period: Duration) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer.
    let timer = unsafe {
        libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK)
    };
    if timer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to nobody else.
    let timer = unsafe { OwnedFd::from_raw_fd(timer) };
    let period = libc::timespec {
        tv_sec: period.as_secs() as libc::time_t,
        tv_nsec: period.subsec_nanos().into(),
    };
    let times = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: `times` outlives the call, and no old times are asked for.
    let set = unsafe { libc::timerfd_settime(timer.as_raw_fd(), 0, &times, std::ptr::null_mut()) };
    if set == 0 { Ok(timer) } else { Err(io::Error::last_os_error()) }
}

impl<P: Receive> Receive for Pace<P> {
    fn receive(&mut self, most: usize) -> Result<Batch<'_>, PortError> {
        let now = Instant::now();
        let elapsed = now.duration_since(self.counted).as_secs_f64();
        self.counted = now;
        self.due = (self.due + elapsed * self.frames_per_second).min(MOST_LATE);
        if self.due < 1.0 {
            // The timer stays readable until it is read, and nothing is due before it runs out.
            let mut count = [0; 8];
            let timer = self.timer.as_raw_fd();
            // SAFETY: the eight bytes are writable for the length of the call.
            unsafe { libc::read(timer, count.as_mut_ptr().cast(), count.len()) };
            return Ok(Batch::empty());
        }
        let batch = self.inner.receive(most.min(self.due as usize))?;
        self.due -= batch.len() as f64;
        Ok(batch)
    }

    fn is_ended(&self) -> bool {
        self.inner.is_ended()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.timer.as_fd())
    }

    fn lost(&self) -> u64 {
        self.inner.lost()
    }

    fn remarks(&self) -> Vec<String> {
        self.inner.remarks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;
    use crate::memory::Generator;

    #[test]
    fn it_conforms() {
        conformance::check_receiver(|trace| {
            Pace::new(Generator::once(trace).expect("good"), 1e9).expect("a timer")
        });
    }

    #[test]
    fn no_more_come_than_the_rate_allows() {
        let trace = conformance::plain(&[vec![0; 60]]);
        let mut inner = Generator::once(&trace).expect("good");
        inner.refill(u64::MAX);
        let begin = Instant::now();
        let mut paced = Pace::new(inner, 2_000.0).expect("a timer");
        let mut frames = 0;
        while frames < 100 {
            let mut poll = libc::pollfd {
                fd: paced.readiness().expect("it has a timer").as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one entry, which lives for the length of the call.
            assert_eq!(unsafe { libc::poll(&mut poll, 1, 180_000) }, 1);
            frames += paced.receive(1).expect("memory").len();
        }
        let elapsed = begin.elapsed();
        assert!(elapsed >= Duration::from_millis(49), "100 frames in {elapsed:?}");
    }
}
