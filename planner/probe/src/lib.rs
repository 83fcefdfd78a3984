// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Micro-benchmarks of the fabric between two processes of this machine, and a profile of the
//! machine from them.
//!
//! A [`requester`] measures a [`Point`]: an operation, its payload, batch, range of addresses and
//! number of threads. It works over any [`Endpoint`](freeport_fabric::Endpoint); a [`partner`] is
//! the process on the other side, over shared memory. [`measure()`] visits all points in turn,
//! several times. [`fit()`] solves for the parameters of a
//! [`Machine`](freeport_plan_model::local::Machine), and [`check()`] holds estimates against points
//! that were not fitted.

#![deny(unsafe_code)]

pub mod check;
pub mod csv;
pub mod error;
pub mod fit;
pub mod host;
pub mod measure;
pub mod meeting;
mod memory;
pub mod partner;
pub mod point;
pub mod points;
pub mod requester;
pub mod responder;
pub mod sample;

pub use check::{Check, Compared, Group, check};
pub use error::Error;
pub use fit::fit;
pub use host::Host;
pub use measure::{Settings, measure};
pub use partner::respond;
pub use point::{Kind, Mode, Point};
pub use points::{Points, points};
pub use sample::Sample;
