// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of native code. They are one test binary, so that they are linked once and run in
//! parallel.

mod build;
mod by_reference;
mod clock;
mod generated;
mod graphs;
mod kernels;
mod many_instances;
mod methods;
mod operations;
mod packets;
mod random_graphs;
mod replay;
mod tables;
mod watchdog;
