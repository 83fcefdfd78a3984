// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared by all benches: measuring subjects in turn, what a result says and where it was measured,
//! tables, JSON lines, files and drawings of results, and network namespaces to measure in.

pub mod chart;
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
