// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Uses of keys, and values that reads do not see because their time has passed.

use crate::access::{AccessTable, Tracking};
use crate::keyspace::Keyspace;

impl Keyspace {
    /// The facts that are tracked of the uses of keys.
    pub fn tracking(&self) -> Tracking {
        self.access.as_ref().map_or(Tracking::Off, |access| access.tracking())
    }

    /// Tracks the uses of keys from now on, or no longer. When that begins, all keys count as just
    /// used. Other parameters of the same kind of tracking keep what is known.
    pub fn track(&mut self, tracking: Tracking, now_ms: u64) {
        if self.access.as_mut().is_some_and(|access| access.retune(tracking)) {
            return;
        }
        let keys = self.len();
        self.access =
            (tracking != Tracking::Off).then(|| Box::new(AccessTable::new(tracking, keys, now_ms)));
    }

    /// A key is used. Nothing happens if there is no such key, or nothing is tracked. `random` is
    /// any number.
    #[inline]
    pub fn touch(&mut self, key: &[u8], now_ms: u64, random: u32) {
        if self.access.is_some() && self.engine.get(key).is_some() {
            let hash = self.engine.hash(key).bits;
            self.access.iter_mut().for_each(|access| access.touch(hash, now_ms, random));
        }
    }

    /// Seconds since the last use of a key, 13 hours at most; none: there is no such key, or times
    /// are not tracked.
    pub fn idle_s(&self, key: &[u8], now_ms: u64) -> Option<u64> {
        let access = self.access.as_ref().filter(|it| it.tracking() == Tracking::Recency)?;
        self.stored(key, now_ms)?;
        Some(access.idle_s(self.engine.hash(key).bits, now_ms))
    }

    /// Sets the seconds since the last use of a key, if times are tracked.
    pub fn set_idle_s(&mut self, key: &[u8], idle_s: u64, now_ms: u64) {
        let hash = self.engine.hash(key).bits;
        if let Some(access) = &mut self.access
            && access.tracking() == Tracking::Recency
        {
            access.set_idle_s(hash, idle_s, now_ms);
        }
    }

    /// Logarithmic counter of the uses of a key; none: there is no such key, or frequencies are
    /// not tracked.
    pub fn frequency(&self, key: &[u8], now_ms: u64) -> Option<u8> {
        let access = self.access.as_deref().filter(|access| access.tracking().counts())?;
        self.stored(key, now_ms)?;
        Some(access.frequency(self.engine.hash(key).bits, now_ms))
    }

    /// Sets the counter of the uses of a key, if frequencies are tracked.
    pub fn set_frequency(&mut self, key: &[u8], count: u8, now_ms: u64) {
        let hash = self.engine.hash(key).bits;
        if let Some(access) = &mut self.access
            && access.tracking().counts()
        {
            access.set_frequency(hash, count, now_ms);
        }
    }

    /// Keeps the table of uses large enough, and what it knows from becoming ambiguous. To be
    /// called about ten times a second; a call is short, except when the table is doubled.
    pub fn tend_uses(&mut self, now_ms: u64) {
        let keys = self.len();
        self.access.iter_mut().for_each(|access| access.tend(keys, now_ms));
    }

    /// Bytes of the table of uses.
    pub(crate) fn access_bytes(&self) -> usize {
        self.access.as_ref().map_or(0, |access| access.memory_bytes())
    }

    /// A key was removed.
    #[inline]
    pub(crate) fn forget_uses(&mut self, key: &[u8], now_ms: u64) {
        if let Some(access) = &mut self.access {
            access.forget(self.engine.hash(key).bits, now_ms);
        }
    }

    /// Whether a value was not seen because its time had passed, since the last call. The caller
    /// knows which keys it has asked for, and removes them by [`Keyspace::remove_expired`].
    #[inline]
    pub fn take_hidden(&self) -> bool {
        self.has_hidden.take()
    }

    /// Removes a value whose time has passed; returns whether there was one.
    pub fn remove_expired(&mut self, key: &[u8], now_ms: u64) -> bool {
        let has_expired =
            self.stored_or_expired(key).is_some_and(|(header, _)| header.has_expired(now_ms));
        if has_expired {
            self.discard(key);
            self.forget_uses(key, now_ms);
        }
        has_expired
    }
}
