// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Native code for packet programs: emits C from the intermediate representation, compiles it to a
//! shared object with clang, loads it, and runs it on the host's frames.
//!
//! [`build`] makes an [`Image`] of a program, [`Graph::load`] loads it as a running graph, and
//! [`Graph::run`] passes frames and records through it. `docs/internals/native.md` describes how
//! the code works.

mod abi;
mod compile;
mod emit;
mod error;
mod function;
mod graph;
mod inside;
mod io;
mod kernel;
mod kernels;
mod library;
pub mod manifest;
mod memory;
mod method_calls;
mod options;
pub mod own;
mod recording;
mod status;
mod tables;
mod transfer;
mod transparency;

pub use compile::{Image, build, build_functions, emit};
pub use error::Error;
pub use function::{Functions, Returned, build_function};
pub use graph::{Counters, Graph, OutputCounters, ProbeEvent};
pub use inside::LoosePacket;
pub use io::{Buffer, Buffers, EndpointIo, Frame, Placed};
pub use kernel::KernelKind;
pub use kernels::Kernels;
pub use manifest::Manifest;
pub use options::Options;
pub use status::RunStatus;
pub use transfer::{BegunFrame, LooseItem, Place};
