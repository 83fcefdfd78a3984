// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of the library's own for programs that look them up.

use crate::handing;
use crate::reuse;
use crate::state::table;
use core::ffi::c_int;

/// Whether both streams of a descriptor are in rings.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn freeport_is_accelerated(fd: c_int) -> c_int {
    let stream = table::stream(fd);
    c_int::from(stream.is_some_and(|stream| {
        stream.proceed(fd);
        stream.shared.is(crate::state::connection::phase::LOOKS)
    }))
}

/// Number of connections that this process has made or accepted without a new stream of the kernel.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn freeport_reused_connections() -> u64 {
    reuse::reused()
}

/// Brings a connection back into the kernel, for a program that passes its descriptor on in a way
/// that the library does not see. 1: it is in the kernel; 0: the peer is gone, and has left bytes
/// that only this process can read.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn freeport_bring_back(fd: c_int) -> c_int {
    c_int::from(table::stream(fd).is_none_or(|stream| handing::comes_back(&stream, fd)))
}
