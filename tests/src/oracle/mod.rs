// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two oracles of the compiler: generated functions against plain C, and generated programs
//! against the interpreter.

pub mod batch;
pub mod c_oracle;
pub mod functions;
pub mod graphs;
pub mod writer;

/// The first seed: `FREEPORT_SEED`, else `default`. Printed, so that a failure can be run again.
pub fn seed(default: u64) -> u64 {
    let given = std::env::var("FREEPORT_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(default);
    println!("FREEPORT_SEED={seed}");
    seed
}

/// Whether to test for as long as it takes (`make test-long`).
pub fn is_long() -> bool {
    std::env::var_os("FREEPORT_LONG").is_some()
}

/// How many generated programs are tested: `FREEPORT_PROGRAMS` says it, else it is `usual`, and a
/// hundred times that in a long test.
pub fn programs(usual: u64) -> u64 {
    let given = std::env::var("FREEPORT_PROGRAMS").ok().and_then(|count| count.parse().ok());
    given.unwrap_or(if is_long() { 100 * usual } else { usual })
}
