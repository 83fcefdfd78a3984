// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effective user and group of this process.

use super::raw::call;

/// The effective user.
pub fn user() -> u32 {
    // SAFETY: no memory is passed.
    unsafe { call(libc::SYS_geteuid, [0; 6]) as u32 }
}

/// The effective group.
pub fn group() -> u32 {
    // SAFETY: no memory is passed.
    unsafe { call(libc::SYS_getegid, [0; 6]) as u32 }
}
