// SPDX-License-Identifier: Apache-2.0 OR MIT
//! User functions of the key-value store, written in the ClickNP language (KV-Direct, operations:
//! functions are compiled and registered before the store starts, and requests name their id).
//!
//! A file holds functions at its top level. The parameters of a function say how the store applies
//! it to the elements `v` of a value, `T` being an integer of 8, 16, 32 or 64 bits:
//!
//! | kind | function |
//! |---|---|
//! | update | `T f(T v)`, `T f(T v, T delta)`, `T f(T v, T low, T high)`, ... |
//! | reduction | `ulong f(T v, ulong sigma)`, or `long` twice |
//! | filter | `bool f(T v)`, `bool f(T v, T operand)`, ... |
//!
//! `template <T>` before it registers it for all eight types of elements. `inline` functions are
//! not registered; the others call them.
//!
//! A registered function is total and pure: it has a result for all arguments, the same each time.
//! The operations of the language have a result for all operands. What remains is refused: state,
//! the clock, chance, and loops that are not proven to end.
//!
//! ```
//! use freeport_kv_compiled::{Options, compile_text};
//! use freeport_kv_functions::{Deltas, Element};
//!
//! let text = "template <T> T halve(T v, T least) { return v / 2 > least ? v / 2 : least; }";
//! let registry = compile_text("halve.cnp", text, &Options::interpreted())?.registry;
//! let mut values = [9_u16, 3, 1].map(u16::to_le_bytes).concat();
//! let least = 2_u16.to_le_bytes();
//! let halve = registry.update(128).expect("the first function of a user");
//! halve.vector(Element::U16, &mut values, Deltas::Same(&least), None).expect("whole elements");
//! assert_eq!(values, [4_u16, 2, 2].map(u16::to_le_bytes).concat());
//! # Ok::<(), freeport_kv_compiled::Refused>(())
//! ```

#![forbid(unsafe_code)]

mod code;
mod compile;
mod counters;
mod interpreted;
mod options;
mod shape;
mod total;

pub use compile::{Compiled, compile_files, compile_text};
pub use options::{Code, Options};

/// A file that was refused: errors with file, line, column and reason, as they are shown to the
/// user.
pub use freeport_clicknp::Failure as Refused;
