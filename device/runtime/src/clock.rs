// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clock of native code, for other devices that need the same time.

/// Returns the time of the machine's monotonic clock, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable for the length of the call, and every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // Neither is ever negative: the clock begins at 0.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::monotonic_ns;

    #[test]
    fn it_never_goes_back() {
        let times: Vec<u64> = (0..100).map(|_| monotonic_ns()).collect();
        assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    }
}
