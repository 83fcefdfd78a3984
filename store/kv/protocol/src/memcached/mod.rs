// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The text and meta protocols of memcached 1.6.18.
//!
//! A [`Reader`] belongs to one connection. It is given the bytes received so far, and returns the
//! next request, which borrows from them, or the refusal that the original server would send. What
//! a request does is the server's matter; [`reply`] and [`meta_reply`] write the answers.
//!
//! ```
//! use freeport_kv_protocol::memcached::{Limits, Reader, Request, Step, reply};
//!
//! let mut reader = Reader::new(Limits::default());
//! let (received, mut answers) = (b"get first second\r\nversi", Vec::new());
//! let read = reader.read(received);
//! let Step::Request(Request::Get(get)) = read.step else { panic!("a retrieval") };
//! for key in get.keys {
//!     reply::value(&mut answers, key, 0, b"42", None);
//! }
//! reply::line(&mut answers, reply::Line::End);
//! assert!(answers.starts_with(b"VALUE first 0 2\r\n42\r\nVALUE second"));
//! // The second request is not complete: its line continues.
//! assert!(matches!(reader.read(&received[read.taken..]).step, Step::Wait { needs: 6 }));
//! ```

mod decimal;
mod error;
mod key;
mod meta;
pub mod meta_reply;
mod number;
mod reader;
pub mod reply;
mod request;
mod scan;
mod text;
mod words;

pub use error::{Error, Refusal};
pub use key::{KEY_BYTES_MAX, Key};
pub use meta::{Arithmetic, Meta};
pub use number::stored_number;
pub use reader::{LINE_BYTES, Limits, Read, Reader, Step};
pub use request::{Change, Expiry, Get, Operator, Request, Store, StoreMode};
pub use words::Words;
