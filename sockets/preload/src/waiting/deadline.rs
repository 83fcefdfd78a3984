// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time-out of a call: as the application gives it, as the library counts it, and as the kernel
//! receives it.

use crate::kernel::memory;

/// The time to wait.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// Until something is ready.
    Ready,
    /// At most that many nanoseconds.
    Nanoseconds(u64),
}

impl Until {
    /// From a time that may be null, for no limit. `None`: the time is not valid or cannot be read,
    /// and the kernel reports why.
    ///
    /// # Safety
    /// If it is not null, the application allows reading it.
    pub unsafe fn time(time: *const libc::timespec) -> Option<Self> {
        if time.is_null() {
            return Some(Self::Ready);
        }
        if !memory::exists(time, 1) {
            return None;
        }
        // SAFETY: the caller upholds it.
        let time = unsafe { time.read() };
        let seconds = u64::try_from(time.tv_sec).ok()?;
        let rest = u64::try_from(time.tv_nsec).ok().filter(|rest| *rest < 1_000_000_000)?;
        Some(Self::Nanoseconds(seconds.saturating_mul(1_000_000_000).saturating_add(rest)))
    }

    /// As a time that may be null, stored at `place`.
    pub fn as_time(self, place: &mut libc::timespec) -> *mut libc::timespec {
        match self {
            Self::Ready => core::ptr::null_mut(),
            Self::Nanoseconds(time) => {
                place.tv_sec = (time / 1_000_000_000).cast_signed();
                place.tv_nsec = (time % 1_000_000_000).cast_signed();
                place
            }
        }
    }

    /// From milliseconds; a negative number is no limit.
    pub fn milliseconds(milliseconds: i32) -> Self {
        match u64::try_from(milliseconds) {
            Ok(milliseconds) => Self::Nanoseconds(milliseconds * 1_000_000),
            Err(_) => Self::Ready,
        }
    }

    /// The same, but at most that many nanoseconds.
    pub fn at_most(self, nanoseconds: u64) -> Self {
        match self {
            Self::Ready => Self::Nanoseconds(nanoseconds),
            Self::Nanoseconds(time) => Self::Nanoseconds(time.min(nanoseconds)),
        }
    }

    /// In milliseconds, rounded up.
    pub fn as_milliseconds(self) -> i32 {
        match self {
            Self::Ready => -1,
            Self::Nanoseconds(time) => i32::try_from(time.div_ceil(1_000_000)).unwrap_or(i32::MAX),
        }
    }
}

/// The time at which waiting ends.
pub struct Deadline {
    until: Until,
    /// The clock when waiting began, if there is a time-out.
    began: u64,
}

impl Deadline {
    /// A deadline that begins now.
    pub fn new(until: Until) -> Self {
        let began = if matches!(until, Until::Nanoseconds(1..)) { nanoseconds() } else { 0 };
        Self { until, began }
    }

    /// The time that is left.
    pub fn left(&self) -> Until {
        match self.until {
            Until::Ready => Until::Ready,
            Until::Nanoseconds(0) => Until::Nanoseconds(0),
            Until::Nanoseconds(time) => {
                Until::Nanoseconds(time.saturating_sub(nanoseconds().saturating_sub(self.began)))
            }
        }
    }

    /// Whether no time is left.
    pub fn is_over(&self) -> bool {
        matches!(self.left(), Until::Nanoseconds(0))
    }
}

fn nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000) + time.tv_nsec.cast_unsigned()
}
