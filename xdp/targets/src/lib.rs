// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP objects on targets that agree: the same object, the same maps, the same packets, in the
//! kernel, in the interpreter, and on the model of a small processor.
//!
//! A [`Target`] runs the programs of a loaded object on packets that it is given, one after the
//! other, and keeps the maps between them. [`Kernel`] is the machine's own kernel by way of libbpf
//! and `BPF_PROG_TEST_RUN`, so that no network device is needed. [`scenario`] has what a program is
//! given to do in tests: entries of its maps, and packets that it knows. [`Comparison`] gives two
//! targets the same and says where they part; [`scenario::compare()`] does so with a scenario.

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
