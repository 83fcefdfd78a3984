// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making processes.

use crate::next::next;
use crate::{opening, process};
use core::ffi::c_int;

/// `fork(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fork() -> libc::pid_t {
    process::check();
    opening::share_all();
    let child = next!(fork() -> libc::pid_t);
    match child {
        0 => process::check(),
        -1 => opening::unshare_all(),
        _ => {}
    }
    child
}

/// Whether both streams of a descriptor are in rings: for tests, and for programs that want to
/// know.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn freeport_is_accelerated(fd: c_int) -> c_int {
    let stream = opening::stream(fd);
    c_int::from(stream.is_some_and(|stream| {
        stream.go_on(fd);
        stream.shared.is(crate::connection::phase::LOOKS)
    }))
}
