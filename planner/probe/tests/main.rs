// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the probe: its fit with known parameters, and whole measurements without a claim on
//! their speed.

mod errors;
mod fits;
mod measurements;
mod second;

/// Entry point of a second process: does nothing unless the program was started as one.
#[test]
fn partner() {
    if second::is_one() {
        freeport_plan_probe::respond().expect("the other process keeps to the protocol");
    }
}
