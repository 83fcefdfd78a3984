// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Targets for XDP objects that agree with each other: the same object, maps and packets in the
//! kernel, in the interpreter, and on the model of a small processor.
//!
//! A [`Target`] runs the programs of a loaded object on given packets, one by one, and keeps the
//! maps between them. [`Kernel`] is the running kernel, through libbpf and `BPF_PROG_TEST_RUN`, so
//! no network device is needed. [`scenario`] defines the tests of each program: entries of its
//! maps, and kinds of packets. [`Comparison`] runs the same on two targets and reports differences;
//! [`scenario::compare()`] does so for a scenario.

mod bare_program;
mod compare;
mod compile;
mod difference;
mod dump;
pub mod ended;
mod error;
mod hosted;
mod interpreter;
#[cfg(feature = "kernel")]
mod kernel;
mod loading;
mod native;
#[cfg(not(feature = "kernel"))]
mod no_kernel;
mod preparation;
mod profiles;
pub mod random_program;
pub mod scenario;
mod setting;
mod target;
mod times;
pub mod traffic;
mod vliw;

pub use bare_program::{object_of_bare, run_bare};
pub use compare::{Comparison, Disagreement, PacketDifference, Unsteady};
pub use compile::{compile, compiler};
pub use dump::{Dump, bytes_json};
pub use error::Error;
pub use hosted::{Executor, Hosted};
pub use interpreter::{Interpreter, Steps};
#[cfg(feature = "kernel")]
pub use kernel::{Kernel, RawProgram, RunTimes};
pub use loading::Loading;
pub use native::Native;
#[cfg(not(feature = "kernel"))]
pub use no_kernel::{Kernel, RawProgram, RunTimes};
pub use preparation::{MapSize, Variable, needed, prepare};
pub use profiles::Profiles;
pub use random_program::random_program;
pub use setting::{EntryName, NotASetting, Setting};
pub use target::{Arrival, Contents, Departure, InUserSpace, Target};
pub use times::{Runs, Timed};
pub use vliw::{Rows, Vliw};
