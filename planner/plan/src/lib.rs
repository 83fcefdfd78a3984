// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans for functions on machines whose NIC has a processor of its own: which alternatives serve
//! which share of the calls, what is expected of them, and why.
//!
//! A [`function`] has alternatives, each a sequence of steps of the model. A [`cost`] is what a
//! call takes of each resource. [`rules`] change an alternative where the profile says that it
//! helps and the [`constraints`] allow it. [`plan()`] ranks alternatives and fills the machine with
//! them in that order (off-path SmartNIC study, 3.3); a [`queue`] says what a number of clients
//! gets, and [`simulation`] runs a plan. [`explain`] is the reasons as a text, and [`placement`]
//! the settings for services.

#![forbid(unsafe_code)]

pub mod constraints;
pub mod cost;
pub mod explain;
pub mod figures;
pub mod file;
pub mod function;
pub mod load;
pub mod placement;
pub mod plan;
pub mod queue;
pub mod rules;
pub mod simulation;
pub mod switch;

pub use cost::Cost;
pub use file::FileError;
pub use function::{Alternative, Constraints, Criterion, Function};
pub use plan::{Plan, PlanError, plan};
