// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whose rights this process has.

use super::raw::call;

/// The user.
pub fn user() -> u32 {
    // SAFETY: no memory is passed.
    unsafe { call(libc::SYS_geteuid, [0; 6]) as u32 }
}

/// The group.
pub fn group() -> u32 {
    // SAFETY: no memory is passed.
    unsafe { call(libc::SYS_getegid, [0; 6]) as u32 }
}
