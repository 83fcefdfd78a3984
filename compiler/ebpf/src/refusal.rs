// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The check that a program can run outside the kernel. All targets but the kernel make it before
//! they look for what they lack themselves. So they refuse the same programs for the same reasons,
//! and the other programs of an object run.

use crate::object::{Error, MapDefinition, Program};
use thiserror::Error as ThisError;

/// Why a program cannot run: an instruction of it, and what is wrong with that.
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
#[error("program `{program}`, instruction {slot}: {reason}")]
pub struct Unsupported {
    /// The program's name.
    pub program: String,
    /// The instruction's slot.
    pub slot: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Checks that a program was read whole, and that the maps that it uses are ones that the kernel
/// makes.
///
/// # Errors
/// The first instruction of which that is not so.
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

/// Text of an error without the program and the instruction.
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
