// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program on several workers (ClickNP 3.1, 3.3): the graph is cut where an operator says so,
//! each part runs on a thread of its own, and rings join them. `docs/internals/native.md` tells
//! how.

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
