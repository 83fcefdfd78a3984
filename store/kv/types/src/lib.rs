// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Data types of a Redis server, apart from keys, commands and connections.
//!
//! Every type has two forms. The packed form is one byte string ([`packed`]), small enough that
//! the engine keeps it as a plain value. The large form is an owned structure, which a value takes
//! when it passes one of its [`Limits`], and then keeps while its key lives. Reading either form
//! copies nothing.

#![forbid(unsafe_code)]

pub mod corrupt;
pub mod entry;
pub mod limits;
pub mod number;
pub mod packed;
pub mod pattern;
pub mod stream;
pub mod varint;

pub use corrupt::Corrupt;
pub use entry::Entry;
pub use limits::Limits;
pub use packed::Packed;
pub use stream::{Stream, StreamError, StreamId, StreamRef};
