// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A place whose operations are counted, on any machine.

use crate::fault::Fault;
use crate::place::{Address, Place, Way};
use crate::verbs::Verbs;
use std::cell::Cell;
use std::rc::Rc;

/// Numbers of operations that a place began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Reads of other places' memory.
    pub reads: u64,
    /// Writes to other places' memory.
    pub writes: u64,
    /// Messages with their answers.
    pub calls: u64,
    /// Bytes that other places were sent and asked for.
    pub bytes: u64,
}

impl Counts {
    /// Returns the number of round trips.
    pub fn round_trips(self) -> u64 {
        self.reads + self.writes + self.calls
    }

    /// Returns what was counted since an earlier count.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            calls: self.calls - earlier.calls,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

/// A place that counts its operations. Clones count together.
#[derive(Clone)]
pub struct Counted<V> {
    inner: V,
    counts: Rc<Cell<Counts>>,
}

impl<V> Counted<V> {
    /// Counts the operations of a place.
    pub fn new(inner: V) -> Self {
        Self { inner, counts: Rc::default() }
    }

    /// Returns the numbers so far.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}

impl<V: Verbs> Verbs for Counted<V> {
    type Memory = V::Memory;
    type Stable = V::Stable;

    fn place(&self) -> Place {
        self.inner.place()
    }

    async fn read(&self, from: Address, bytes: usize, way: Way) -> Result<Vec<u8>, Fault> {
        self.count(|counts| {
            counts.reads += 1;
            counts.bytes += bytes as u64;
        });
        self.inner.read(from, bytes, way).await
    }

    async fn write(&self, to: Address, data: Vec<u8>, way: Way) -> Result<(), Fault> {
        self.count(|counts| {
            counts.writes += 1;
            counts.bytes += data.len() as u64;
        });
        self.inner.write(to, data, way).await
    }

    async fn call(&self, to: Place, message: Vec<u8>) -> Result<Vec<u8>, Fault> {
        self.count(|counts| {
            counts.calls += 1;
            counts.bytes += message.len() as u64;
        });
        self.inner.call(to, message).await
    }

    crate::forward!(inner);

    fn stable(&self) -> &V::Stable {
        self.inner.stable()
    }
}
