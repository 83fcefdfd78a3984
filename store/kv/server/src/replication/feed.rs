// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches on their way from the receiver to the worker that executes them. The receiver waits
//! while there are many, so the primary's socket fills, and the replica's memory stays bounded.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use freeport_kv_journal::Position;

/// Bytes of batches that wait at most, unless it is only one.
const BYTES_MAX: usize = 16 << 20;
/// Time between two looks whether the link is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A batch of the primary's log.
#[derive(Debug)]
pub struct Batch {
    /// Its position.
    pub position: Position,
    /// Number of units.
    pub count: u32,
    /// The units, each after its length.
    pub items: Vec<u8>,
}

/// The batches of one link.
#[derive(Debug, Default)]
pub struct Feed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Batch>,
    bytes: usize,
    /// An errand is on its way that takes batches.
    is_scheduled: bool,
    /// No more batches are taken.
    is_over: bool,
    /// Why the last batch was not executed.
    failure: Option<String>,
}

impl Feed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch; waits while too many wait, until `is_ended`. Returns whether an errand has to
    /// be sent that takes batches.
    ///
    /// # Errors
    /// A batch was not executed, or the link is over: why.
    pub fn push(&self, batch: Batch, is_ended: impl Fn() -> bool) -> Result<bool, String> {
        let bytes = batch.items.len();
        let mut state = self.state();
        while !state.is_over && state.bytes > 0 && state.bytes + bytes > BYTES_MAX {
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.is_over |= is_ended();
        }
        if state.is_over {
            return Err(state.failure.take().unwrap_or_else(|| "the link was ended".into()));
        }
        state.bytes += bytes;
        state.batches.push_back(batch);
        Ok(!std::mem::replace(&mut state.is_scheduled, true))
    }

    /// The next batch. Without one, the next [`Feed::push`] wants another errand.
    pub fn take(&self) -> Option<Batch> {
        let mut state = self.state();
        let batch = state.batches.pop_front();
        match &batch {
            Some(batch) => state.bytes -= batch.items.len(),
            None => state.is_scheduled = false,
        }
        drop(state);
        self.changed.notify_all();
        batch
    }

    /// No more batches are taken: the receiver has ended, or a batch was not executed.
    pub fn end(&self, failure: Option<String>) {
        let mut state = self.state();
        state.is_over = true;
        state.batches.clear();
        state.bytes = 0;
        // The first reason is the one that counts.
        state.failure = state.failure.take().or(failure);
        drop(state);
        self.changed.notify_all();
    }

    /// No more batches are taken.
    pub fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Why a batch was not executed, if one was not.
    pub fn take_failure(&self) -> Option<String> {
        self.state().failure.take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn batch(position: u64, bytes: usize) -> Batch {
        Batch { position: Position(position), count: 1, items: vec![0; bytes] }
    }

    #[test]
    fn one_errand_takes_all_batches() {
        let feed = Feed::default();
        assert_eq!(feed.push(batch(1, 10), || false), Ok(true));
        assert_eq!(feed.push(batch(2, 10), || false), Ok(false));
        let positions: Vec<u64> =
            std::iter::from_fn(|| feed.take()).map(|batch| batch.position.0).collect();
        assert_eq!(positions, [1, 2]);
        assert_eq!(feed.push(batch(3, 10), || false), Ok(true), "the errand has ended");
    }

    #[test]
    fn a_full_feed_waits_until_a_batch_is_taken() {
        let feed = Arc::new(Feed::default());
        assert_eq!(
            feed.push(batch(1, 2 * BYTES_MAX), || false),
            Ok(true),
            "one of any size is taken"
        );
        let pushes = feed.clone();
        let thread = std::thread::spawn(move || pushes.push(batch(2, 1), || false));
        assert_eq!(feed.take().map(|batch| batch.position), Some(Position(1)));
        assert!(thread.join().expect("it does not panic").is_ok());
        assert_eq!(feed.push(batch(3, BYTES_MAX - 1), || false), Ok(false));
        let pushes = feed.clone();
        let thread = std::thread::spawn(move || pushes.push(batch(4, 1), || false));
        feed.end(Some("as a test wants it".into()));
        assert_eq!(thread.join().expect("it does not panic"), Err("as a test wants it".into()));
        assert!(feed.take().is_none());
    }

    #[test]
    fn a_link_that_is_not_wanted_does_not_wait_for_room() {
        let feed = Feed::default();
        assert_eq!(feed.push(batch(1, BYTES_MAX), || false), Ok(true));
        assert_eq!(feed.push(batch(2, 1), || true), Err("the link was ended".into()));
    }
}
