// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search of a key: buckets in their order, and the items that their entries name. Clients and
//! the processor search in the same way and differ in where they read.

use crate::entry::{Entry, Slot};
use crate::error::KvError;
use crate::item::{Check, check};
use crate::layout::{ENTRY_BYTES, Hash, Layout, Options};
use freeport_study_verbs::{Fault, Verbs};
use std::cell::Cell;
use std::time::Duration;

/// Where a search reads.
pub trait Source {
    /// Returns a bucket of one copy of the index.
    ///
    /// # Errors
    /// The place does not work.
    fn bucket(&self, number: u64) -> impl Future<Output = Result<Vec<u8>, Fault>>;

    /// Returns an item.
    ///
    /// # Errors
    /// The place does not work.
    fn item(&self, entry: &Entry) -> impl Future<Output = Result<Vec<u8>, Fault>>;
}

/// Position of an entry: its bucket, and its number in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    /// The bucket.
    pub bucket: u64,
    /// The number in the bucket.
    pub slot: u64,
}

impl Position {
    /// Returns the first byte of the entry in a bucket that begins there.
    pub fn at(self, bucket: u64) -> u64 {
        bucket + self.slot * ENTRY_BYTES
    }
}

/// Result of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The key's value, its entry, and where that is.
    Value(Vec<u8>, Entry, Position),
    /// There is no such key.
    None,
    /// The key may be changing: the search has to begin anew.
    Changing,
}

/// Searches a key once.
///
/// # Errors
/// A place does not work.
pub async fn search(
    source: &impl Source,
    options: &Options,
    layout: &Layout,
    key: &[u8],
) -> Result<Found, Fault> {
    let hash = Hash::of(key);
    for bucket in layout.probes(hash) {
        let contents = source.bucket(bucket).await?;
        let mut is_last = false;
        for (slot, found) in (0..).zip(Slot::of_bucket(&contents)) {
            let entry = match found {
                Slot::Live(entry) if entry.fingerprint == hash.fingerprint() => entry,
                // It may be the key's entry.
                Slot::Torn => return Ok(Found::Changing),
                Slot::Unused => {
                    is_last = true;
                    continue;
                }
                Slot::Deleted | Slot::Live(_) => continue,
            };
            let item = source.item(&entry).await?;
            let has_version = |version| !options.compares_versions || entry.has_version(version);
            match check(&item, key, has_version) {
                Check::Value(value) => {
                    return Ok(Found::Value(value, entry, Position { bucket, slot }));
                }
                Check::OtherKey => {}
                Check::Stale => return Ok(Found::Changing),
            }
        }
        if is_last {
            break;
        }
    }
    Ok(Found::None)
}

/// First and longest pause between two attempts.
const PAUSES: [Duration; 2] = [Duration::from_micros(1), Duration::from_micros(128)];

/// Attempts until one does not meet a change, with pauses that become longer.
pub struct Attempts {
    since: Duration,
    pause: Duration,
    random: fastrand::Rng,
}

impl Attempts {
    /// Begins the first attempt.
    pub fn begin(verbs: &impl Verbs, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { since: verbs.now(), pause: PAUSES[0], random }
    }

    /// Waits before the next attempt, and counts it.
    ///
    /// # Errors
    /// The patience is at its end.
    pub async fn pause(
        &mut self,
        verbs: &impl Verbs,
        options: &Options,
        retries: &Cell<u64>,
    ) -> Result<(), KvError> {
        retries.set(retries.get() + 1);
        if verbs.now() - self.since > options.patience {
            return Err(KvError::Changing(options.patience.as_millis()));
        }
        // Those that met the same change do not return at the same time.
        verbs.sleep(self.pause.mul_f64(0.5 + self.random.f64() / 2.0)).await;
        self.pause = (self.pause * 2).min(PAUSES[1]);
        Ok(())
    }
}
