// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of which optional parts this command was built with.

use super::{Finding, State};

/// The simulated card.
pub fn card() -> Finding {
    let meaning = "runs XDP programs on simulated hardware, `xdp ... --on sim`; if it is missing, \
                   build with the feature card, which needs Verilator";
    finding("card", cfg!(feature = "card"), meaning)
}

/// XDP programs in the kernel.
pub fn kernel() -> Finding {
    let meaning = "runs XDP programs in the kernel, `xdp ... --on kernel`; if it is missing, build \
                   with the feature kernel, which needs libelf";
    finding("kernel", cfg!(feature = "kernel"), meaning)
}

fn finding(name: &'static str, is_built: bool, meaning: &'static str) -> Finding {
    let (state, seen) = match is_built {
        true => (State::Present, "part of this build"),
        false => (State::Missing, "not part of this build"),
    };
    Finding { name, state, seen: seen.to_owned(), meaning }
}
