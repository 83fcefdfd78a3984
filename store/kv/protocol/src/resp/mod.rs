// SPDX-License-Identifier: Apache-2.0 OR MIT
//! RESP, the protocol of Redis, in versions 2 and 3. [`request`] reads requests of clients as the
//! server of Redis 7.2 does, [`reply`] writes replies, and [`value`] and [`value_reader`] are for
//! the other side: clients, tools and replicas. `docs/protocols/resp.md` describes the format.
//!
//! Readers are resumable. They are given the bytes that arrived, in any portions, and look at each
//! byte a bounded number of times.

pub mod error;
mod inline;
mod number;
pub mod reply;
pub mod request;
pub mod value;
pub mod value_reader;

pub use error::{ProtocolError, ValueError};
pub use reply::{Version, Writer};
pub use request::{Read, Request, RequestLimits, RequestReader};
pub use value::Value;
pub use value_reader::{ValueLimits, ValueProgress, ValueReader};
