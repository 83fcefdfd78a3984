// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The small processor's hardware (`hardware/sephirot`), simulated cycle by cycle by Verilator.
//!
//! [`Nic`] is the card: a host's bus on the one side, packets on the other, and a clock that goes
//! on when it is told to. [`Layout`] says where an object's maps lie in its memory. [`Sim`] is an
//! object on the card, as [`Target`](freeport_xdp::Target) like the interpreter and the kernel.
//! [`Moment`] is what the core's stages do in a cycle, and [`Cycles`] says where all of them go.
//!
//! Only with the feature `card` there is a card; without it neither Verilator nor a C++ compiler is
//! needed, and whoever asks for a card is told so.

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
