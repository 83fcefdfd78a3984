// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The text form of programs: for goldens, for reading what a pass did, and for programs written
//! by hand. [`print()`] and [`parse()`] are inverse: every part of a [`Program`](crate::Program)
//! has a spelling, indexes and locations included. `docs/reference/ir.md` describes it.
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

/// What is wrong with a text, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The line itself.
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
