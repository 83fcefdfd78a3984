// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where and when a result was measured, and pinning of threads to cores.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Load average above which the machine was not idle.
const BUSY: f64 = 1.0;

/// The circumstances of a measurement, which are reported with every result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Processor, number of cores, and kernel version.
    pub machine: String,
    /// Commit of the source, followed by `+` if files have changed since.
    pub commit: String,
    /// Date in UTC, as `YYYY-MM-DD`.
    pub date: String,
}

impl Machine {
    /// Describes this machine, now.
    pub fn describe() -> Self {
        let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processor.lines().find_map(|line| line.strip_prefix("model name"));
        let model =
            model.map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        Self {
            machine: format!("{model}, {cores} cores, Linux {}", kernel.trim()),
            commit: commit(),
            date: date(seconds / 86_400),
        }
    }

    /// Returns the line below drawings.
    pub fn line(&self) -> String {
        format!("{}; commit {}; {}", self.machine, self.commit, self.date)
    }
}

/// Returns the load average of the last minute; none where the system does not report it.
pub fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Reasons not to quote the results. `load` is the load average before the measurement.
pub fn disturbances(load: Option<f64>) -> Vec<String> {
    let mut notes = vec![];
    if let Some(load) = load.filter(|load| *load > BUSY) {
        notes.push(format!(
            "the machine was busy (load average {load:.1} before the start): do not quote this"
        ));
    }
    if cfg!(debug_assertions) {
        notes.push("this is a build without optimization: do not quote this".into());
    }
    notes
}

/// Pins the calling thread to the first core it may use. Returns that core; none if the system
/// refuses.
pub fn pin_to_one_core() -> Option<usize> {
    allowed_cores().first().copied().filter(|core| pin_to(*core))
}

/// Returns the cores that the calling thread may use.
pub fn allowed_cores() -> Vec<usize> {
    // SAFETY: a set of cores is plain memory, for which all zeros is the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes the set within the size given.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut allowed) } != 0 {
        return vec![];
    }
    // SAFETY: numbers below `CPU_SETSIZE` are inside the set.
    let is_allowed = |at: &usize| unsafe { libc::CPU_ISSET(*at, &allowed) };
    (0..libc::CPU_SETSIZE as usize).filter(is_allowed).collect()
}

/// Pins the calling thread to a core; returns whether that succeeded.
pub fn pin_to(core: usize) -> bool {
    pin_to_any(&[core])
}

/// Pins the calling thread to a set of cores; returns whether that succeeded.
pub fn pin_to_any(cores: &[usize]) -> bool {
    // SAFETY: a set of cores is plain memory, for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for core in cores {
        // SAFETY: the set is initialised; numbers beyond its end panic.
        unsafe { libc::CPU_SET(*core, &mut set) };
    }
    // SAFETY: the call reads the set within the size given.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0 }
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(commit) => match git(&["status", "--porcelain", "--untracked-files=no"]) {
            Some(changes) if changes.is_empty() => commit,
            _ => commit + "+",
        },
        None => "unknown".into(),
    }
}

/// Returns the date `days` days after 1970-01-01, in the Gregorian calendar: whole cycles of 400
/// years (146,097 days), then years that begin in March, so that a leap day is the last of its
/// year.
fn date(days: u64) -> String {
    let from_march_0000 = days + 719_468;
    let (cycle, day) = (from_march_0000 / 146_097, from_march_0000 % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day_of_month:02}", cycle * 400 + year + carry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let known = [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_782, "2024-02-29"),
            (20_088, "2024-12-31"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ];
        for (days, text) in known {
            assert_eq!(date(days), text);
        }
    }

    #[test]
    fn the_description_is_of_a_machine() {
        let machine = Machine::describe();
        assert!(machine.machine.contains("cores, Linux"), "{}", machine.machine);
        assert_eq!(machine.date.len(), 10);
    }
}
