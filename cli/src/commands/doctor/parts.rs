// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What this command was built with: some parts are features of its package.

use super::{Finding, State};

/// The simulated card.
pub fn card() -> Finding {
    let meaning = "runs XDP programs on simulated hardware, `xdp ... --on sim`; where it is \
                   missing, build with the feature card, which needs Verilator";
    finding("card", cfg!(feature = "card"), meaning)
}

/// XDP programs in the kernel.
pub fn kernel() -> Finding {
    let meaning = "runs XDP programs in the kernel, `xdp ... --on kernel`; where it is missing, \
                   build with the feature kernel, which needs libelf";
    finding("kernel", cfg!(feature = "kernel"), meaning)
}

fn finding(name: &'static str, is_built: bool, meaning: &'static str) -> Finding {
    let (state, seen) = match is_built {
        true => (State::Present, "is in this build"),
        false => (State::Missing, "this build was made without it"),
    };
    Finding { name, state, seen: seen.to_owned(), meaning }
}
