// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A calibrated model of hosts, NICs and their processors: which path a request takes, how long it
//! takes there, how many fit, and which resource is the limit.
//!
//! The model follows the study of off-path SmartNICs (OSDI 2023): a [`profile`] has the parameters
//! of a device, a [`route`] the stages of a request, the [`simulator`] lets requests compete for
//! the stages' resources, and [`bounds`] has the limits that no simulation exceeds. [`local`] has
//! the profile of a machine that was measured, and estimates of its path over shared memory.

#![forbid(unsafe_code)]

pub mod bounds;
pub mod calibrate;
pub mod estimate;
pub mod local;
pub mod parameters;
pub mod path;
pub mod profile;
pub mod route;
pub mod simulator;
pub mod study;
pub mod sweep;

pub use estimate::{Estimate, EstimateError, estimate, estimate_load, estimate_mix};
pub use path::{Operation, Path, Side};
pub use profile::{Profile, ProfileError};
pub use route::Request;
pub use simulator::{Load, Outcome, simulate};
