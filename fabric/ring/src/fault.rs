// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Violations of the protocol by a peer.

use crate::Kind;
use core::fmt;

/// The other side broke the protocol. The ring cannot be used any more, because the position of its
/// next entry is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// A header has an undefined kind.
    UnknownKind(u8),
    /// A header lacks the mark of a valid one, or has reserved bits.
    Flags(u8),
    /// A header does not have the next number: it is from an earlier lap, or forged.
    Sequence {
        /// The next number.
        expected: u16,
        /// The number in the header.
        found: u16,
    },
    /// An entry would reach beyond the end of the ring, or is longer than the maximum.
    Length(u32),
    /// An entry has a length that is invalid for its kind.
    LengthOfKind {
        /// The kind.
        kind: Kind,
        /// The length.
        length: u32,
    },
    /// A header at the start of the ring says that the ring continues at its start.
    WrapAtStart,
    /// The receiver gave back more than it was sent, or less than before.
    Credits {
        /// Bytes it had given back before, since the start.
        before: u64,
        /// Bytes it claims to have given back.
        claimed: u64,
        /// Bytes it was sent.
        sent: u64,
    },
    /// A stream of bytes has an empty entry of data.
    Empty,
    /// An entry changed after a part of it was read.
    Changed,
    /// A message of a shared queue has an undefined label.
    Label(u64),
    /// A message of a shared queue is for a connection that does not exist, or is not in that
    /// state.
    Connection(u32),
    /// More bytes were sent or given back on a connection of a shared queue than it may have
    /// unread.
    Overdrawn(u32),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(kind) => write!(f, "an entry of the unknown kind {kind}"),
            Self::Flags(flags) => write!(f, "a header with the flags {flags:#04x}"),
            Self::Sequence { expected, found } => {
                write!(f, "entry {found} where {expected} is next")
            }
            Self::Length(length) => {
                write!(f, "an entry of {length} bytes, more than there is room for")
            }
            Self::LengthOfKind { kind, length } => {
                write!(f, "an entry {kind:?} of {length} bytes, which that kind cannot have")
            }
            Self::WrapAtStart => write!(f, "a wrap at the start of the ring"),
            Self::Credits { before, claimed, sent } => write!(
                f,
                "{claimed} bytes given back, with {before} before and {sent} sent in total"
            ),
            Self::Empty => write!(f, "an entry of no bytes in a stream of bytes"),
            Self::Changed => write!(f, "an entry that changed after a part of it was read"),
            Self::Label(label) => write!(f, "a message with the label {label:#018x}"),
            Self::Connection(number) => {
                write!(f, "a message that is invalid in the state of connection {number}")
            }
            Self::Overdrawn(number) => {
                write!(f, "more on connection {number} than its window permits")
            }
        }
    }
}

impl core::error::Error for Fault {}
