// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons for which a program cannot be lifted.

use crate::object::Program;
use thiserror::Error;

/// An instruction without a counterpart in the shared representation.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("not liftable, because of instruction {slot}: {reason}")]
pub struct NotLiftable {
    /// Slot of the instruction.
    pub slot: usize,
    /// Reason.
    pub reason: String,
}

impl NotLiftable {
    pub(super) fn at(slot: usize, reason: impl Into<String>) -> Self {
        Self { slot, reason: reason.into() }
    }

    /// Returns the message with the source line, if the object has line information.
    pub fn explain(&self, program: &Program) -> String {
        match program.line(self.slot) {
            Some(line) => {
                format!("{self} ({}:{}: `{}`)", line.file, line.line, line.text.trim())
            }
            None => self.to_string(),
        }
    }
}
