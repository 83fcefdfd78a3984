// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Locks of keys: puts of a key, and the filling of the cache with it, happen one after the other.

use futures::lock::{Mutex, OwnedMutexGuard};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The locks of keys that are in use.
#[derive(Clone, Default)]
pub struct Locks {
    held: Rc<RefCell<Held>>,
}

/// Locks that somebody holds or waits for, by their keys.
type Held = HashMap<Vec<u8>, Arc<Mutex<()>>>;

/// A lock that is held until this is dropped.
pub struct Guard {
    locks: Locks,
    key: Vec<u8>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Locks {
    fn of(&self, key: &[u8]) -> Arc<Mutex<()>> {
        Arc::clone(self.held.borrow_mut().entry(key.to_vec()).or_default())
    }

    fn guard(&self, key: &[u8], guard: OwnedMutexGuard<()>) -> Guard {
        Guard { locks: self.clone(), key: key.to_vec(), guard: Some(guard) }
    }

    /// Waits for the lock of a key.
    pub async fn lock(&self, key: &[u8]) -> Guard {
        let guard = self.of(key).lock_owned().await;
        self.guard(key, guard)
    }

    /// Takes the lock of a key if nobody has it.
    pub fn try_lock(&self, key: &[u8]) -> Option<Guard> {
        Some(self.guard(key, self.of(key).try_lock_owned()?))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.guard = None;
        let mut held = self.locks.held.borrow_mut();
        // Others that hold it wait for it.
        if held.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            held.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_lock_is_held_by_one_and_forgotten_by_the_last() {
        let locks = Locks::default();
        let first = locks.try_lock(b"a").expect("free");
        assert!(locks.try_lock(b"a").is_none() && locks.try_lock(b"b").is_some());
        let mut second = Box::pin(locks.lock(b"a"));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        let second = second.now_or_never().expect("free");
        assert!(locks.try_lock(b"a").is_none());
        drop(second);
        assert!(locks.held.borrow().is_empty());
    }
}
