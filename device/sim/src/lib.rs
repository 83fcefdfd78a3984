// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The small processor's hardware (`hardware/sephirot`), simulated cycle by cycle by Verilator.
//!
//! [`Nic`] is the card: a host's bus on the one side, packets on the other, and a clock that goes
//! on when it is told to. [`Layout`] says where an object's maps lie in its memory. [`Sim`] is an
//! object on the card, as [`Target`](freeport_xdp::Target) like the interpreter and the kernel.
//! [`Moment`] is what the core's stages do in a cycle, and [`Cycles`] says where all of them go.

mod cycles;
mod ffi;
mod layout;
mod nic;
mod sim;
mod watch;

pub use cycles::{Cycles, RowCycles, SPENT_ON};
pub use ffi::{Moment, Stamp, Tags};
pub use layout::{Kind, Layout, MAPS_MAX, Placed, STAGING_BYTES};
pub use nic::{COUNTERS, Identity, MAP_HANDLES, MAP_REGION, Nic, SPENT, Stuck, address, control};
pub use sim::Sim;
pub use watch::{Watcher, event};
