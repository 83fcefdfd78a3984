// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program in its dense form.

use super::step::Step;

/// A program in the form that the interpreter runs.
#[derive(Default)]
pub(crate) struct Compiled {
    /// Steps of the program, followed by one that aborts it.
    pub steps: Vec<Step>,
    /// Slot of the instruction from which each step was made.
    pub slots: Vec<u32>,
    /// Whether it is an XDP program.
    pub is_runnable: bool,
}
