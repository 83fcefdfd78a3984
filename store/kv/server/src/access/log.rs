// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `ACL LOG`: the last calls and logins that were refused. Those that are the same within a minute
//! are one entry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::selector::Denial;
use crate::numbered::Numbered;

/// Milliseconds within which refusals are joined.
const TOGETHER_MS: u64 = 60_000;
/// Entries that are searched for the same refusal.
const SEARCHED: usize = 10;
/// Bytes of a key, channel or name that an entry keeps.
const TEXT_BYTES: usize = 4 << 10;

/// Why a client was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A wrong login.
    Login,
    /// A call.
    Call(Denial),
}

/// Where a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// As a request.
    Request,
    /// In a transaction.
    Transaction,
    /// In a script or function.
    Script,
}

/// A refusal, or several that are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number since the start of the server.
    pub id: u64,
    /// Number of refusals.
    pub count: u64,
    /// Why.
    pub reason: Reason,
    /// Where.
    pub place: Place,
    /// The command, key or channel.
    pub object: Vec<u8>,
    /// The user.
    pub user: Vec<u8>,
    /// The client of the latest one, as `CLIENT LIST` shows it.
    pub client: String,
    /// When the first was, in milliseconds since 1970.
    pub created_ms: u64,
    /// When the latest was.
    pub updated_ms: u64,
}

/// The refusals, the latest first.
#[derive(Debug, Default)]
pub struct AccessLog {
    entries: Mutex<Numbered<Entry>>,
    denied: [AtomicU64; 4],
}

impl Reason {
    /// Its word in the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Login => "auth",
            Self::Call(Denial::Command) => "command",
            Self::Call(Denial::Key) => "key",
            Self::Call(Denial::Channel) => "channel",
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Login => 0,
            Self::Call(Denial::Command) => 1,
            Self::Call(Denial::Key) => 2,
            Self::Call(Denial::Channel) => 3,
        }
    }
}

impl Place {
    /// Its word in the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Request => "toplevel",
            Self::Transaction => "multi",
            Self::Script => "lua",
        }
    }
}

impl Entry {
    /// A refusal at a time in milliseconds since 1970.
    pub fn new(reason: Reason, place: Place, now_ms: u64) -> Self {
        Self {
            id: 0,
            count: 1,
            reason,
            place,
            object: vec![],
            user: vec![],
            client: String::new(),
            created_ms: now_ms,
            updated_ms: now_ms,
        }
    }

    /// Sets the refused object and the user. Long texts are cut.
    #[must_use]
    pub fn of(mut self, object: &[u8], user: &[u8]) -> Self {
        let kept = |text: &[u8]| text[..text.len().min(TEXT_BYTES)].to_vec();
        (self.object, self.user) = (kept(object), kept(user));
        self
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.reason, self.place) == (other.reason, other.place)
            && self.updated_ms.abs_diff(other.updated_ms) <= TOGETHER_MS
            && (&self.object, &self.user) == (&other.object, &other.user)
    }
}

impl AccessLog {
    fn lock(&self) -> MutexGuard<'_, Numbered<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a refusal, and adds it to the log, which forgets the oldest above a number.
    pub fn add(&self, entry: Entry, entries_max: usize) {
        self.denied[entry.reason.index()].fetch_add(1, Ordering::Relaxed);
        let mut log = self.lock();
        if let Some(known) = log.renew(SEARCHED, |one| one.is_same(&entry)) {
            known.count += 1;
            (known.client, known.updated_ms) = (entry.client, entry.updated_ms);
            return;
        }
        log.add(entries_max, |id| Entry { id, ..entry });
    }

    /// The latest entries.
    pub fn latest(&self, count: usize) -> Vec<Entry> {
        self.lock().latest(count)
    }

    /// Forgets all entries.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Number of refusals for a reason.
    pub fn denied(&self, reason: Reason) -> u64 {
        self.denied[reason.index()].load(Ordering::Relaxed)
    }

    /// Counts from 0 again.
    pub fn reset_counts(&self) {
        self.denied.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(object: &[u8], place: Place, now_ms: u64) -> Entry {
        Entry::new(Reason::Call(Denial::Key), place, now_ms).of(object, b"user")
    }

    #[test]
    fn the_same_within_a_minute_is_one_entry() {
        let log = AccessLog::default();
        log.add(denied(b"a", Place::Request, 1_000), 128);
        log.add(denied(b"b", Place::Request, 2_000), 128);
        log.add(denied(b"a", Place::Request, 61_000), 128);
        log.add(denied(b"a", Place::Script, 61_000), 128);
        log.add(denied(b"a", Place::Request, 121_001), 128);
        let shown: Vec<_> = log
            .latest(9)
            .into_iter()
            .map(|one| (one.id, one.count, one.object, one.created_ms, one.updated_ms))
            .collect();
        let expected = [
            (3, 1, b"a".to_vec(), 121_001, 121_001),
            (2, 1, b"a".to_vec(), 61_000, 61_000),
            (0, 2, b"a".to_vec(), 1_000, 61_000),
            (1, 1, b"b".to_vec(), 2_000, 2_000),
        ];
        assert_eq!(shown, expected);
        assert_eq!(log.denied(Reason::Call(Denial::Key)), 5);
        log.reset_counts();
        assert_eq!(log.denied(Reason::Call(Denial::Key)), 0);
    }

    #[test]
    fn entries_are_bounded() {
        let log = AccessLog::default();
        for key in 0..9_u8 {
            log.add(denied(&[key; 8 << 10], Place::Request, 0), 3);
        }
        let latest = log.latest(usize::MAX);
        assert_eq!(latest.iter().map(|one| one.id).collect::<Vec<_>>(), [8, 7, 6]);
        assert!(latest.iter().all(|one| one.object.len() == TEXT_BYTES));
        log.add(denied(b"x", Place::Request, 0), 0);
        assert!(log.latest(1).is_empty());
        log.clear();
    }
}
