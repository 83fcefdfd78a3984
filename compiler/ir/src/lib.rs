// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The intermediate representation (IR) of packet programs.
//!
//! Every front end lowers to it and every back end starts from it. A [`Program`] holds functions in
//! control-flow form, element types, and the graph of their instances. The interpreter defines its
//! meaning.

#![forbid(unsafe_code)]

pub mod analysis;
mod bits;
mod builder;
pub mod channel_log;
pub mod flit;
pub mod generate;
mod ids;
pub mod interp;
mod op;
pub mod oracle;
pub mod passes;
mod program;
mod program_ref;
pub mod schedule;
mod table_shape;
mod term;
pub mod text;
mod types;
pub mod typing;
mod verify;

pub use bits::Bits;
pub use builder::Builder;
pub use ids::*;
pub use op::*;
pub use program::*;
pub use program_ref::ProgramRef;
pub use table_shape::TableShape;
pub use term::*;
pub use types::*;
pub use verify::{VerifyError, verify};
