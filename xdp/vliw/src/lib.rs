// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP programs for a small processor with several lanes (hXDP's Sephirot): eBPF in, rows of
//! [operations](operation) out. `docs/internals/vliw.md` says what the processor does.
//!
//! A program's way: `lower` makes blocks of operations, and passes change them while each register
//! is still that of the program. `passes/superblocks` says which blocks are scheduled as one,
//! `number` makes regions of those, where each result is a value, and the other passes work on
//! these. `schedule` fills rows with them and chooses registers meanwhile, and `layout` puts rows
//! in their order, which is an [`image::Image`]. `analysis` has the facts about regions that both
//! the passes and the scheduler read.
//!
//! [`check`] knows nothing of all that, and says whether an image keeps the rules and does what its
//! program does. [`model`] executes images, [`encode`] makes bytes of them, [`report`] and [`svg`]
//! show them, and [`fate`] says what became of single instructions.

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
