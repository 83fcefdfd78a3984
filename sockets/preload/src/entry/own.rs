// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What programs may ask this library.

use crate::opening;
use core::ffi::c_int;

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
