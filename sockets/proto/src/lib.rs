// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the preloaded library and the monitor of accelerated sockets have to agree on: the
//! [messages](message) between them, where in a [slab] of shared memory a connection's rings
//! are, and the [reasons](Reason) for which a connection stays in the kernel.
//!
//! Nothing is allocated, no system is called and nothing panics.
//!
//! **How a stream leaves the kernel.** Two processes have a connection, made by the kernel as
//! always: the *underlay*. Each end is used as it is until it has proved to be worth more.
//! 1. A process *claims* its end: it tells the monitor, and shows the descriptor.
//! 2. When both ends are claimed, the monitor gives both processes a slab, if they have none with
//!    room, and the number of a slot in it.
//! 3. A process that has mapped it says so in the slot: it is *attached*. It announces itself as
//!    sleeping on the ring, because that is what it is until it looks there.
//! 4. A process whose peer is attached *switches* with its next operation: it says how many bytes
//!    it has sent through the kernel, and sends no more of them. What it sends from then on is in
//!    the ring.
//! 5. A receiver takes from the kernel what was sent there, and then from the ring.
//!
//! From then on the underlay carries nothing but *doorbells*, single bytes that wake who sleeps in
//! any of the kernel's own calls, and the end: if a process dies, the kernel closes it.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod message;
mod reason;
pub mod slab;

pub use reason::Reason;

/// The version of all that is in this crate: only equals talk to each other.
pub const VERSION: u32 = 7;

/// The variable of the environment that says where the monitor listens.
pub const MONITOR_VARIABLE: &str = "FREEPORT_MONITOR";
