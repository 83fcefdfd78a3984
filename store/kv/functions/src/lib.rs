// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions on values of the key-value engine: scalars, and vectors of equal elements
//! (KV-Direct, table of operations).
//!
//! A value is a byte string. A function reads it as an array of [`Element`]s, which are
//! little-endian and need no alignment. There are three kinds of functions:
//!
//! - an [`Update`] replaces elements, `f(v, delta) -> v`, and can return the originals;
//! - a [`Reduce`] folds all elements into one number, `f(v, sigma) -> sigma`;
//! - a [`Filter`] returns the elements for which a condition holds, `f(v) -> bool`.
//!
//! A request names its function by an id of one byte and its element by a code. The [`Registry`]
//! resolves the id, to a built-in function or to a [`UserFunction`], and is complete before the
//! first request (KV-Direct, operations: functions are compiled beforehand).
//!
//! Every function is total: it has a defined result for all bits of its arguments, and the same
//! bits on every machine. Three rules make floating point deterministic:
//!
//! - Arithmetic rounds to nearest, each operation separately. A result that is not a number is the
//!   positive quiet NaN without payload.
//! - Minimum and maximum keep the element they have unless the other compares less or greater.
//!   Comparisons with NaN are false, and -0.0 equals 0.0.
//! - A reduction of floats has a fixed order of 16 lanes; see [`Reduce`].
//!
//! ```
//! use freeport_kv_functions::{Deltas, Element, Registry};
//!
//! let registry = Registry::built_in();
//! let mut value = [1_u32, 2, u32::MAX].map(u32::to_le_bytes).concat();
//! let delta = 10_u32.to_le_bytes();
//!
//! let add = registry.update(3)?;
//! add.vector(Element::U32, &mut value, Deltas::Same(&delta), None)?;
//! assert_eq!(value, [11_u32, 12, 9].map(u32::to_le_bytes).concat());
//!
//! let sum = registry.reduce(32)?.fold(Element::U32, &value, &100_u64.to_le_bytes())?;
//! assert_eq!(sum.to_string(), "132");
//! # Ok::<(), freeport_kv_functions::Error>(())
//! ```

#![deny(unsafe_code)]

mod compact;
mod element;
mod error;
mod filter;
mod loops;
mod number;
mod operands;
mod reduce;
mod registry;
mod scalar;
mod update;
mod user;
mod user_function;
mod widest;

pub use element::Element;
pub use error::{Error, RefusedFunction};
pub use filter::Filter;
pub use operands::Operands;
pub use reduce::Reduce;
pub use registry::{Function, Kind, Registry, RegistryBuilder, Signature};
pub use scalar::{Scalar, ScalarError};
pub use update::{Deltas, Update};
pub use user::User;
pub use user_function::UserFunction;
pub use widest::keep_flagged;
