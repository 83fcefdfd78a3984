// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP programs for a small processor with several lanes (hXDP's Sephirot): eBPF in, rows of
//! [operations](operation) out.

mod blocks;
pub mod check;
mod compile;
pub mod encode;
pub mod image;
mod layout;
mod lower;
pub mod machine;
mod memory;
pub mod model;
mod number;
pub mod operation;
mod options;
mod passes;
mod profile;
mod region;
pub mod report;
mod schedule;
pub mod svg;

pub use compile::{compile, compile_analysed, compile_profiled};
pub use lower::Unsupported;
pub use options::{Options, PASSES};
pub use profile::Profile;
