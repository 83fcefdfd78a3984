// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether an image keeps the rules of `docs/internals/vliw.md`, and does what its program does.
//!
//! Nothing here is shared with what makes images: the rules are read from the page alone, so that a
//! mistake of one is found by the other.

mod form;
mod hazards;
mod meaning;
mod memory;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod naive;
mod registers;
mod rows;
#[cfg(test)]
mod sample;

pub use meaning::Paths;

use crate::image::{Image, Row};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::object::Program;
use std::fmt::{self, Display, Formatter};

/// A rule that can be broken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// There are 1 to 8 lanes, and each row has as many as the machine.
    Lanes,
    /// Functions are in order, begin in a row of their own, and the first one in row 0.
    Functions,
    /// Registers are below 16.
    RegisterNumber,
    /// Fields have values that mean something.
    Field,
    /// An operation comes from instructions of the program.
    Origin,
    /// Register 10 is never written.
    FramePointer,
    /// The second lane of a long constant is there, and empty.
    LongConstant,
    /// Jumps lead to rows of their own function.
    JumpTarget,
    /// Functions that are called do not exit with a verdict in a target.
    ExitTarget,
    /// What is called is the first row of a function.
    CallTarget,
    /// A call of a function is the last operation of its row.
    CallIsLast,
    /// No operation stands behind one that always leaves.
    BehindLeaving,
    /// The last row of a function always leaves.
    LastRow,
    /// A row calls one helper at most.
    OneCall,
    /// No two operations of a row write the same register.
    WrittenTwice,
    /// No operation reads a register that another one of its row writes.
    ReadAndWritten,
    /// Accesses of a row that may touch the same bytes are both reads.
    MemoryConflict,
    /// The packet's ends are not asked for in a row that moves them.
    PacketMoved,
    /// The next row reads what was computed in the lane that computed it.
    CrossLane,
    /// The next row does not load what was stored.
    StoreToLoad,
    /// Effects are those of the program, on each path that was followed.
    Meaning,
    /// What the program does not load on a path is loaded speculatively only.
    MayMiss,
}

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lanes => "a row has as many lanes as the machine, 1 to 8",
            Self::Functions => "functions are in order, and the first one begins in row 0",
            Self::RegisterNumber => "registers are below 16",
            Self::Field => "a field has a value that means nothing",
            Self::Origin => "an operation comes from instructions of the program",
            Self::FramePointer => "register 10 is never written",
            Self::LongConstant => "a long constant takes the next lane too",
            Self::JumpTarget => "jumps lead to rows of their own function",
            Self::ExitTarget => "functions that are called do not exit with a verdict",
            Self::CallTarget => "what is called is the first row of a function",
            Self::CallIsLast => "a call of a function is the last operation of its row",
            Self::BehindLeaving => "no operation stands behind one that always leaves",
            Self::LastRow => "the last row of a function always leaves",
            Self::OneCall => "a row calls one helper",
            Self::WrittenTwice => "no two operations of a row write the same register",
            Self::ReadAndWritten => "no operation reads a register that its row writes",
            Self::MemoryConflict => "what a row writes is touched by one operation alone",
            Self::PacketMoved => "a row that moves the packet's ends does not use them",
            Self::CrossLane => "the next row reads a result in the lane that computed it",
            Self::StoreToLoad => "the next row does not load what was stored",
            Self::Meaning => "it does what the program does",
            Self::MayMiss => "a load that may miss is speculative",
        })
    }
}

/// A rule that is broken, and where.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    /// The row; of rules about two rows the second one.
    pub row: usize,
    /// The lanes that break it.
    pub lanes: Vec<usize>,
    /// What is broken.
    pub rule: Rule,
    /// What there is, with the text of the operations.
    pub what: String,
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "row {}", self.row)?;
        if !self.lanes.is_empty() {
            let lanes: Vec<_> = self.lanes.iter().map(usize::to_string).collect();
            let many = if lanes.len() > 1 { "s" } else { "" };
            write!(f, ", lane{many} {}", lanes.join(" and "))?;
        }
        write!(f, ": {}: {}", self.rule, self.what)
    }
}

/// Paths that are followed of each function at most.
pub const PATHS_MAX: usize = 1_000;

/// Checks an image of a program, of which the analysis is given.
///
/// # Errors
/// All that is wrong with it, in the order of rows: what rows do is asked if their form is right,
/// and what it means if they keep all rules. Then the first path that differs is told.
pub fn check(image: &Image, program: &Program, analysis: &Analysis) -> Result<(), Vec<Violation>> {
    check_paths(image, program, analysis, PATHS_MAX).map(|_| ())
}

/// The same, with how many paths are followed of each function at most. Says how many were.
///
/// # Errors
/// As [`check`].
pub fn check_paths(
    image: &Image,
    program: &Program,
    analysis: &Analysis,
    paths_max: usize,
) -> Result<Paths, Vec<Violation>> {
    let mut violations = form::check(image, program, analysis);
    if violations.is_empty() {
        violations.extend(rows::check(image, analysis));
        violations.extend(hazards::check(image, analysis));
    }
    if violations.is_empty() {
        return meaning::check(image, analysis, paths_max);
    }
    violations.sort();
    Err(violations)
}

/// The text of an operation.
fn text(row: &Row, lane: usize) -> String {
    let slot = row.lanes.get(lane).and_then(Option::as_ref);
    slot.map_or_else(|| "-".to_owned(), |slot| format!("`{}`", slot.operation))
}
