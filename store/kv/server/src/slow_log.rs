// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands that took long: the slow log, and the samples of the latency monitor.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::numbered::Numbered;

/// Arguments of a command that an entry keeps.
const ARGUMENTS: usize = 32;
/// Bytes of an argument that an entry keeps.
const ARGUMENT_BYTES: usize = 128;
/// Samples of an event that are kept.
const SAMPLES: usize = 160;

/// A command that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number since the start of the server.
    pub id: u64,
    /// When it ended, in seconds since 1970.
    pub time_s: u64,
    /// Its duration in microseconds.
    pub microseconds: u64,
    /// The begin of its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// Address of its client.
    pub address: String,
    /// Name of its client.
    pub name: Vec<u8>,
}

/// The last commands that took long, the latest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    entries: Mutex<Numbered<Entry>>,
}

/// Samples of an event: when, in seconds since 1970, and how many milliseconds.
pub type Samples = VecDeque<(u64, u64)>;

/// The latency monitor.
#[derive(Debug, Default)]
pub struct LatencyMonitor {
    events: Mutex<BTreeMap<&'static str, (Samples, u64)>>,
}

impl SlowLog {
    fn lock(&self) -> MutexGuard<'_, Numbered<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry, which gets its number, and forgets the oldest above a count.
    pub fn add(&self, entry: Entry, entries_max: usize) {
        self.lock().add(entries_max, |id| Entry { id, ..entry });
    }

    /// The latest entries.
    pub fn latest(&self, count: usize) -> Vec<Entry> {
        self.lock().latest(count)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Forgets all entries.
    pub fn clear(&self) {
        self.lock().clear();
    }
}

impl LatencyMonitor {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, (Samples, u64)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sample. Those of one second are one sample, the longest.
    pub fn add(&self, event: &'static str, time_s: u64, milliseconds: u64) {
        let mut events = self.lock();
        let (samples, longest) = events.entry(event).or_default();
        *longest = milliseconds.max(*longest);
        match samples.back_mut() {
            Some((time, last)) if *time == time_s => *last = milliseconds.max(*last),
            _ => samples.push_back((time_s, milliseconds)),
        }
        if samples.len() > SAMPLES {
            samples.pop_front();
        }
    }

    /// Samples of an event.
    pub fn history(&self, event: &[u8]) -> Samples {
        let events = self.lock();
        let found = events.iter().find(|(name, _)| name.as_bytes() == event);
        found.map(|(_, (samples, _))| samples.clone()).unwrap_or_default()
    }

    /// Every event with its latest sample and its longest milliseconds.
    pub fn latest(&self) -> Vec<(&'static str, (u64, u64), u64)> {
        let events = self.lock();
        let latest = events.iter().filter_map(|(name, (samples, longest))| {
            samples.back().map(|sample| (*name, *sample, *longest))
        });
        latest.collect()
    }

    /// Forgets some events, or all if none is named. Returns the number of forgotten ones.
    pub fn reset(&self, names: &[&[u8]]) -> usize {
        let mut events = self.lock();
        let before = events.len();
        events.retain(|event, _| !names.is_empty() && !names.contains(&event.as_bytes()));
        before - events.len()
    }
}

/// The begin of the arguments, as an entry keeps them. Secrets are left out.
pub fn shortened(arguments: &[&[u8]]) -> Vec<Vec<u8>> {
    let shown = if arguments.len() > ARGUMENTS { ARGUMENTS - 1 } else { arguments.len() };
    let mut kept: Vec<Vec<u8>> = (0..shown)
        .map(|at| match arguments[at] {
            _ if is_secret(arguments, at) => b"(redacted)".to_vec(),
            long if long.len() > ARGUMENT_BYTES => {
                let more = long.len() - ARGUMENT_BYTES;
                [&long[..ARGUMENT_BYTES], format!("... ({more} more bytes)").as_bytes()].concat()
            }
            argument => argument.to_vec(),
        })
        .collect();
    if shown < arguments.len() {
        kept.push(format!("... ({} more arguments)", arguments.len() - shown).into_bytes());
    }
    kept
}

/// An argument is a password or may be one.
pub fn is_secret(arguments: &[&[u8]], at: usize) -> bool {
    let is = |at: usize, word: &str| {
        arguments.get(at).is_some_and(|one| one.eq_ignore_ascii_case(word.as_bytes()))
    };
    match at {
        0 => false,
        _ if is(0, "auth") => true,
        _ if is(0, "hello") => (1..at).any(|before| is(before, "auth")) && !is(at, "setname"),
        2.. if is(0, "acl") && is(1, "setuser") => true,
        3.. if is(0, "config") && is(1, "set") => {
            is(at - 1, "requirepass") || is(at - 1, "masterauth")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(microseconds: u64) -> Entry {
        Entry {
            id: 0,
            time_s: 1,
            microseconds,
            arguments: vec![],
            address: String::new(),
            name: vec![],
        }
    }

    #[test]
    fn the_oldest_entries_are_forgotten() {
        let log = SlowLog::default();
        (0..5).for_each(|number| log.add(entry(number), 3));
        let ids = |log: &SlowLog| log.latest(9).iter().map(|entry| entry.id).collect::<Vec<_>>();
        assert_eq!((ids(&log), log.len()), (vec![4, 3, 2], 3));
        log.clear();
        log.add(entry(1), 3);
        assert_eq!(ids(&log), [5]);
    }

    #[test]
    fn an_entry_keeps_the_begin_of_a_command() {
        let long = [b'x'; 200];
        let mut arguments: Vec<&[u8]> = vec![b"set", &long];
        let kept = shortened(&arguments);
        assert!(kept[1].ends_with(b"x... (72 more bytes)"));
        arguments.resize(40, b"a");
        let kept = shortened(&arguments);
        assert_eq!((kept.len(), &kept[31][..]), (32, &b"... (9 more arguments)"[..]));
    }

    #[test]
    fn passwords_are_left_out() {
        let shown = |line: &str| {
            let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            String::from_utf8_lossy(&shortened(&arguments).join(&b' ')).into_owned()
        };
        assert_eq!(shown("AUTH user secret"), "AUTH (redacted) (redacted)");
        assert_eq!(shown("acl SetUser u >secret"), "acl SetUser (redacted) (redacted)");
        assert_eq!(shown("HELLO 3 AUTH a b"), "HELLO 3 AUTH (redacted) (redacted)");
        let set = "CONFIG SET hz 10 requirepass";
        assert_eq!(shown(&format!("{set} secret")), format!("{set} (redacted)"));
    }

    #[test]
    fn samples_of_a_second_are_one() {
        let monitor = LatencyMonitor::default();
        for (time_s, milliseconds) in [(1, 5), (1, 9), (1, 7), (2, 3)] {
            monitor.add("command", time_s, milliseconds);
        }
        assert_eq!(monitor.history(b"command"), [(1, 9), (2, 3)]);
        assert_eq!(monitor.latest(), [("command", (2, 3), 9)]);
        assert_eq!((monitor.reset(&[b"other"]), monitor.reset(&[])), (0, 1));
        assert!(monitor.history(b"command").is_empty());
    }
}
