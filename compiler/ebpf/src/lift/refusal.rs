// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a program cannot be lifted.

use crate::object::Program;
use thiserror::Error;

/// What in a program has no counterpart in the shared representation.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("not liftable, because of instruction {slot}: {reason}")]
pub struct NotLiftable {
    /// The instruction's slot.
    pub slot: usize,
    /// Why.
    pub reason: String,
}

impl NotLiftable {
    pub(super) fn at(slot: usize, reason: impl Into<String>) -> Self {
        Self { slot, reason: reason.into() }
    }

    /// The same with the line of the source, where the object says it.
    pub fn explain(&self, program: &Program) -> String {
        match program.line(self.slot) {
            Some(line) => {
                format!("{self} ({}:{}: `{}`)", line.file, line.line, line.text.trim())
            }
            None => self.to_string(),
        }
    }
}
