// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scheduled programs: rows of operations, one for each lane.
//!
//! Semantics of a row: all its operations read registers and memory as the previous rows left them,
//! and then all write. Control is decided in the order of lanes: the first taken jump determines
//! the next row, and operations in later lanes of its row are not executed. A jump to the next row
//! therefore skips the lanes after it. A helper call takes a variable time; the next row waits for
//! it.
//!
//! The rules for rows are in `docs/internals/vliw.md`, and [`check`](crate::check) verifies them.

use crate::machine::Machine;
use crate::operation::Operation;
use std::fmt::{self, Display, Formatter};

/// A scheduled program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Image {
    /// Name of the program.
    pub name: String,
    /// Machine for which it is scheduled.
    pub machine: Machine,
    /// Rows; execution begins at row 0.
    pub rows: Vec<Row>,
    /// Functions in the order of their first rows; the first is the program itself. A row belongs
    /// to the last function that begins at or before it, and jumps stay within their function.
    pub functions: Vec<Function>,
}

/// A function of the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Function {
    /// Name in the object.
    pub name: String,
    /// First row of the function.
    pub row: usize,
}

/// Operations that are executed at the same time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// One entry for each lane of the machine.
    pub lanes: Vec<Option<Slot>>,
}

/// An operation with its origins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The operation.
    pub operation: Operation,
    /// Slots of the eBPF instructions from which it was made, in order; never empty. Its memory
    /// accesses are those of these instructions.
    pub origins: Vec<usize>,
}

impl Row {
    /// Returns its operations with their lanes.
    pub fn slots(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.lanes.iter().enumerate().filter_map(|(lane, slot)| Some((lane, slot.as_ref()?)))
    }
}

impl Image {
    /// Returns the number of operations.
    pub fn operations(&self) -> usize {
        self.rows.iter().map(|row| row.slots().count()).sum()
    }

    /// Returns the operations per row: the publication's static instructions per cycle.
    pub fn operations_per_row(&self) -> f64 {
        self.operations() as f64 / self.rows.len().max(1) as f64
    }

    /// Returns the function to which a row belongs.
    pub fn function_of(&self, row: usize) -> Option<&Function> {
        let end = self.functions.partition_point(|function| function.row <= row);
        self.functions.get(end.checked_sub(1)?)
    }
}

impl Display for Image {
    /// Formats a row a line, with lanes in columns.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (number, row) in self.rows.iter().enumerate() {
            if let Some(function) = self.functions.iter().find(|it| it.row == number) {
                writeln!(f, "{}:", function.name)?;
            }
            let lanes = row.lanes.iter().map(|slot| match slot {
                Some(slot) => format!("{:<30}", slot.operation.to_string()),
                None => format!("{:<30}", "-"),
            });
            writeln!(f, "{number:4}  {}", lanes.collect::<Vec<_>>().join(" ").trim_end())?;
        }
        Ok(())
    }
}
