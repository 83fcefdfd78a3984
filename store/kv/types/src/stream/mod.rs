// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams: logs of entries with increasing ids, and groups of consumers that read them.
//!
//! The entries lie in nodes, each one byte string of up to a hundred entries (`node.rs`). The
//! packed form of a stream is a head of five numbers and its only node; the empty byte string is a
//! stream that never had an entry. A stream takes its large form, an ordered map of nodes, when a
//! second node is needed or when a consumer group is created. Both forms are read through
//! [`StreamRef`], where they lie.
//!
//! A packed stream that is capped (`XADD` with `MAXLEN`) stays packed: if at least half of a full
//! node is deleted, the node is written anew instead of followed by another.
//!
//! | | packed, or one node | large |
//! |---|---|---|
//! | add an entry | moves the head | O(1) amortized, behind the last node |
//! | find, delete an entry | scan of up to 100 ids | O(log n) nodes, then the same scan |
//! | range of entries | as found, then O(1) each | the same |
//! | trim | scan | O(1) for each node that is removed whole |
//! | acknowledge, claim an entry | no groups | O(log n) pending entries |
//!
//! A stream without entries remains a value: its counters and groups still count.
//!
//! Results and errors are those of Redis 7.2. The clock is a parameter of every function that
//! needs it, so a repetition of the same calls gives the same stream.
//!
//! ```
//! use freeport_kv_types::stream::{GroupRead, GroupStart, NewId, ReadFrom, StreamId};
//! use freeport_kv_types::{Limits, Stream};
//!
//! let mut stream = Stream::default();
//! let id = stream.add(&Limits::default(), NewId::Auto, &[b"name", b"value"], 1_700)?;
//! assert_eq!(id.to_string(), "1700-0");
//!
//! stream.create_group(b"workers", GroupStart::After(StreamId::MIN), None)?;
//! let read = GroupRead { from: ReadFrom::New, count: 10, is_acknowledged: false, now_ms: 1_800 };
//! let mut fields = vec![];
//! stream.read_group(b"workers", b"first", &read, |_id, found| {
//!     fields.extend(found.into_iter().flatten().map(|(name, value)| (name.len(), value.len())));
//! })?;
//! assert_eq!(fields, [(4, 5)]);
//! assert_eq!(stream.acknowledge(b"workers", &[id])?, 1);
//! # Ok::<(), freeport_kv_types::StreamError>(())
//! ```

mod claim;
mod error;
mod group;
mod id;
mod info;
mod lag;
mod large;
mod node;
mod packed;
mod pending;
mod range;
mod read;
mod reader;
mod snapshot;
mod trim;
mod value;

pub use claim::{AutoClaim, AutoClaimed, Claim, ClaimTime};
pub use error::StreamError;
pub use group::GroupStart;
pub use id::{NewId, StreamId};
pub use info::{ConsumerInfo, FullConsumer, FullGroup, FullInfo, GroupInfo, StreamInfo};
pub use large::Large;
pub use node::Fields;
pub use pending::{PendingEntry, PendingQuery, PendingSummary};
pub use range::{Range, RangeReversed, StreamEntry};
pub use read::{GroupRead, ReadFrom};
pub use trim::Trim;

use crate::limits::Limits;
use group::Groups;
use range::Nodes;
use reader::Reader;

/// Most bytes of the fields and values of an entry together.
const MOST_ENTRY_BYTES: usize = 1 << 30;

/// A stream.
#[derive(Clone, Debug)]
pub enum Stream {
    /// A head and at most one node, in one byte string.
    Packed(Vec<u8>),
    /// An ordered map of nodes, and the consumer groups.
    Large(Box<Large>),
}

/// A stream that is read where it lies.
#[derive(Clone, Copy, Debug)]
pub struct StreamRef<'a> {
    head: Head,
    length: u64,
    nodes: Nodes<'a>,
    groups: Option<&'a Groups>,
    memory_bytes: usize,
}

/// Counters of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    /// The largest id given so far.
    last_id: StreamId,
    /// The largest id that was deleted; trimming does not count.
    max_deleted_id: StreamId,
    /// Number of entries ever added.
    entries_added: u64,
}

impl Default for Stream {
    /// A stream that never had an entry.
    fn default() -> Stream {
        Stream::Packed(vec![])
    }
}

impl Stream {
    /// Reads the stream.
    pub fn view(&self) -> StreamRef<'_> {
        match self {
            Stream::Packed(bytes) => StreamRef::from_packed(bytes),
            Stream::Large(large) => StreamRef::from_large(large),
        }
    }

    /// Adds an entry and returns its id. `fields` are names and values in turn; a name without a
    /// value at the end is left out. `now_ms` is the time for an automatic id.
    ///
    /// # Errors
    /// `ZeroId`, `Exhausted`, `NotGreater`, `TooLarge`
    pub fn add(
        &mut self,
        limits: &Limits,
        id: NewId,
        fields: &[&[u8]],
        now_ms: u64,
    ) -> Result<StreamId, StreamError> {
        let id = id.resolve(self.view().last_id(), now_ms)?;
        let fields = &fields[..fields.len() / 2 * 2];
        if fields.iter().map(|part| part.len()).sum::<usize>() > MOST_ENTRY_BYTES {
            return Err(StreamError::TooLarge);
        }
        if let Stream::Packed(bytes) = self
            && packed::add(limits, bytes, id, fields)
        {
            return Ok(id);
        }
        self.enlarge().add(limits, id, fields);
        Ok(id)
    }

    /// Deletes entries. Returns how many existed.
    pub fn delete(&mut self, ids: &[StreamId]) -> u64 {
        let is_deleted = |id: &&StreamId| match self {
            Stream::Packed(bytes) => packed::delete(bytes, **id),
            Stream::Large(large) => large.delete(**id),
        };
        ids.iter().filter(is_deleted).count() as u64
    }

    /// Removes entries from the front. Returns how many were removed.
    pub fn trim(&mut self, trim: &Trim) -> u64 {
        match self {
            Stream::Packed(bytes) => packed::trim(bytes, trim),
            Stream::Large(large) => large.trim(trim),
        }
    }

    /// Sets the last id, and the other counters if they are given (`XSETID`).
    ///
    /// # Errors
    /// `BelowGivenDeleted`, `BelowDeleted`, `BelowTop`, `AddedBelowLength`
    pub fn set_id(
        &mut self,
        last_id: StreamId,
        entries_added: Option<u64>,
        max_deleted_id: Option<StreamId>,
    ) -> Result<(), StreamError> {
        let view = self.view();
        let mut head = view.head;
        if max_deleted_id.is_some_and(|deleted| last_id < deleted) {
            return Err(StreamError::BelowGivenDeleted);
        }
        if last_id < head.max_deleted_id {
            return Err(StreamError::BelowDeleted);
        }
        if view.nodes.last().is_some_and(|top| last_id < top.id) {
            return Err(StreamError::BelowTop);
        }
        if view.length > 0 && entries_added.is_some_and(|added| added < view.length) {
            return Err(StreamError::AddedBelowLength);
        }
        head.last_id = last_id;
        head.entries_added = entries_added.unwrap_or(head.entries_added);
        let given = max_deleted_id.filter(|id| !id.is_zero());
        head.max_deleted_id = given.unwrap_or(head.max_deleted_id);
        match self {
            Stream::Packed(bytes) => packed::set_head(bytes, &head),
            Stream::Large(large) => large.set_head(head),
        }
        Ok(())
    }

    /// Takes the large form.
    fn enlarge(&mut self) -> &mut Large {
        if let Stream::Packed(bytes) = self {
            *self = Stream::Large(Box::new(Large::from_packed(bytes)));
        }
        match self {
            Stream::Large(large) => large,
            Stream::Packed(_) => unreachable!("the stream just took its large form"),
        }
    }
}

impl<'a> StreamRef<'a> {
    /// Reads the packed stream in `bytes`, which this crate produced or validated.
    pub fn from_packed(bytes: &'a [u8]) -> StreamRef<'a> {
        let (head, size) = Head::read(bytes);
        let node = &bytes[size..];
        let length = node::Node::read(node).map_or(0, |node| u64::from(node.live));
        StreamRef { head, length, nodes: Nodes::One(node), groups: None, memory_bytes: bytes.len() }
    }

    /// Reads a stream in its large form.
    pub fn from_large(large: &'a Large) -> StreamRef<'a> {
        large.view()
    }

    /// Number of entries.
    pub fn len(self) -> u64 {
        self.length
    }

    /// Returns whether the stream has no entry.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }

    /// The largest id given so far. An `XREAD` from `$` begins after it.
    pub fn last_id(self) -> StreamId {
        self.head.last_id
    }

    /// The largest id that was deleted by [`Stream::delete`], or `0-0`.
    pub fn max_deleted_id(self) -> StreamId {
        self.head.max_deleted_id
    }

    /// Number of entries ever added.
    pub fn entries_added(self) -> u64 {
        self.head.entries_added
    }

    /// Id of the first entry, or `0-0` in an empty stream.
    pub fn first_id(self) -> StreamId {
        self.nodes.first().map_or(StreamId::MIN, |entry| entry.id)
    }

    /// The entry with this id.
    pub fn get(self, id: StreamId) -> Option<StreamEntry<'a>> {
        self.nodes.get(id)
    }

    /// Entries from `first` to `last`, both included, in ascending order.
    pub fn range(self, first: StreamId, last: StreamId) -> Range<'a> {
        self.nodes.range(first, last)
    }

    /// Entries from `last` down to `first`, both included.
    pub fn range_reversed(self, first: StreamId, last: StreamId) -> RangeReversed<'a> {
        self.nodes.range_reversed(first, last)
    }

    /// Entries with ids larger than `id`, as `XREAD` returns them.
    pub fn after(self, id: StreamId) -> Range<'a> {
        // Most readers are at the end: they cause no search.
        match id.next() {
            Some(first) if id < self.head.last_id => self.range(first, StreamId::MAX),
            _ => self.range(StreamId::MAX, StreamId::MIN),
        }
    }

    /// Returns whether an entry has an id larger than `id`. If not, `XREAD` has to wait.
    pub fn has_after(self, id: StreamId) -> bool {
        self.after(id).next().is_some()
    }

    /// Name of the form, as OBJECT ENCODING gives it.
    pub fn encoding(self) -> &'static str {
        "stream"
    }

    /// Memory of the stream in bytes, in O(1): of a packed one its length, of a large one as
    /// allocated, with an estimate for ordered maps.
    pub fn memory_bytes(self) -> usize {
        self.memory_bytes
    }
}

impl Head {
    /// Number of bytes of the longest head.
    const MAX_BYTES: usize = 5 * crate::varint::MAX_BYTES;

    /// Reads a head from the front of a packed stream. Returns it and its size in bytes.
    fn read(bytes: &[u8]) -> (Head, usize) {
        let mut reader = Reader::new(bytes);
        match Head::take(&mut reader) {
            Some(head) => (head, reader.position()),
            None => (Head::default(), bytes.len()),
        }
    }

    fn take(reader: &mut Reader<'_>) -> Option<Head> {
        let (last_id, max_deleted_id) = (reader.id()?, reader.id()?);
        Some(Head { last_id, max_deleted_id, entries_added: reader.number()? })
    }

    fn write(&self, out: &mut Vec<u8>) {
        reader::put_id(out, self.last_id);
        reader::put_id(out, self.max_deleted_id);
        crate::varint::write(self.entries_added, out);
    }

    /// Notes an added entry.
    fn note_added(&mut self, id: StreamId) {
        self.last_id = id;
        self.entries_added = self.entries_added.saturating_add(1);
    }

    /// Notes a deleted entry.
    fn note_deleted(&mut self, id: StreamId) {
        self.max_deleted_id = self.max_deleted_id.max(id);
    }
}
