// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP programs that run between network interfaces until they are stopped.
//!
//! [`Running`] is a running program. In the kernel ([`OnKernel`]) it is attached to interfaces, and
//! the kernel carries out its verdicts. Everywhere else it is a [`Wire`], which takes packets from
//! ports, has an [`Engine`] run the program on them, and carries out the verdicts itself.
//! [`OneByOne`] is an engine that finishes a packet before it takes the next, in the interpreter or
//! on the model of the small processor; [`OnCard`] has many packets on the simulated card at a
//! time.
//!
//! A [`Worker`] runs a program until it is stopped and carries out [`Request`]s: between two rounds
//! of packets it reads and changes the maps, in the same way on all targets.

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
