// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The contract between the preloaded library and the monitor of accelerated sockets: the
//! [messages](message) between them, the layout of a connection's rings in a [slab] of shared
//! memory, and the [reasons](Reason) for which a connection stays in the kernel.
//!
//! The crate allocates nothing, makes no system call and does not panic.
//!
//! **How a stream leaves the kernel.** Two processes have a connection that the kernel made as
//! usual: the *underlay*. Each end uses it unchanged until enough traffic justifies acceleration.
//! 1. A process *claims* its end: it sends a request to the monitor, with the descriptor.
//! 2. When both ends are claimed, the monitor gives both processes a slab, if they have none with a
//!    free slot, and the number of a slot in it.
//! 3. A process that has mapped the slab sets a flag in the slot: it is *attached*. It marks itself
//!    as sleeping on the ring, because it does not look there yet.
//! 4. A process whose peer is attached *switches* with its next operation: it publishes the number
//!    of bytes it has sent through the kernel, and sends no more of them. From then on it sends
//!    through the ring.
//! 5. A receiver first reads the bytes sent through the kernel, then those in the ring.
//!
//! After that the underlay carries only *doorbells*, single bytes that wake a thread sleeping in
//! any of the kernel's own calls, and the end of the stream: if a process dies, the kernel closes
//! the underlay.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod message;
mod reason;
pub mod slab;

pub use reason::Reason;

/// Version of everything in this crate. Library and monitor work together only if it is equal.
pub const VERSION: u32 = 7;

/// Environment variable that holds the path at which the monitor listens.
pub const MONITOR_VARIABLE: &str = "FREEPORT_MONITOR";
