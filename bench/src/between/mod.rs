// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measurements between two processes of one machine: the processes and their placement, the
//! kernel's channels and the limits, rounds in turn, and results.

pub mod aims;
pub mod channel;
pub mod content;
pub mod desk;
pub mod limits;
pub mod measure;
pub mod placement;
pub mod plot;
pub mod processes;
pub mod results;
pub mod rounds;
pub mod shared;
pub mod wait;
