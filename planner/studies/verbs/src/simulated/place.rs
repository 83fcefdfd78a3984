// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory, file and messages of a simulated place.

use super::Shared;
use crate::fault::Fault;
use crate::inbox::Inbox;
use crate::verbs::{Memory, Stable};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Memory of a simulated place.
#[derive(Clone, Default)]
pub struct SimulatedMemory {
    bytes: Rc<RefCell<Vec<u8>>>,
}

impl Memory for SimulatedMemory {
    fn bytes(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    fn load(&self, at: u64, bytes: usize) -> Vec<u8> {
        let at = at as usize;
        self.bytes.borrow()[at..at + bytes].to_vec()
    }

    fn store(&self, at: u64, data: &[u8]) {
        let at = at as usize;
        self.bytes.borrow_mut()[at..at + data.len()].copy_from_slice(data);
    }
}

/// A file of a simulated place: non-volatile memory with assumed times.
#[derive(Clone)]
pub struct SimulatedStable {
    pub(super) shared: Rc<Shared>,
    pub(super) contents: Rc<RefCell<Vec<u8>>>,
}

/// Time of an append in picoseconds; assumed.
const APPEND: u64 = 1_000_000;
/// Time of each byte in picoseconds: 20.8 GB/s. Fitted to rows 35 and 36 of the off-path SmartNIC
/// study, file replication by A2 and A3, which the host's log limits.
const APPEND_BYTE: u64 = 48;

impl Stable for SimulatedStable {
    async fn append(&self, data: Vec<u8>) -> Result<(), Fault> {
        let (first, second) = data.split_at(data.len() / 2);
        let keep = |part: &[u8]| {
            if !self.shared.forgets.get() {
                self.contents.borrow_mut().extend(part);
            }
        };
        keep(first);
        self.shared.wait(APPEND + APPEND_BYTE * data.len() as u64).await;
        keep(second);
        Ok(())
    }

    fn read(&self) -> Result<Vec<u8>, Fault> {
        Ok(self.contents.borrow().clone())
    }

    fn truncate(&self, bytes: u64) -> Result<(), Fault> {
        self.contents.borrow_mut().truncate(bytes as usize);
        Ok(())
    }
}

/// A place with all its lives.
#[derive(Default)]
pub(super) struct State {
    pub(super) memory: SimulatedMemory,
    pub(super) contents: Rc<RefCell<Vec<u8>>>,
    /// Number of its lives so far; it is alive if the number is odd.
    life: Cell<u64>,
    pub(super) inbox: Inbox,
}

impl State {
    pub(super) fn begin(&self, memory_bytes: usize) {
        *self.memory.bytes.borrow_mut() = vec![0; memory_bytes];
        self.life.set(self.life.get() + 1);
    }

    pub(super) fn die(&self) {
        if self.life().is_some() {
            self.life.set(self.life.get() + 1);
        }
        // Calls fail where they are dropped.
        self.inbox.clear();
    }

    /// Returns the number of the current life, if it is alive.
    pub(super) fn life(&self) -> Option<u64> {
        let life = self.life.get();
        (life % 2 == 1).then_some(life)
    }
}
