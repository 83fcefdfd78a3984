// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time, chance, and where the program runs.

use super::Called;
use crate::run::Run;

/// Time in nanoseconds; all the kernel's clocks are one here.
pub fn now(run: &mut Run, _: &'static str) -> Called {
    Ok(Some(run.environment.clock.now_ns()))
}

/// Time in ticks of the kernel's timer.
pub fn ticks(run: &mut Run, _: &'static str) -> Called {
    Ok(Some(run.environment.clock.ticks()))
}

/// 32 random bits, by SplitMix64 (Steele, Lea and Flood 2014).
pub fn random(run: &mut Run, _: &'static str) -> Called {
    let state = &mut run.scratch.random;
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    Ok(Some((mixed ^ mixed >> 31) >> 32))
}

/// The processor's number.
pub fn processor(run: &mut Run, _: &'static str) -> Called {
    Ok(Some(run.environment.processor.into()))
}

/// The number of the memory that is next to the processor: there is one.
pub fn memory_node(_: &mut Run, _: &'static str) -> Called {
    Ok(Some(0))
}
