// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The text form of programs: for golden tests, for inspecting the result of a pass, and for
//! hand-written programs. [`print()`] and [`parse()`] are inverse: every part of a
//! [`Program`](crate::Program) has a spelling, indexes and locations included.
//! `docs/reference/ir.md` describes it.
//!
//! ```text
//! element Count {
//!   in in: flit
//!   out out: flit
//!   reg count: bits<64>[1] visible
//!   handler {
//!     entry:
//!       %flit = take in
//!       %is_first = extract %flit[256 +: 1]
//!       put out, %flit
//!       br %is_first, add, end
//!     add:
//!       %zero = const 0:1
//!       %old = load count[%zero]
//!       %one = const 1:64
//!       %new = add %old, %one
//!       store count[%zero], %new
//!       jump end
//!     end:
//!       done
//!   }
//! }
//! ```

mod body;
mod cursor;
mod lex;
mod ops;
mod parse;
mod parse_graph;
mod parse_pipeline;
mod print;
mod print_function;
mod print_pipeline;
mod resolve;
mod spelling;

pub use parse::parse;
pub use parse_pipeline::parse_pipeline;
pub use print::print;
pub use print_pipeline::print_pipeline;

use std::fmt;

/// A syntax error and its position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ParseError {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Description of the error.
    pub message: String,
    /// Text of the line.
    pub source_line: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { line, column, message, source_line } = self;
        writeln!(f, "{line}:{column}: {message}")?;
        writeln!(f, "{line:5} | {source_line}")?;
        write!(f, "      | {:>column$}", "^")
    }
}
