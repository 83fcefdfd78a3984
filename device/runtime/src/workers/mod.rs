// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program on several workers (ClickNP 3.1, 3.3): the graph is partitioned as an operator
//! specifies, each part runs on a thread of its own, and rings connect them.
//! `docs/internals/native.md` describes how.

mod cores;
mod crew;
mod device;
mod partition;
mod replicas;
mod run;
mod steer;
#[cfg(test)]
mod tests;

pub use device::WorkersDevice;
pub use partition::{Link, Part, Partition};
pub use replicas::Replicas;
