// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The link over which a server follows the log of another. `docs/protocols/kv-replication.md`
//! describes the format.
//!
//! The follower sends the command `KV.FOLLOW`. After it, both sides send [`Frame`]s. A
//! [`FrameReader`] collects the bytes of a frame from a stream; [`Frame::decode`] reads one that is
//! in memory.

mod decode;
mod frame;
mod reader;

pub use decode::{Header, Malformed};
pub use frame::{ANSWER_BYTES_MAX, Frame, HEADER_BYTES, MAX_ITEMS_BYTES, MAX_TEXT_BYTES, VERSION};
pub use reader::{FrameReader, ReadError};
