// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hardware of the small processor (`hardware/sephirot`), simulated cycle by cycle with
//! Verilator.
//!
//! [`Nic`] is the card: a host's bus on one side, packets on the other, and a clock that advances
//! on request. [`Layout`] places an object's maps in its memory. [`Sim`] is an object on the card,
//! a [`Target`](freeport_xdp::Target) like the interpreter and the kernel. [`Moment`] records the
//! core's stages in a cycle, and [`Cycles`] attributes all cycles to causes.
//!
//! The card only exists with the feature `card`; without it neither Verilator nor a C++ compiler is
//! needed, and creating a card fails with an error that names the feature.

mod cycles;
#[cfg(feature = "card")]
mod ffi;
mod layout;
mod nic;
#[cfg(not(feature = "card"))]
mod no_card;
mod record;
mod sim;
mod watch;

#[cfg(feature = "card")]
use ffi::Card;
#[cfg(not(feature = "card"))]
use no_card::Card;

pub use cycles::{Cycles, RowCycles, SPENT_ON};
pub use layout::{Kind, Layout, MAPS_MAX, Placed, STAGING_BYTES};
pub use nic::{
    COUNTERS, Identity, MAP_HANDLES, MAP_REGION, Nic, NicError, SPENT, address, control,
};
pub use record::{Moment, Stamp, Tags};
pub use sim::Sim;
pub use watch::{Watcher, event};
