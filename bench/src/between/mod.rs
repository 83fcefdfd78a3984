// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measuring what goes between two processes of one machine: the processes and where they are, the
//! kernel's ways and the limits, rounds in turn, and what they gave.

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
