// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers for time, random numbers, and the processor.

use super::Called;
use crate::run::Run;

/// Returns the time in nanoseconds; all the kernel's clocks are the same here.
pub fn now(run: &mut Run, _: &'static str) -> Called {
    Ok(Some(run.environment.clock.now_ns()))
}

/// Returns the time in ticks of the kernel's timer.
pub fn ticks(run: &mut Run, _: &'static str) -> Called {
    Ok(Some(run.environment.clock.ticks()))
}

/// Returns 32 random bits, by SplitMix64 (Steele, Lea and Flood 2014).
pub fn random(run: &mut Run, _: &'static str) -> Called {
    let state = &mut run.scratch.random;
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    Ok(Some((mixed ^ mixed >> 31) >> 32))
}

/// Returns the number of the processor.
pub fn processor(run: &mut Run, _: &'static str) -> Called {
    Ok(Some(run.environment.processor.into()))
}

/// Returns the number of the processor's memory node; there is only one.
pub fn memory_node(_: &mut Run, _: &'static str) -> Called {
    Ok(Some(0))
}
