// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles XDP programs for a small processor with several lanes (hXDP's Sephirot): from eBPF to
//! rows of [operations](operation). `docs/internals/vliw.md` describes the processor.
//!
//! `lower` translates a program to blocks of operations, and the first passes transform these while
//! registers are still those of the program. `passes/superblocks` selects blocks that are scheduled
//! together, `number` makes regions of them, in which each result is a value, and the other passes
//! transform the regions. `schedule` fills rows with their operations and allocates registers, and
//! `layout` orders the rows, which form an [`image::Image`]. `analysis` has the facts about regions
//! that both the passes and the scheduler use.
//!
//! [`check`] is independent of these stages: it verifies that an image obeys the rules and is
//! equivalent to its program. [`model`] executes images, [`encode`] encodes them to bytes,
//! [`report`] and [`svg`] show them, and [`fate`] reports the fate of single instructions.

#![forbid(unsafe_code)]

mod analysis;
mod blocks;
pub mod check;
mod compile;
pub mod encode;
pub mod fate;
pub mod image;
mod layout;
mod local_helpers;
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
pub use freeport_ebpf::interpreter::Unsupported;
pub use local_helpers::with_local_helpers;
pub use options::{Options, PASSES};
pub use profile::Profile;
