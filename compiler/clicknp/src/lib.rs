// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ClickNP language: elements in a subset of C, connected by channels into a graph.

#![forbid(unsafe_code)]

pub mod ast;
pub mod config;
pub mod diagnostic;
pub mod driver;
pub mod format;
pub mod functions;
pub mod layouts;
pub mod lexer;
pub mod library;
pub mod lints;
pub mod load;
pub mod lower;
pub mod manual;
pub mod parser;
pub mod source;
pub mod spelling;
pub mod types;

pub use driver::{Compiled, CompiledFunction, Failure, Options};
pub use driver::{compile_file, compile_function, compile_text};
pub use functions::{CompiledFunctions, FileFunction};
pub use functions::{compile_functions_of_file, compile_functions_of_text};
