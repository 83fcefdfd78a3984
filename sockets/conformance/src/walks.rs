// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Walks of two ends in lockstep: each step is one call at one end of a connection, and after each
//! step the state of both ends is traced (`walks/walk.h`). All orders of a few calls, and random
//! walks of many, must have equal traces with accelerated sockets and without.
//!
//! A [`Walk`] is a line of text, so that a differing walk can be run again by a command.

mod generate;
mod judge;
mod walk;

pub use generate::{all_orders, random_walk};
pub use judge::{Difference, Verdict, Walker};
pub use walk::{Trace, Walk};
