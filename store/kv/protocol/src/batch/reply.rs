// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing replies.

use super::header::{HEADER_BYTES, Header};
use super::reply_reader::Reply;

/// Bits of the first byte that are the status.
pub(super) const STATUS: u8 = 0x0f;
/// The value is as long as the last one.
pub(super) const SAME_SIZE: u8 = 1 << 4;
/// There is a value.
pub(super) const HAS_VALUE: u8 = 1 << 5;
/// The length has four bytes.
pub(super) const WIDE: u8 = 1 << 7;

/// Result of an operation. All but the first two have a text for people as their value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// The operation was executed.
    Done = 0,
    /// There is no such key.
    NotFound = 1,
    /// Memory is full; nothing was changed.
    OutOfMemory = 2,
    /// The key has a value of another type.
    WrongType = 3,
    /// The function refused its operands or the value.
    Refused = 4,
    /// There was no hello, or the user does not have the right.
    Denied = 5,
    /// Not now: the server cannot keep changes (its disk is full, or fails), or a node of a cluster
    /// is loading, has no lease, or no node has the slot. Nothing was changed.
    Unavailable = 6,
    /// Any other error.
    Failed = 7,
    /// Another node of the cluster has the key: `SLOT HOST:PORT` names the slot and the node's
    /// address for the batched protocol over TCP, or `SLOT ` if it has none. Nothing was changed.
    Moved = 8,
}

impl Status {
    /// All statuses, in the order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Done,
        Self::NotFound,
        Self::OutOfMemory,
        Self::WrongType,
        Self::Refused,
        Self::Denied,
        Self::Unavailable,
        Self::Failed,
        Self::Moved,
    ];

    /// The status with this code.
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The operation failed, and the value is a text.
    #[inline]
    pub fn is_error(self) -> bool {
        !matches!(self, Self::Done | Self::NotFound)
    }
}

/// How large replies may become, so that a short request cannot ask for more than the server has
/// memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Bytes of one value.
    pub value_bytes: usize,
    /// Bytes of a packet with its header. Replies without a value may exceed them.
    pub packet_bytes: usize,
}

impl Default for ReplyLimits {
    /// 1 GiB each.
    fn default() -> Self {
        Self { value_bytes: 1 << 30, packet_bytes: 1 << 30 }
    }
}

/// Text of [`Status::Failed`] in place of a value that is too long.
const TOO_LONG: &[u8] = b"the reply does not fit in a packet";

/// Appends a packet of replies to a buffer, which is given to each call. Other bytes may not be
/// appended between [`begin`](Self::begin) and [`finish`](Self::finish).
///
/// A value that exceeds a limit is not copied: the reply is [`Status::Failed`] with a text, or
/// without one if that does not fit either. An operation that changes something asks
/// [`fits`](Self::fits) before it does.
#[derive(Clone, Debug)]
pub struct ReplyWriter {
    /// Where the packet begins in the buffer.
    start: usize,
    /// Longest value.
    value_limit: usize,
    /// Where the buffer ends at most.
    end_limit: usize,
    batch: u32,
    first: u16,
    count: u16,
    /// Length of the last value; longer than any before the first one.
    last_value_bytes: usize,
}

impl ReplyWriter {
    /// Most bytes that a reply takes beside its value.
    pub const OVERHEAD_BYTES: usize = 5;

    /// Begins a packet behind the bytes of the buffer. `first` is the number of its first reply: 0
    /// unless replies are divided.
    #[inline]
    pub fn begin(into: &mut Vec<u8>, batch: u32, first: u16, limits: ReplyLimits) -> Self {
        let start = into.len();
        into.extend_from_slice(&[0; HEADER_BYTES]);
        // Lengths and payloads have four bytes, and replies without a value exceed the limit.
        let value_limit = limits.value_bytes.min(u32::MAX as usize);
        let end_limit = start + limits.packet_bytes.min(1 << 31);
        let (count, last_value_bytes) = (0, usize::MAX);
        Self { start, value_limit, end_limit, batch, first, count, last_value_bytes }
    }

    /// Number of replies in the packet.
    #[inline]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Bytes of the packet as it is now.
    #[inline]
    pub fn bytes(&self, into: &[u8]) -> usize {
        into.len() - self.start
    }

    /// A value of this length is not longer than the limits allow.
    #[inline(always)]
    pub fn fits(&self, into: &[u8], value_bytes: usize) -> bool {
        value_bytes <= self.value_limit
            && into.len() + Self::OVERHEAD_BYTES + value_bytes <= self.end_limit
    }

    /// Bytes that a reply with a value of this length takes now.
    #[inline]
    pub fn bytes_of_value(&self, value_bytes: usize) -> usize {
        let length = match value_bytes {
            _ if value_bytes == self.last_value_bytes => 0,
            _ if value_bytes <= u16::MAX.into() => 2,
            _ => 4,
        };
        1 + length + value_bytes
    }

    /// Appends a reply without a value.
    #[inline(always)]
    pub fn status(&mut self, into: &mut Vec<u8>, status: Status) {
        into.push(status as u8);
        self.count += 1;
    }

    /// Appends [`Status::Done`] without a value.
    #[inline(always)]
    pub fn done(&mut self, into: &mut Vec<u8>) {
        self.status(into, Status::Done);
    }

    /// Appends [`Status::Done`] with a value.
    #[inline(always)]
    pub fn value(&mut self, into: &mut Vec<u8>, value: &[u8]) {
        self.status_with(into, Status::Done, value);
    }

    /// Appends an error with its text.
    #[cold]
    pub fn error(&mut self, into: &mut Vec<u8>, status: Status, text: &str) {
        self.status_with(into, status, text.as_bytes());
    }

    /// Appends a reply as it was read.
    #[inline]
    pub fn reply(&mut self, into: &mut Vec<u8>, reply: &Reply<'_>) {
        match reply.value {
            Some(value) => self.status_with(into, reply.status, value),
            None => self.status(into, reply.status),
        }
    }

    /// Appends a status with a value.
    #[inline(always)]
    pub fn status_with(&mut self, into: &mut Vec<u8>, status: Status, value: &[u8]) {
        if self.fits(into, value.len()) {
            self.append(into, status, value);
        } else {
            self.too_long(into);
        }
    }

    #[cold]
    fn too_long(&mut self, into: &mut Vec<u8>) {
        if self.fits(into, TOO_LONG.len()) {
            self.append(into, Status::Failed, TOO_LONG);
        } else {
            self.status(into, Status::Failed);
        }
    }

    #[inline(always)]
    fn append(&mut self, into: &mut Vec<u8>, status: Status, value: &[u8]) {
        if value.len() == self.last_value_bytes && value.len() <= SHORT_BYTES {
            append_short(into, status as u8 | HAS_VALUE | SAME_SIZE, value);
            self.count += 1;
        } else {
            self.append_any(into, status, value);
        }
    }

    #[inline(never)]
    fn append_any(&mut self, into: &mut Vec<u8>, status: Status, value: &[u8]) {
        let first = status as u8 | HAS_VALUE;
        into.reserve(Self::OVERHEAD_BYTES + value.len());
        if value.len() == self.last_value_bytes {
            into.push(first | SAME_SIZE);
        } else {
            self.last_value_bytes = value.len();
            let [l0, l1, l2, l3] = (value.len() as u32).to_le_bytes();
            if value.len() <= u16::MAX.into() {
                into.extend_from_slice(&[first, l0, l1]);
            } else {
                into.extend_from_slice(&[first | WIDE, l0, l1, l2, l3]);
            }
        }
        into.extend_from_slice(value);
        self.count += 1;
    }

    /// Writes the header. The packet is the end of the buffer.
    #[inline]
    pub fn finish(self, into: &mut [u8]) -> Header {
        let payload_bytes = self.bytes(into) - HEADER_BYTES;
        let header = Header {
            is_reply: true,
            batch: self.batch,
            payload_bytes: u32::try_from(payload_bytes)
                .expect("the limit, and a byte for each reply"),
            count: self.count,
            first: self.first,
            ..Header::default()
        };
        into[self.start..][..HEADER_BYTES].copy_from_slice(&header.fixed());
        header
    }
}

/// Longest value that is copied without a call.
const SHORT_BYTES: usize = 16;

/// Appends a byte and a short value, which is copied by two words that may overlap.
#[inline(always)]
fn append_short(into: &mut Vec<u8>, first: u8, value: &[u8]) {
    #[inline(always)]
    fn ends<const WORD: usize>(target: &mut [u8; SHORT_BYTES], value: &[u8]) {
        let (mut begin, mut end) = ([0; WORD], [0; WORD]);
        begin.copy_from_slice(&value[..WORD]);
        end.copy_from_slice(&value[value.len() - WORD..]);
        target[..WORD].copy_from_slice(&begin);
        target[value.len() - WORD..][..WORD].copy_from_slice(&end);
    }
    let start = into.len();
    // Bytes that are not needed are cut off, because room for a constant number takes less time.
    into.extend_from_slice(&[first; 1 + SHORT_BYTES]);
    let Some(target) = into[start + 1..].first_chunk_mut() else { return };
    match value.len() {
        8.. => ends::<8>(target, value),
        4.. => ends::<4>(target, value),
        2.. => ends::<2>(target, value),
        1 => target[0] = value[0],
        _ => {}
    }
    into.truncate(start + 1 + value.len());
}

/// Appends the error of a whole request.
#[cold]
pub fn write_error(into: &mut Vec<u8>, batch: u32, text: &str) {
    let text = text.as_bytes();
    let payload_bytes = u32::try_from(text.len()).expect("a text for people");
    let header =
        Header { is_reply: true, is_error: true, batch, payload_bytes, ..Header::default() };
    header.write(into);
    into.extend_from_slice(text);
}
