// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registers that may hold addresses in values of different maps, as where one program looks a flow
//! up in a table of the usual kind or in one for floods: references do not care which.
//!
//! Such a register is passed as a reference wherever paths meet that have different things in it.
//! Where it really is something else on one of them, nothing is passed; and who asks whether it is
//! there would be told wrong, so no such program is lifted. Who follows it is known to have an
//! address in a value: accesses are known for each path by itself.

use super::NotLiftable;
use freeport_ir::ValueId;
use std::collections::BTreeSet;

/// Values that are taken for references.
#[derive(Debug, Default)]
pub struct Mixed {
    /// From a value that is passed to one that it becomes.
    passed: Vec<(ValueId, ValueId)>,
    /// Those that are nothing where they should be something else.
    wrong: BTreeSet<ValueId>,
    /// Those that are asked whether they are there, and where.
    asked: Vec<(ValueId, usize)>,
}

impl Mixed {
    /// A value becomes another one.
    pub fn pass(&mut self, from: ValueId, to: ValueId) {
        self.passed.push((from, to));
    }

    /// Something else is passed as this value.
    pub fn be_wrong(&mut self, value: ValueId) {
        self.wrong.insert(value);
    }

    /// The instruction in `slot` asks whether it is there.
    pub fn ask(&mut self, value: ValueId, slot: usize) {
        self.asked.push((value, slot));
    }

    /// Whether nobody is told wrong.
    ///
    /// # Errors
    /// The first instruction that would be.
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
        let told = self.asked.iter().filter(|(value, _)| self.wrong.contains(value));
        match told.map(|(_, slot)| *slot).min() {
            Some(slot) => {
                let reason = "it compares what is not the same kind of value on all ways here";
                Err(NotLiftable::at(slot, reason))
            }
            None => Ok(()),
        }
    }
}
