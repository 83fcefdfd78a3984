// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks that a program is well formed, so that later stages do not have to.
//!
//! Rules are grouped by subject: declarations and roles (`elements`), the graph, and for each
//! function the ranges of its indexes, control and data flow (`flow`), and the types of its
//! operations (`types`). A function with an index out of range is not checked further.

mod elements;
mod flow;
mod graph;
mod ranges;
mod types;

use crate::{BlockId, FunctionId, Loc, Program};
use std::fmt;

/// A violated rule and its location.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct VerifyError {
    /// Context: a function, an element, or the graph.
    pub context: String,
    /// Block, inside a function.
    pub block: Option<BlockId>,
    /// Position of the operation in the block, from 0; none for the block's parameters and
    /// terminator.
    pub inst: Option<usize>,
    /// Source location.
    pub loc: Loc,
    /// The violation.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.context)?;
        match self.block {
            Some(BlockId(0)) => write!(f, ", entry")?,
            Some(BlockId(at)) => write!(f, ", b{at}")?,
            None => {}
        }
        if let Some(at) = self.inst {
            write!(f, ", operation {at}")?;
        }
        if self.loc.line > 0 {
            write!(f, " (line {}:{})", self.loc.line, self.loc.column)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Checks a whole program.
///
/// # Errors
/// Every violation that can be reported independently.
pub fn verify(program: &Program) -> Result<(), Vec<VerifyError>> {
    let mut report = Report::default();
    if ranges::check_program(program, &mut report) {
        elements::check(program, &mut report);
        graph::check(program, &mut report);
        let mut is_sound = true;
        for function in &program.functions {
            is_sound &= ranges::check_function(program, function, &mut report);
        }
        if is_sound {
            for at in 0..program.functions.len() {
                flow::check(program, FunctionId::new(at), &mut report);
                types::check(program, FunctionId::new(at), &mut report);
            }
            elements::check_calls(program, &mut report);
        }
    }
    if report.errors.is_empty() { Ok(()) } else { Err(report.errors) }
}

/// Errors found, and the current position of the check.
#[derive(Default)]
struct Report {
    errors: Vec<VerifyError>,
    context: String,
    block: Option<BlockId>,
    inst: Option<usize>,
    loc: Loc,
}

impl Report {
    /// Enters an element, a function or the graph.
    fn enter(&mut self, context: impl Into<String>, loc: Loc) {
        (self.context, self.block, self.inst, self.loc) = (context.into(), None, None, loc);
    }

    /// Moves to an operation of a block, or to its parameters or terminator.
    fn go_to(&mut self, block: usize, inst: Option<usize>, loc: Loc) {
        (self.block, self.inst, self.loc) = (Some(BlockId::new(block)), inst, loc);
    }

    /// Reports an error unless the rule holds; returns whether it does.
    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) -> bool {
        if !holds {
            self.errors.push(VerifyError {
                context: self.context.clone(),
                block: self.block,
                inst: self.inst,
                loc: self.loc,
                message: message(),
            });
        }
        holds
    }
}

/// Returns the first name that occurs twice.
fn repeated<'n>(names: impl Iterator<Item = &'n String>) -> Option<&'n String> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}
