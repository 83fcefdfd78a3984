// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared by all benches: running subjects in turn, reports and their formats, drawings, the
//! description of the machine, and network namespaces.

pub mod drawing;
pub mod folder;
pub mod histogram;
pub mod machine;
pub mod metrics;
pub mod namespace;
pub mod plot;
pub mod report;
mod rounds;

pub use report::Output;
pub use rounds::{Measurement, Subject, Work, alternate};
