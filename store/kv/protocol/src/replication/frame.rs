// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames and their bytes.

use super::decode::Header;

/// The version of the frames, as a follower asks for it.
pub const VERSION: u32 = 1;
/// Bytes of a frame before its body.
pub const HEADER_BYTES: usize = 16;
/// The most bytes of a text.
pub const MAX_TEXT_BYTES: usize = 16 << 10;
/// The most bytes of the items of a frame. A batch of the log has 2 GiB, and a little more if a
/// command changes more than it asked room for.
pub const MAX_ITEMS_BYTES: usize = 3 << 30;

/// The most bytes of the body of a frame that a follower sends: it has two numbers.
pub const ANSWER_BYTES_MAX: usize = 16;

/// A message between a server and its follower.
///
/// Items are units or entries in the form that they have on the disk: each after its length of four
/// bytes, little-endian. Positions count the bytes of the leader's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The first frame of the leader.
    Begin {
        /// The follower forgets what it has: entries follow, and then the log from `position` on.
        /// Otherwise the log follows from the position that the follower has named.
        is_full: bool,
        /// The position of the first batch.
        position: u64,
        /// The bytes of all entries, about; 0 if no entries follow.
        bytes: u64,
    },
    /// The histories that the log consists of, as the text of the leader's file. It precedes the
    /// first entry or batch.
    Lineage {
        /// The text.
        text: &'a str,
    },
    /// Entries of a snapshot.
    Entries {
        /// Number of entries.
        count: u32,
        /// The entries, each after its length.
        items: &'a [u8],
    },
    /// All entries were sent.
    EntriesEnd {
        /// Number of all entries that were sent.
        entries: u64,
    },
    /// A batch of the log. On a link for certain slots it has only units of these slots, and may
    /// have none: then it says only how far the leader's log was read.
    Batch {
        /// The position of the batch.
        position: u64,
        /// The position behind it.
        end: u64,
        /// Number of units.
        count: u32,
        /// The units, each after its length.
        items: &'a [u8],
    },
    /// A sign of life of the leader, at least every second or so.
    Ping {
        /// The end of its log.
        end: u64,
        /// Its time, in milliseconds since 1970.
        time_ms: u64,
    },
    /// The leader ends the link.
    Refused {
        /// The reason, and what to do.
        text: &'a str,
    },
    /// Slots are handed over: clients wait, and the log has nothing of the slots beyond this
    /// position.
    Complete {
        /// The position.
        position: u64,
    },
    /// The slots stay with the leader for now, and its clients continue. More batches follow.
    Resumed,
    /// The slots belong to the follower.
    Moved {
        /// The revision of the topology that says so.
        revision: u64,
    },
    /// The follower has everything before these positions. Replies of a leader may depend on it.
    Ack {
        /// Executed, and written to the follower's log as its policy demands for a reply.
        released: u64,
        /// Durable in the follower's log.
        durable: u64,
    },
}

/// Numbers of the kinds of frames.
pub(super) mod kind {
    pub const BEGIN: u8 = 1;
    pub const LINEAGE: u8 = 2;
    pub const ENTRIES: u8 = 3;
    pub const ENTRIES_END: u8 = 4;
    pub const BATCH: u8 = 5;
    pub const PING: u8 = 6;
    pub const REFUSED: u8 = 7;
    pub const COMPLETE: u8 = 8;
    pub const RESUMED: u8 = 9;
    pub const MOVED: u8 = 10;
    pub const ACK: u8 = 11;
}

impl<'a> Frame<'a> {
    /// Appends the frame.
    ///
    /// # Panics
    /// As [`Frame::write_head`].
    pub fn write(&self, into: &mut Vec<u8>) {
        self.write_head(into);
        into.extend_from_slice(self.payload());
    }

    /// Appends the frame without its [payload](Frame::payload), which the caller sends next. So
    /// items need not be copied.
    ///
    /// # Panics
    /// If a text or items are longer than a frame takes.
    pub fn write_head(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend_from_slice(&[0; HEADER_BYTES]);
        self.write_fields(into);
        let payload = self.payload();
        let limit = if self.is_text() { MAX_TEXT_BYTES } else { MAX_ITEMS_BYTES };
        assert!(payload.len() <= limit, "a frame takes {limit} bytes");
        let fields = &into[start + HEADER_BYTES..];
        let check = crc32c::crc32c_append(crc32c::crc32c(fields), payload);
        let header = Header { kind: self.kind(), body_bytes: fields.len() + payload.len(), check };
        into[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
    }

    /// The bytes at the end of the frame that the caller owns: a text or items.
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Self::Lineage { text } | Self::Refused { text } => text.as_bytes(),
            Self::Entries { items, .. } | Self::Batch { items, .. } => items,
            _ => &[],
        }
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Lineage { .. } | Self::Refused { .. })
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Begin { .. } => kind::BEGIN,
            Self::Lineage { .. } => kind::LINEAGE,
            Self::Entries { .. } => kind::ENTRIES,
            Self::EntriesEnd { .. } => kind::ENTRIES_END,
            Self::Batch { .. } => kind::BATCH,
            Self::Ping { .. } => kind::PING,
            Self::Refused { .. } => kind::REFUSED,
            Self::Complete { .. } => kind::COMPLETE,
            Self::Resumed => kind::RESUMED,
            Self::Moved { .. } => kind::MOVED,
            Self::Ack { .. } => kind::ACK,
        }
    }

    /// Appends the numbers of the body.
    fn write_fields(&self, into: &mut Vec<u8>) {
        let mut number = |number: u64| into.extend_from_slice(&number.to_le_bytes());
        match *self {
            Self::Begin { is_full, position, bytes } => {
                number(position);
                number(bytes);
                into.push(is_full.into());
            }
            Self::Entries { count, .. } => into.extend_from_slice(&count.to_le_bytes()),
            Self::Batch { position, end, count, .. } => {
                number(position);
                number(end);
                into.extend_from_slice(&count.to_le_bytes());
            }
            Self::EntriesEnd { entries: only }
            | Self::Complete { position: only }
            | Self::Moved { revision: only } => number(only),
            Self::Ping { end: first, time_ms: second }
            | Self::Ack { released: first, durable: second } => {
                number(first);
                number(second);
            }
            Self::Lineage { .. } | Self::Refused { .. } | Self::Resumed => {}
        }
    }
}
