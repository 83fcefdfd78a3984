// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The batched protocol, which carries many small operations in a packet (KV-Direct, "client-side
//! batching" and "vector operations"). `docs/protocols/kv-batch.md` describes the format.
//!
//! A server parses a [`Header`], decodes the payload into [`Operations`] before it executes
//! anything, and appends its replies with a [`ReplyWriter`]. A client appends operations with a
//! [`PacketWriter`], and reads replies with a [`ReplyReader`]. None of them knows sockets.

mod decode;
mod function;
mod header;
mod hello;
mod operation;
mod packet;
mod reply;
mod reply_reader;

pub use decode::{Malformed, Operations, Reason};
pub use function::{FunctionEntry, FunctionKind, read_functions, write_function};
pub use header::{HEADER_BYTES, HEADER_BYTES_MAX, Header, HeaderError, Refusal, TOKEN_BYTES};
pub use hello::{Hello, HelloReply};
pub use operation::{Opcode, Operation};
pub use packet::{PacketLimits, PacketWriter, Refused};
pub use reply::{ReplyLimits, ReplyWriter, Status, write_error};
pub use reply_reader::{MalformedReply, Reply, ReplyReader};
