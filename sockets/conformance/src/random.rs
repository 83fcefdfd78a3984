// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs of socket calls, whose results must be equal with accelerated sockets and
//! without. Cases cover what their authors thought of; random programs cover the rest.
//!
//! A seed determines a [program](Program): lines that several processes and threads execute one
//! after the other (`interpreter/`). [`generate()`] has a rough model of each call, so that calls
//! make sense and every blocking call is woken; the results are determined by running the program
//! in the kernel. [`judge()`] runs and compares; [`shrink()`] removes from a differing program
//! everything that the difference does not need.

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
