// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations between the places of a study: reads and writes of another place's memory, messages
//! and their answers, and work of cores.
//!
//! A study is written once, as tasks that are generic over [`Verbs`].
//!
//! - [`simulated`] runs them on the machine of the planner's model, with simulated time and random
//!   deaths of places. Every run with the same seed is the same there.
//! - [`fabric`] runs each place as a process of this machine, in real time.

#![deny(unsafe_code)]

pub mod counted;
pub mod fabric;
pub mod fault;
mod inbox;
pub mod place;
pub mod simulated;
pub mod tasks;
pub mod verbs;

pub use counted::{Counted, Counts};
pub use fault::Fault;
pub use place::{Address, Place, Way};
pub use verbs::{Call, Memory, Stable, Verbs};
