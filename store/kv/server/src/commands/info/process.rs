// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures of the process from the system. A file that cannot be read gives 0.

use std::fs::read_to_string;

/// Bytes of a page of memory, as `/proc` counts.
const PAGE_BYTES: u64 = 4096;
/// Ticks of a second, as `/proc` counts.
const TICKS: f64 = 100.0;

/// Bytes of memory that the process has.
pub fn resident_bytes() -> u64 {
    let text = read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}

/// Bytes of memory of the machine.
pub fn machine_bytes() -> u64 {
    let text = read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// Seconds of processor time of a `stat` file: in the program, and in the system.
fn seconds_of(path: &str) -> (f64, f64) {
    const PROGRAM_FIELD: usize = 11;
    let text = read_to_string(path).unwrap_or_default();
    // The name before may have spaces.
    let fields: Vec<&str> =
        text.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
    let seconds = |at: usize| {
        fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0) / TICKS
    };
    (seconds(PROGRAM_FIELD), seconds(PROGRAM_FIELD + 1))
}

/// Seconds of processor time of the process: in the program, and in the system.
pub fn seconds() -> (f64, f64) {
    seconds_of("/proc/self/stat")
}

/// Name and version of the system.
pub fn system() -> String {
    let release = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {} {}", release.trim(), std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_the_process() {
        assert!(resident_bytes() > 0 && machine_bytes() > resident_bytes());
        assert!(seconds().0 >= 0.0 && system().starts_with("Linux "));
        assert_eq!(seconds_of("/nowhere"), (0.0, 0.0));
    }
}
