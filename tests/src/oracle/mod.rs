// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two oracles of the compiler: generated functions against plain C, and generated programs
//! against the interpreter.

pub mod batch;
pub mod c_oracle;
pub mod functions;
pub mod graphs;
pub mod writer;

use freeport_testbed::{number, usual_or_long, variable};

/// Returns the first seed: `FREEPORT_SEED`, or `default`. Prints it, so that a failure can be
/// reproduced.
pub fn seed(default: u64) -> u64 {
    let seed = number(variable::SEED).unwrap_or(default);
    println!("FREEPORT_SEED={seed}");
    seed
}

/// Number of generated programs to test: `FREEPORT_PROGRAMS`, or `usual`, or thirty times that in a
/// long run.
pub fn programs(usual: u64) -> u64 {
    number("FREEPORT_PROGRAMS").unwrap_or(usual_or_long(usual, 30 * usual))
}
