// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Detection of accesses to a memory that occur out of program order, and a check that forwarding
//! registers compensate for it.

use super::ScheduleError;
use crate::Bits;
use std::collections::VecDeque;

/// Position of an access in program order: its firing, and the step within it.
pub(super) type Turn = (u64, usize);

/// Bits of an element that an access covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) index: u64,
    pub(super) lo: u32,
    pub(super) width: u32,
}

/// A read that may have happened too early.
struct Read {
    turn: Turn,
    clock: u64,
    range: Range,
    data: Bits,
    /// The last write that it should have seen and did not; no value if the write was masked.
    missed: Option<(Turn, Range, Option<Bits>)>,
    is_forwarded: bool,
}

struct Write {
    turn: Turn,
    clock: u64,
    range: Range,
}

/// Recent accesses to one object.
#[derive(Default)]
pub(super) struct Watch {
    reads: VecDeque<Read>,
    writes: VecDeque<Write>,
    has_forward: bool,
}

/// Forwarding registers of a memory, as seen by a firing.
pub(super) struct Forwarded<'r> {
    pub(super) address: &'r Bits,
    pub(super) value: &'r Bits,
    pub(super) is_valid: bool,
}

type Found = Result<(), (u64, &'static str)>;

impl Watch {
    pub(super) fn new(has_forward: bool) -> Self {
        Self { has_forward, ..Self::default() }
    }

    /// Discards accesses that no firing in flight can conflict with.
    pub(super) fn forget_before(&mut self, clock: u64) {
        while self.reads.front().is_some_and(|read| read.clock < clock) {
            self.reads.pop_front();
        }
        while self.writes.front().is_some_and(|write| write.clock < clock) {
            self.writes.pop_front();
        }
    }

    /// Records a read, which sees every write recorded so far.
    pub(super) fn read(&mut self, turn: Turn, clock: u64, range: Range, data: Bits) -> Found {
        if self.writes.iter().any(|write| write.turn > turn && write.range.overlaps(range)) {
            return Err((range.index, "a read sees the write of a later firing"));
        }
        let (missed, is_forwarded) = (None, false);
        self.reads.push_back(Read { turn, clock, range, data, missed, is_forwarded });
        Ok(())
    }

    /// Records a write, which the reads recorded so far did not see.
    pub(super) fn write(
        &mut self,
        turn: Turn,
        clock: u64,
        range: Range,
        value: Option<Bits>,
    ) -> Found {
        if self.writes.iter().any(|write| write.turn > turn && write.range.overlaps(range)) {
            return Err((range.index, "writes end in the opposite order"));
        }
        for read in &mut self.reads {
            if read.turn < turn || !read.range.overlaps(range) {
                continue;
            }
            if !self.has_forward || read.is_forwarded {
                return Err((range.index, "a read came before the write of an earlier firing"));
            }
            read.missed = Some((turn, range, value.clone()));
        }
        self.writes.push_back(Write { turn, clock, range });
        Ok(())
    }

    /// Checks that the registers forward the missed value, if there is one, to the reads of a
    /// firing.
    pub(super) fn forward(&mut self, firing: u64, registers: &Forwarded) -> Found {
        for read in self.reads.iter_mut().filter(|read| read.turn.0 == firing) {
            read.is_forwarded = true;
            let address = registers.address.checked_u64();
            let is_hit = registers.is_valid && address == Some(read.range.index);
            let forwarded =
                is_hit.then(|| registers.value.extract(read.range.lo, read.range.width));
            let wanted = match &read.missed {
                Some((_, range, value)) if *range == read.range => value.as_ref(),
                Some(_) => None,
                None if forwarded.is_none() => continue,
                None => Some(&read.data),
            };
            if forwarded.is_none() || forwarded.as_ref() != wanted {
                return Err((read.range.index, "the forwarding registers do not hold the value"));
            }
        }
        Ok(())
    }
}

impl Range {
    fn overlaps(self, other: Self) -> bool {
        self.index == other.index
            && u64::from(self.lo) < u64::from(other.lo) + u64::from(other.width)
            && u64::from(other.lo) < u64::from(self.lo) + u64::from(self.width)
    }
}

/// Converts a hazard that a watch found into an error.
pub(super) fn hazard(clock: u64, object: &str, found: (u64, &'static str)) -> ScheduleError {
    ScheduleError::Hazard { clock, object: object.to_owned(), index: found.0, what: found.1 }
}
