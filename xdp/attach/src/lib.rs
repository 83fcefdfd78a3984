// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP programs that go on running between network interfaces.
//!
//! [`Running`] is a program at work. On the kernel ([`OnKernel`]) it is attached to interfaces, and
//! the kernel does with packets what it says. Everywhere else it is a [`Wire`]: packets are taken
//! from ports, an [`Engine`] runs the program on them, and what its verdict says is done here.
//! [`OneByOne`] is an engine that is done with a packet before it takes the next, in the
//! interpreter or on the model of the small processor; [`OnCard`] has many packets on the
//! simulated card at a time.
//!
//! A [`Worker`] goes on with a program until it is stopped, and carries out [`Request`]s meanwhile:
//! its maps are read and changed between two rounds of packets, on all targets in the same way.

#![forbid(unsafe_code)]

mod card;
mod counters;
mod devices;
mod engine;
mod error;
mod kernel;
mod one_by_one;
mod outputs;
mod request;
mod running;
mod statistics;
mod traffic;
mod wire;
mod worker;

pub use card::OnCard;
pub use engine::{Engine, Ran, Stop, Way};
pub use error::Error;
pub use kernel::{Mode, OnKernel, Place};
pub use one_by_one::OneByOne;
pub use outputs::{Host, Port};
pub use request::{OfXdp, Request};
pub use running::{Part, Running};
pub use statistics::{Count, Statistics};
pub use wire::Wire;
pub use worker::Worker;
