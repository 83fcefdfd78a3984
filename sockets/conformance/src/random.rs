// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs of socket calls, which have to give the same with accelerated sockets as
//! without. Cases find what their writers thought of; these are for the rest.
//!
//! A seed gives a [program](Program): lines that a few processes and threads run one behind the
//! other (`interpreter/`). [`generate()`] knows roughly what each call does, so that calls make
//! sense, and nothing waits that is not woken; what calls give is found out by running the program
//! in the kernel. [`judge()`] does that, and compares; [`shrink()`] takes out of a program that
//! differs whatever it differs without.

mod actions;
mod generate;
mod judge;
mod processes;
mod program;
mod shrink;
mod waits;
mod world;

pub use generate::{generate, generate_in_turn};
pub use judge::{Interpreter, Transcript, Verdict, judge};
pub use program::Program;
pub use shrink::shrink;
pub use world::Reach;
