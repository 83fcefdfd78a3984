// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What programs may ask this library.

use crate::handing;
use crate::reuse;
use crate::state::table;
use core::ffi::c_int;

/// Whether both streams of a descriptor are in rings: for tests, and for programs that want to
/// know.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn freeport_is_accelerated(fd: c_int) -> c_int {
    let stream = table::stream(fd);
    c_int::from(stream.is_some_and(|stream| {
        stream.go_on(fd);
        stream.shared.is(crate::state::connection::phase::LOOKS)
    }))
}

/// How many connections this process has made, or accepted, without a new stream of the kernel: for
/// tests, and for programs that want to know.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn freeport_reused_connections() -> u64 {
    reuse::reused()
}

/// Brings a connection back into the kernel, for a program that hands its descriptor on in a way
/// that this library does not see. 1: that is where it is; 0: the peer is gone, and has left
/// something that can only be read by this process.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn freeport_bring_back(fd: c_int) -> c_int {
    c_int::from(table::stream(fd).is_none_or(|stream| handing::comes_back(&stream, fd)))
}
