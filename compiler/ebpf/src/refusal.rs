// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The check that a program can run outside the kernel. All targets except the kernel make it
//! before their own checks, so they refuse the same programs for the same reasons, and the other
//! programs of an object run.

use crate::object::{Error, MapDefinition, Program};
use thiserror::Error as ThisError;

/// Reason for which a program cannot run: an instruction, and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
#[error("program `{program}`, instruction {slot}: {reason}")]
pub struct Unsupported {
    /// Name of the program.
    pub program: String,
    /// Slot of the instruction.
    pub slot: usize,
    /// Description of the error.
    pub reason: String,
}

/// Checks that a program was loaded completely, and that the kernel would create the maps that it
/// uses.
///
/// # Errors
/// The first instruction that violates this.
pub fn check(program: &Program, maps: &[MapDefinition]) -> Result<(), Unsupported> {
    let refused = |slot, reason| Unsupported { program: program.name.clone(), slot, reason };
    if let Some(refusal) = &program.refusal {
        let slot = refusal.place.instruction.unwrap_or(0);
        return Err(refused(slot, described(program, refusal)));
    }
    for (slot, map) in program.maps_used() {
        if let Some(map) = maps.get(map) {
            map.check().map_err(|reason| refused(slot, format!("map `{}`: {reason}", map.name)))?;
        }
    }
    Ok(())
}

/// Returns the text of an error without program and instruction.
fn described(program: &Program, error: &Error) -> String {
    let mut text = String::new();
    if let Some(function) = error.place.function.as_ref().filter(|it| **it != program.name) {
        text += &format!("function `{function}`: ");
    }
    text += &error.reason;
    if let Some((file, line)) = &error.place.source {
        text += &format!(" ({file}:{line})");
    }
    text
}
