// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a peer can do wrong.

use crate::Kind;
use core::fmt;

/// The other side broke the protocol. The ring cannot be used any more: where its next entry would
/// be is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// A header has a kind that there is none of.
    UnknownKind(u8),
    /// A header lacks the mark of a valid one, or has reserved bits.
    Flags(u8),
    /// A header has not the number that is next: it is of an earlier lap, or made up.
    Sequence {
        /// The number that is next.
        expected: u16,
        /// What the header has.
        found: u16,
    },
    /// An entry would reach beyond the end of the ring, or is longer than any may be.
    Length(u32),
    /// An entry has a length that its kind does not have.
    LengthOfKind {
        /// The kind.
        kind: Kind,
        /// The length.
        length: u32,
    },
    /// A header says that the ring goes on at its start, and is there itself.
    WrapAtStart,
    /// The receiver gave back more than it was sent, or less than before.
    Credits {
        /// What it had given back before, in bytes since the start.
        before: u64,
        /// What it claims to have given back.
        claimed: u64,
        /// What it was sent.
        sent: u64,
    },
    /// A stream of bytes has an entry of data without any.
    Empty,
    /// An entry of which a part was read is another one now.
    Changed,
    /// A message of a shared queue has a label that there is none of.
    Label(u64),
    /// A message of a shared queue is for a connection that there is not, or not in that state.
    Connection(u32),
    /// More was sent or given back on a connection of a shared queue than it may have unread.
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
                "{claimed} bytes given back, with {before} before and {sent} sent altogether"
            ),
            Self::Empty => write!(f, "an entry of no bytes in a stream of bytes"),
            Self::Changed => write!(f, "an entry that changed after a part of it was read"),
            Self::Label(label) => write!(f, "a message with the label {label:#018x}"),
            Self::Connection(number) => {
                write!(f, "a message that connection {number} cannot have now")
            }
            Self::Overdrawn(number) => {
                write!(f, "more on connection {number} than its window has room for")
            }
        }
    }
}

impl core::error::Error for Fault {}
