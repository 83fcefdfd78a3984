// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data types of a Redis server, apart from keys, commands and connections.
//!
//! Every type has two forms. The packed form is one byte string ([`packed`]), small enough that
//! the engine keeps it as a plain value. The large form is an owned structure, which a value takes
//! when it passes one of its [`Limits`], and then keeps while its key lives. Reading either form
//! copies nothing.

#![forbid(unsafe_code)]

mod big;
pub mod bitfield;
pub mod bits;
pub mod corrupt;
pub mod entry;
pub mod extended;
pub mod geo;
pub mod hash;
mod hashing;
pub mod hyperloglog;
pub mod indexes;
pub mod lcs;
pub mod limits;
pub mod list;
pub mod number;
pub mod packed;
pub mod pattern;
pub mod random;
pub mod set;
pub mod stream;
pub mod table;
pub mod text;
pub mod varint;
pub mod zset;

pub use corrupt::Corrupt;
pub use entry::Entry;
pub use extended::Extended;
pub use hash::{Hash, HashRef};
pub use limits::Limits;
pub use list::{List, ListRef};
pub use packed::Packed;
pub use set::{Set, SetRef};
pub use stream::{Stream, StreamError, StreamId, StreamRef};
pub use table::Table;
pub use zset::{ZSet, ZSetRef};
