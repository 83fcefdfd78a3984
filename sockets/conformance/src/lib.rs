// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The conformance suite of accelerated sockets: small C programs (`programs/*.c`) that do with
//! sockets what applications do, and write down what every call returned. A [case](Case) is run
//! plain and with the library loaded in front of it, and both transcripts have to be the same.
//!
//! A comparison of two runs in the kernel would prove nothing, so cases say whether they are about
//! upgraded connections, and the programs report whether they were.

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
