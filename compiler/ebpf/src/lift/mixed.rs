// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registers that may hold addresses in values of different maps, as when a program looks up a flow
//! in its usual table or in one for floods: a reference may be to either table.
//!
//! Such a register is passed as a reference wherever paths with different contents meet. If the
//! contents are something else on one path, an invalid reference is passed; a null check of it
//! would give a wrong result, so a program with such a check is not lifted. An access through the
//! register is known to use an address in a value, because accesses are known for each path
//! separately.

use super::NotLiftable;
use freeport_ir::ValueId;
use std::collections::BTreeSet;

/// Values that are passed as references.
#[derive(Debug, Default)]
pub struct Mixed {
    /// Pairs of a value and the parameter to which it is passed.
    passed: Vec<(ValueId, ValueId)>,
    /// Invalid references passed in place of something else.
    wrong: BTreeSet<ValueId>,
    /// Values that are null-checked, with the slots of the checks.
    asked: Vec<(ValueId, usize)>,
}

impl Mixed {
    /// Records that a value is passed to a parameter.
    pub fn pass(&mut self, from: ValueId, to: ValueId) {
        self.passed.push((from, to));
    }

    /// Records that an invalid reference is passed in place of something else.
    pub fn be_wrong(&mut self, value: ValueId) {
        self.wrong.insert(value);
    }

    /// Records that the instruction in `slot` null-checks a value.
    pub fn ask(&mut self, value: ValueId, slot: usize) {
        self.asked.push((value, slot));
    }

    /// Checks that no null check gives a wrong result.
    ///
    /// # Errors
    /// The first instruction with a wrong result.
    pub fn check(&mut self) -> Result<(), NotLiftable> {
        loop {
            let before = self.wrong.len();
            let reached = self.passed.iter().filter(|(from, _)| self.wrong.contains(from));
            let reached: Vec<ValueId> = reached.map(|(_, to)| *to).collect();
            self.wrong.extend(reached);
            if self.wrong.len() == before {
                break;
            }
        }
        let reported = self.asked.iter().filter(|(value, _)| self.wrong.contains(value));
        match reported.map(|(_, slot)| *slot).min() {
            Some(slot) => {
                let reason = "it compares a value whose kind differs between the paths to here";
                Err(NotLiftable::at(slot, reason))
            }
            None => Ok(()),
        }
    }
}
