// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two oracles of the compiler: generated functions against plain C, and generated programs
//! against the interpreter.

pub mod batch;
pub mod c_oracle;
pub mod functions;
pub mod graphs;
pub mod writer;

use freeport_testbed::{number, usual_or_long, variable};

/// The first seed: `FREEPORT_SEED`, else `default`. Printed, so that a failure can be run again.
pub fn seed(default: u64) -> u64 {
    let seed = number(variable::SEED).unwrap_or(default);
    println!("FREEPORT_SEED={seed}");
    seed
}

/// How many generated programs are tested: `FREEPORT_PROGRAMS` says it, else it is `usual`, and
/// thirty times that in a long run.
pub fn programs(usual: u64) -> u64 {
    number("FREEPORT_PROGRAMS").unwrap_or(usual_or_long(usual, 30 * usual))
}
