// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a program decides about its packet, with the kernel's numbers (`enum xdp_action`).

/// Dropped, because the program failed.
pub const ABORTED: u32 = 0;
/// Dropped.
pub const DROP: u32 = 1;
/// Passed on to the machine.
pub const PASS: u32 = 2;
/// Sent back where it came from.
pub const TX: u32 = 3;
/// Sent elsewhere.
pub const REDIRECT: u32 = 4;

/// The kernel's name of a verdict, if it is one.
pub fn name(verdict: u32) -> Option<&'static str> {
    const NAMES: [&str; 5] = ["XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX", "XDP_REDIRECT"];
    NAMES.get(verdict as usize).copied()
}
