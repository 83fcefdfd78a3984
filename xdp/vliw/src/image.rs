// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scheduled programs: rows of operations, one a lane.
//!
//! What a row does: all its operations read registers and memory as the rows before have left them,
//! and then all write. Control is decided from the first lane on: the first jump that is taken says
//! which row comes next, and whatever is in later lanes of its row is not done. So a jump to the
//! next row skips the lanes behind it. A call of a helper takes as long as it takes; the next row
//! waits for it.
//!
//! What a row may hold is said in `docs/internals/vliw.md`, and checked by [`check`](crate::check).

use crate::machine::Machine;
use crate::operation::Operation;
use std::fmt::{self, Display, Formatter};

/// A scheduled program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Image {
    /// The name of the program.
    pub name: String,
    /// What it is scheduled for.
    pub machine: Machine,
    /// Where control begins is row 0.
    pub rows: Vec<Row>,
    /// Functions in the order of their first rows; the first is the program itself. A row belongs
    /// to the last one that begins before it, and jumps stay in their function.
    pub functions: Vec<Function>,
}

/// A function of the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Function {
    /// What the object calls it.
    pub name: String,
    /// Its first row.
    pub row: usize,
}

/// Operations that are done at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// As many as the machine has lanes.
    pub lanes: Vec<Option<Slot>>,
}

/// An operation with where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// What is done.
    pub operation: Operation,
    /// The slots of the eBPF instructions that it is made of, in order; never empty. The memory
    /// that it touches is what these touch.
    pub origins: Vec<usize>,
}

impl Row {
    /// Its operations with their lanes.
    pub fn slots(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.lanes.iter().enumerate().filter_map(|(lane, slot)| Some((lane, slot.as_ref()?)))
    }
}

impl Image {
    /// How many operations it has.
    pub fn operations(&self) -> usize {
        self.rows.iter().map(|row| row.slots().count()).sum()
    }

    /// Operations per row: the static instructions per cycle of the publication.
    pub fn operations_per_row(&self) -> f64 {
        self.operations() as f64 / self.rows.len().max(1) as f64
    }

    /// The function that a row belongs to.
    pub fn function_of(&self, row: usize) -> Option<&Function> {
        let end = self.functions.partition_point(|function| function.row <= row);
        self.functions.get(end.checked_sub(1)?)
    }
}

impl Display for Image {
    /// A row a line, its lanes in columns.
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
