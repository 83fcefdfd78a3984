// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Verdicts of a program, with the kernel's numbers (`enum xdp_action`).

/// The packet is dropped because the program failed.
pub const ABORTED: u32 = 0;
/// The packet is dropped.
pub const DROP: u32 = 1;
/// The packet is passed to the network stack.
pub const PASS: u32 = 2;
/// The packet is sent back through its ingress device.
pub const TX: u32 = 3;
/// The packet is redirected.
pub const REDIRECT: u32 = 4;

/// Returns the kernel's name of a verdict, or `None` if the number is no verdict.
pub fn name(verdict: u32) -> Option<&'static str> {
    const NAMES: [&str; 5] = ["XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX", "XDP_REDIRECT"];
    NAMES.get(verdict as usize).copied()
}
