// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks that an image obeys the rules of `docs/internals/vliw.md` and is equivalent to its
//! program.
//!
//! The checker shares no code with the compiler: it implements the rules from that page alone, so
//! that an error in one is detected by the other.

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

/// A rule of images.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// There are 1 to 8 lanes, and each row has as many lanes as the machine.
    Lanes,
    /// Functions are in ascending order, each begins at a row of its own, the first at row 0.
    Functions,
    /// Registers are below 16.
    RegisterNumber,
    /// Fields have valid values.
    Field,
    /// Each operation has the instructions of the program from which it was made.
    Origin,
    /// Register 10 is never written.
    FramePointer,
    /// The second lane of a long constant exists and is empty.
    LongConstant,
    /// The target of a jump is a row of the same function.
    JumpTarget,
    /// A called function does not exit with a verdict as a jump target.
    ExitTarget,
    /// The target of a call is the first row of a function.
    CallTarget,
    /// A call of a function is the last operation of its row.
    CallIsLast,
    /// No operation follows one that always leaves the row.
    BehindLeaving,
    /// The last row of a function always leaves it.
    LastRow,
    /// A row calls at most one helper.
    OneCall,
    /// No two operations of a row write the same register.
    WrittenTwice,
    /// No operation reads a register that another operation of its row writes.
    ReadAndWritten,
    /// Accesses of a row that may overlap are both reads.
    MemoryConflict,
    /// The packet's ends are not read in a row that moves them.
    PacketMoved,
    /// A result is read in the next row only in the lane that computed it.
    CrossLane,
    /// The next row does not load bytes that this row stores.
    StoreToLoad,
    /// The effects equal those of the program, on each path that was followed.
    Meaning,
    /// A load that the program does not execute on a path is speculative.
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

/// A violation of a rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    /// The row; for a rule about two rows the second one.
    pub row: usize,
    /// The lanes that violate the rule.
    pub lanes: Vec<usize>,
    /// The rule.
    pub rule: Rule,
    /// Description of the violation, with the text of the operations.
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

/// Default maximum number of paths followed in each function.
pub const PATHS_MAX: usize = 1_000;

/// Checks an image of an analysed program.
///
/// # Errors
/// All violations, in the order of rows. The behaviour of rows is only checked if their form is
/// valid, and their meaning if they violate no other rule; then the first path with different
/// effects is reported.
pub fn check(image: &Image, program: &Program, analysis: &Analysis) -> Result<(), Vec<Violation>> {
    check_paths(image, program, analysis, PATHS_MAX).map(|_| ())
}

/// As [`check`], with this maximum number of paths followed in each function. Returns the number of
/// paths that were validated and abandoned.
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

/// Returns the text of an operation.
fn text(row: &Row, lane: usize) -> String {
    let slot = row.lanes.get(lane).and_then(Option::as_ref);
    slot.map_or_else(|| "-".to_owned(), |slot| format!("`{}`", slot.operation))
}
