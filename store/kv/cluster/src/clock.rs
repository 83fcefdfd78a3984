// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clock by which leases are counted.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time since the machine was started, with the time that it slept (`CLOCK_BOOTTIME`). All
/// processes of a machine see the same time, and nobody can set it.
pub fn boot_time() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    // Neither is negative: the clock starts at zero and only advances.
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_advances() {
        let begin = boot_time();
        std::thread::sleep(Duration::from_millis(2));
        assert!(boot_time() >= begin + Duration::from_millis(2));
    }
}
