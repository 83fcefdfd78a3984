// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The header of a packet, with the token that may follow it.

use std::fmt;
use thiserror::Error;

/// Bytes of a header without a token.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a token.
pub const TOKEN_BYTES: usize = 8;
/// Bytes of a header with a token.
pub const HEADER_BYTES_MAX: usize = HEADER_BYTES + TOKEN_BYTES;

const MAGIC: [u8; 2] = *b"KV";
const VERSION: u8 = 1;

const HAS_TOKEN: u8 = 1 << 0;
const IS_REPLY: u8 = 1 << 1;
const IS_ERROR: u8 = 1 << 2;

/// Header of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The packet has replies, not operations.
    pub is_reply: bool,
    /// The packet is the error of a whole request; its payload is a text.
    pub is_error: bool,
    /// Token of a client over UDP.
    pub token: Option<u64>,
    /// Number that the client chose for a request and its replies.
    pub batch: u32,
    /// Bytes behind the header and the token.
    pub payload_bytes: u32,
    /// Number of operations or replies.
    pub count: u16,
    /// Number of the first reply in this packet; 0 in a request.
    pub first: u16,
}

/// Reason for which a header is refused. The bytes behind such a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{refusal}")]
pub struct HeaderError {
    /// Number of the batch, for an error reply; 0 if the header does not begin as one.
    pub batch: u32,
    /// The broken rule.
    pub refusal: Refusal,
}

/// A rule that a header breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The first bytes are not those of a packet.
    Magic([u8; 2]),
    /// The version is not known.
    Version(u8),
    /// A flag is not known, or does not belong into a packet of this direction.
    Flags(u8),
    /// A request does not begin with its first operation.
    First(u16),
    /// The payload is longer than allowed.
    Payload {
        /// Bytes that the header announces.
        bytes: u32,
        /// Bytes that are allowed.
        limit: u32,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic([first, second]) => write!(
                f,
                "a packet begins with the bytes 4b 56, not {first:02x} {second:02x}; \
                 this is the port of the batched protocol"
            ),
            Self::Version(version) => {
                write!(f, "version {version} of the protocol is not known; use version {VERSION}")
            }
            Self::Flags(flags) => {
                write!(
                    f,
                    "the header's flags are {flags:#04x}; this packet cannot have all of them"
                )
            }
            Self::First(first) => {
                write!(f, "a request begins with operation 0, not with operation {first}")
            }
            Self::Payload { bytes, limit } => write!(
                f,
                "the header announces a payload of {bytes} bytes, and {limit} are allowed; \
                 divide the batch"
            ),
        }
    }
}

impl Header {
    /// Reads the header of a request. `None` means that more bytes are needed.
    ///
    /// # Errors
    /// Every [`Refusal`]; [`Refusal::Payload`] for more than `payload_limit` bytes.
    #[inline]
    pub fn parse_request(bytes: &[u8], payload_limit: u32) -> Result<Option<Self>, HeaderError> {
        Self::parse(bytes, payload_limit, HAS_TOKEN, 0)
    }

    /// Reads the header of a reply. `None` means that more bytes are needed.
    ///
    /// # Errors
    /// Every [`Refusal`] but [`Refusal::First`]; [`Refusal::Payload`] for more than `payload_limit`
    /// bytes.
    #[inline]
    pub fn parse_reply(bytes: &[u8], payload_limit: u32) -> Result<Option<Self>, HeaderError> {
        Self::parse(bytes, payload_limit, IS_REPLY | IS_ERROR, IS_REPLY)
    }

    /// Reads a header with flags of `known` and all of `needed`.
    #[inline]
    fn parse(
        bytes: &[u8],
        payload_limit: u32,
        known: u8,
        needed: u8,
    ) -> Result<Option<Self>, HeaderError> {
        let Some(fixed) = bytes.first_chunk::<HEADER_BYTES>() else {
            // Bytes of another protocol may never become as many as a header.
            let is_magic = bytes.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
            let magic = [bytes.first(), bytes.get(1)].map(|byte| byte.copied().unwrap_or(0));
            let error = HeaderError { batch: 0, refusal: Refusal::Magic(magic) };
            return if is_magic { Ok(None) } else { Err(error) };
        };
        let [m0, m1, version, flags, b0, b1, b2, b3, p0, p1, p2, p3, c0, c1, f0, f1] = *fixed;
        let batch = u32::from_le_bytes([b0, b1, b2, b3]);
        let payload_bytes = u32::from_le_bytes([p0, p1, p2, p3]);
        let first = u16::from_le_bytes([f0, f1]);
        let refuse = |batch, refusal| Err(HeaderError { batch, refusal });
        if [m0, m1] != MAGIC {
            return refuse(0, Refusal::Magic([m0, m1]));
        }
        if version != VERSION {
            return refuse(batch, Refusal::Version(version));
        }
        if flags & !known != 0 || flags & needed != needed {
            return refuse(batch, Refusal::Flags(flags));
        }
        if first != 0 && flags & IS_REPLY == 0 {
            return refuse(batch, Refusal::First(first));
        }
        if payload_bytes > payload_limit {
            let limit = payload_limit;
            return refuse(batch, Refusal::Payload { bytes: payload_bytes, limit });
        }
        let mut token = None;
        if flags & HAS_TOKEN != 0 {
            let Some(bytes) = bytes[HEADER_BYTES..].first_chunk() else { return Ok(None) };
            token = Some(u64::from_le_bytes(*bytes));
        }
        Ok(Some(Self {
            is_reply: flags & IS_REPLY != 0,
            is_error: flags & IS_ERROR != 0,
            token,
            batch,
            payload_bytes,
            count: u16::from_le_bytes([c0, c1]),
            first,
        }))
    }

    /// Bytes of the header and its token: 16 or 24.
    #[inline]
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + if self.token.is_some() { TOKEN_BYTES } else { 0 }
    }

    /// Bytes of the whole packet.
    #[inline]
    pub fn packet_bytes(&self) -> usize {
        self.bytes() + self.payload_bytes as usize
    }

    /// Appends the header and its token.
    #[inline]
    pub fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.fixed());
        if let Some(token) = self.token {
            into.extend_from_slice(&token.to_le_bytes());
        }
    }

    /// The 16 bytes before the token.
    #[inline]
    pub(super) fn fixed(&self) -> [u8; HEADER_BYTES] {
        let flags = if self.token.is_some() { HAS_TOKEN } else { 0 }
            | if self.is_reply { IS_REPLY } else { 0 }
            | if self.is_error { IS_ERROR } else { 0 };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2..4].copy_from_slice(&[VERSION, flags]);
        bytes[4..8].copy_from_slice(&self.batch.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.count.to_le_bytes());
        bytes[14..].copy_from_slice(&self.first.to_le_bytes());
        bytes
    }
}
