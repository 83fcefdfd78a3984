// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The conformance suite of accelerated sockets: small C programs (`programs/*.c`) that use sockets
//! like applications do, and record what every call returned. A [case](Case) runs plain and with
//! the library preloaded, and both transcripts must be equal.
//!
//! A comparison of two runs in the kernel would prove nothing, so cases declare whether they need
//! upgraded connections, and the programs report whether connections were upgraded.

mod case;
mod coverage;
mod difference;
mod programs;
pub mod random;
mod run;
pub mod walks;

pub use case::{Case, Over, Runs, flag};
pub use coverage::{COLUMNS, How, Row, exported, rows};
pub use difference::difference;
pub use programs::{Program, compile, compile_folder};
pub use run::{Effort, Failure, Preload, Report, compare};
