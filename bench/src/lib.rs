// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The measuring harness: Freeport and its peers do the same work in turn on the same machine.

pub mod harness;
pub mod kernel;
pub mod machine;
pub mod plot;
pub mod report;
