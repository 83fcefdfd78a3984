// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program in its dense form.

use super::step::Step;

/// A program as the interpreter runs it.
#[derive(Default)]
pub(crate) struct Compiled {
    /// Its steps, with one that ends the program behind them.
    pub steps: Vec<Step>,
    /// The slot of the object's instruction that each step is made of.
    pub slots: Vec<u32>,
    /// Whether it is a program for packets that XDP sees.
    pub is_runnable: bool,
}
