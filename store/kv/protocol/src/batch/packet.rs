// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing requests. The writer chooses the flags that make a packet short.

use super::header::{HEADER_BYTES, HEADER_BYTES_MAX, Header};
use super::operation::{NO_RETURN, Operation, SAME_SIZE, SAME_VALUE, WIDE};
use std::ops::Range;
use thiserror::Error;

/// How large a packet may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLimits {
    /// Bytes of the packet, with header and token.
    pub bytes: usize,
    /// Number of operations.
    pub operations: u16,
}

impl Default for PacketLimits {
    /// 64 KiB and 65,535 operations.
    fn default() -> Self {
        Self { bytes: 64 << 10, operations: u16::MAX }
    }
}

/// Reason for which an operation is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The packet has no room for it; it fits into the next one.
    #[error("the packet is full; put the operation into the next one")]
    Full,
    /// It fits into no packet.
    #[error("the operation takes a packet of {bytes} bytes, and the largest has {limit}")]
    TooLarge {
        /// Bytes of a packet with this operation alone.
        bytes: usize,
        /// Largest size of a packet.
        limit: usize,
    },
}

/// Appends a request to a buffer, which is given to each call. Nothing else may change the buffer
/// between [`begin`](Self::begin) and [`finish`](Self::finish).
#[derive(Clone, Debug)]
pub struct PacketWriter {
    limits: PacketLimits,
    token: Option<u64>,
    batch: u32,
    /// Where the packet begins in the buffer.
    start: usize,
    count: u16,
    last_key_bytes: Option<usize>,
    /// Place of the last value in the buffer.
    last_value: Option<Range<usize>>,
}

impl PacketWriter {
    /// Begins a packet behind the bytes of the buffer.
    pub fn begin(into: &mut Vec<u8>, limits: PacketLimits, batch: u32, token: Option<u64>) -> Self {
        let start = into.len();
        Header { token, batch, ..Header::default() }.write(into);
        let bytes = limits.bytes.min(u32::MAX as usize);
        let limits = PacketLimits { bytes, ..limits };
        Self { limits, token, batch, start, count: 0, last_key_bytes: None, last_value: None }
    }

    /// Number of operations in the packet.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Bytes of the packet as it is now.
    pub fn bytes(&self, into: &[u8]) -> usize {
        into.len() - self.start
    }

    /// Appends an operation. If it is refused, the packet is as before.
    ///
    /// # Errors
    /// See [`Refused`]. The caller finishes the packet and begins the next one if it is full.
    #[inline]
    pub fn push(&mut self, into: &mut Vec<u8>, operation: &Operation<'_>) -> Result<(), Refused> {
        let plan = self.plan(into, operation);
        let bytes = plan.bytes(operation);
        if self.bytes(into) + bytes > self.limits.bytes || self.count >= self.limits.operations {
            return Err(self.refuse(operation));
        }
        into.reserve(bytes);
        into.push(plan.first);
        if operation.opcode.has_function() {
            into.extend_from_slice(&[operation.function, operation.element]);
        }
        if plan.has_lengths {
            plan.write_lengths(operation, into);
        }
        into.extend_from_slice(operation.key);
        if plan.has_value {
            let at = into.len();
            into.extend_from_slice(operation.value);
            self.last_value = Some(at..into.len());
        }
        if operation.opcode.has_key() {
            self.last_key_bytes = Some(operation.key.len());
        }
        self.count += 1;
        Ok(())
    }

    /// Writes the header, which it returns. The packet is the end of the buffer.
    pub fn finish(self, into: &mut [u8]) -> Header {
        let mut header =
            Header { token: self.token, batch: self.batch, count: self.count, ..Header::default() };
        let payload_bytes = self.bytes(into) - header.bytes();
        header.payload_bytes = u32::try_from(payload_bytes).expect("the limit is less");
        into[self.start..][..HEADER_BYTES].copy_from_slice(&header.fixed());
        header
    }

    /// Chooses the flags of an operation.
    #[inline]
    fn plan(&self, into: &[u8], operation: &Operation<'_>) -> Plan {
        let code = operation.opcode as u8;
        if !operation.opcode.has_key() {
            return Plan { first: code, has_lengths: false, has_value: false };
        }
        let (key_bytes, value_bytes) = (operation.key.len(), operation.value.len());
        let is_no_return = if operation.no_return { NO_RETURN } else { 0 };
        let mut plan = Plan { first: code | is_no_return, has_lengths: true, has_value: false };
        let mut is_same_size = self.last_key_bytes == Some(key_bytes);
        if operation.opcode.has_value() {
            let last = self.last_value.clone().map(|last| &into[last]);
            if last == Some(operation.value) {
                plan.first |= SAME_VALUE;
            } else {
                plan.has_value = true;
                is_same_size &= last.is_some_and(|last| last.len() == value_bytes);
            }
        }
        if is_same_size {
            plan.first |= SAME_SIZE;
            plan.has_lengths = false;
        } else if key_bytes > u8::MAX.into() || plan.has_value && value_bytes > u16::MAX.into() {
            plan.first |= WIDE;
        }
        plan
    }

    #[cold]
    fn refuse(&self, operation: &Operation<'_>) -> Refused {
        let alone =
            Self { start: 0, count: 0, last_key_bytes: None, last_value: None, ..self.clone() };
        let header = if self.token.is_some() { HEADER_BYTES_MAX } else { HEADER_BYTES };
        let bytes = header + alone.plan(&[], operation).bytes(operation);
        let limit = self.limits.bytes;
        if bytes > limit { Refused::TooLarge { bytes, limit } } else { Refused::Full }
    }
}

/// How an operation is written.
#[derive(Clone, Copy)]
struct Plan {
    first: u8,
    has_lengths: bool,
    has_value: bool,
}

impl Plan {
    /// Bytes of the operation.
    #[inline]
    fn bytes(self, operation: &Operation<'_>) -> usize {
        let function = if operation.opcode.has_function() { 2 } else { 0 };
        let value = if self.has_value { operation.value.len() } else { 0 };
        let [key_length, value_length] = self.length_bytes();
        1 + function + key_length + value_length + operation.key.len() + value
    }

    /// Bytes of the lengths of key and value.
    #[inline]
    fn length_bytes(self) -> [usize; 2] {
        match (self.has_lengths, self.has_value, self.first & WIDE != 0) {
            (false, ..) => [0, 0],
            (_, false, false) => [1, 0],
            (_, false, true) => [4, 0],
            (_, true, false) => [1, 2],
            (_, true, true) => [4, 4],
        }
    }

    #[inline]
    fn write_lengths(self, operation: &Operation<'_>, into: &mut Vec<u8>) {
        let [key, value] = self.length_bytes();
        // The packet's limit is less than 4 GiB.
        into.extend_from_slice(&(operation.key.len() as u32).to_le_bytes()[..key]);
        into.extend_from_slice(&(operation.value.len() as u32).to_le_bytes()[..value]);
    }
}
