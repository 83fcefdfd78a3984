// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

mod batches;
mod cluster;
mod failures;
mod known;
mod lossy;
mod model;
mod real;
mod server;
