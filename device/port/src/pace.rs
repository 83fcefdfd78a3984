// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A receiver that lends no more frames than its rate allows: steady traffic below full load.
//! Frames that were due but not requested are delivered later, up to [`MOST_LATE`]; frames beyond
//! that are never delivered, as on a link.

use crate::port::{Batch, PortError, Receive};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Maximum number of frames that are due at once.
const MOST_LATE: f64 = 4_096.0;
/// Maximum number of wake-ups per second: between two of them several frames become due.
const MOST_WAKES: f64 = 1_000.0;

/// A receiver with a limited rate.
pub struct Pace<P> {
    inner: P,
    frames_per_second: f64,
    /// Number of frames that may be lent now, with a fraction for the next one.
    due: f64,
    counted: Instant,
    timer: OwnedFd,
}

impl<P> Pace<P> {
    /// Lends at most `frames_per_second`, starting now.
    ///
    /// # Errors
    /// The kernel provides no timer.
    pub fn new(inner: P, frames_per_second: f64) -> io::Result<Self> {
        let timer =
            every(Duration::from_secs_f64(1.0 / frames_per_second.clamp(0.01, MOST_WAKES)))?;
        Ok(Self { inner, frames_per_second, due: 0.0, counted: Instant::now(), timer })
    }
}

/// Creates a timer that becomes readable once per period.
fn every(period: Duration) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointer.
    let timer = unsafe {
        libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK)
    };
    if timer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    let timer = unsafe { OwnedFd::from_raw_fd(timer) };
    let period = libc::timespec {
        tv_sec: period.as_secs() as libc::time_t,
        tv_nsec: period.subsec_nanos().into(),
    };
    let times = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: `times` outlives the call, and the old times are not requested.
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
            // The timer stays readable until it is read, and no frame is due before it expires.
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
