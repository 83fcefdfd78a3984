// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node: up to some hundred consecutive entries in one byte string.
//!
//! ```text
//! node:   count u16 | live u16 | first ms, seq | field count | bytes of fields | fields | entries
//! entry:  bytes that follow | flags u8 | ms - first ms | seq | [field count, fields and] values
//! ```
//!
//! Numbers are [varints](crate::varint), except the two counters, which change in place. Fields are
//! byte strings, values are in `value.rs`. The fields
//! in the head are those of the first entry: an entry with the same fields stores its values only.
//! The sequence is relative to that of the first entry within the same millisecond. Every entry
//! states its length, so a search skips entries without a look at their fields. A deleted entry is
//! marked and keeps its place; a node without live entries is removed by its owner.
//!
//! Every entry has a larger id than all live entries before it, but not always than deleted ones:
//! after `XSETID` took the last id of a stream back behind deleted entries, it grows again.
//!
//! Readers take nothing for granted: on bytes that are no node they end early.

use super::StreamId;
use super::reader::{self, Reader};
use super::value;
use crate::entry::Entry;
use crate::varint;

const DELETED: u8 = 1;
const SAME_FIELDS: u8 = 2;

/// Position of the number of live entries.
const LIVE_AT: usize = 2;

/// Most entries of a node, live or deleted.
const MOST_ENTRIES: usize = u16::MAX as usize;

/// A node, read in place.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Number of entries, live or deleted.
    pub count: u16,
    /// Number of live entries.
    pub live: u16,
    /// Id of the first entry.
    pub first: StreamId,
    names: Names<'a>,
    entries: &'a [u8],
    entries_at: usize,
}

impl<'a> Node<'a> {
    /// Reads the head of a node.
    pub fn read(bytes: &'a [u8]) -> Option<Node<'a>> {
        let mut reader = Reader::new(bytes);
        let (count, live) = (reader.u16()?, reader.u16()?);
        let first = reader.id()?;
        let names = Names { count: reader.number()?, bytes: reader.bytes()? };
        let entries_at = reader.position();
        Some(Node { count, live, first, names, entries: reader.rest(), entries_at })
    }

    /// All entries, also deleted ones, in the order of their ids.
    #[inline]
    pub fn slots(&self) -> Slots<'a> {
        let (first, entries_at) = (self.first, self.entries_at);
        Slots { first, entries_at, reader: Reader::new(self.entries) }
    }

    /// Live entries in the order of their ids.
    #[inline]
    pub fn live_slots(&self) -> impl Iterator<Item = Slot<'a>> + use<'a> {
        self.slots().filter(|slot| !slot.is_deleted())
    }

    /// The entry at this position.
    pub fn slot(&self, at: usize) -> Option<Slot<'a>> {
        let rest = self.entries.get(at.checked_sub(self.entries_at)?..)?;
        Slots { first: self.first, entries_at: at, reader: Reader::new(rest) }.next()
    }

    /// Id of the last entry, live or deleted.
    pub fn last(&self) -> Option<StreamId> {
        self.slots().last().map(|slot| slot.id)
    }

    /// Fields and values of an entry of this node.
    pub fn fields(&self, slot: &Slot<'a>) -> Fields<'a> {
        let mut reader = Reader::new(slot.body);
        if slot.flags & SAME_FIELDS != 0 {
            let names = Some(Reader::new(self.names.bytes));
            return Fields { names, reader, left: self.names.count };
        }
        let left = reader.number().unwrap_or(0);
        Fields { names: None, reader, left }
    }
}

/// Field names of the first entry.
#[derive(Clone, Copy, Debug)]
struct Names<'a> {
    count: u64,
    bytes: &'a [u8],
}

impl Names<'_> {
    fn are_those_of(&self, fields: &[&[u8]]) -> bool {
        let mut reader = Reader::new(self.bytes);
        self.count == fields.len() as u64 / 2
            && names_of(fields).all(|name| reader.bytes() == Some(name))
    }
}

/// Iterator over the entries of a node.
#[derive(Clone, Copy, Debug)]
pub struct Slots<'a> {
    first: StreamId,
    entries_at: usize,
    reader: Reader<'a>,
}

/// An entry of a node, live or deleted.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    /// Id of the entry.
    pub id: StreamId,
    flags: u8,
    /// Fields and values, as [`Node::fields`] reads them.
    body: &'a [u8],
    /// Position in the node.
    pub at: usize,
    /// Position of the flags in the node.
    flags_at: usize,
}

impl Slot<'_> {
    /// Whether the entry is deleted.
    #[inline]
    pub fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }
}

impl<'a> Iterator for Slots<'a> {
    type Item = Slot<'a>;

    // Searches take most of their time here.
    #[inline(always)]
    fn next(&mut self) -> Option<Slot<'a>> {
        let at = self.entries_at + self.reader.position();
        let entry = self.reader.bytes()?;
        let flags_at = self.entries_at + self.reader.position() - entry.len();
        let mut reader = Reader::new(entry);
        let flags = reader.byte()?;
        let ms = self.first.ms.checked_add(reader.number()?)?;
        let base_seq = if ms == self.first.ms { self.first.seq } else { 0 };
        let seq = base_seq.checked_add(reader.number()?)?;
        Some(Slot { id: StreamId::new(ms, seq), flags, body: reader.rest(), at, flags_at })
    }
}

/// Iterator over the fields of an entry, each with its value.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// The names, unless they stand beside the values.
    names: Option<Reader<'a>>,
    reader: Reader<'a>,
    left: u64,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], Entry<'a>);

    fn next(&mut self) -> Option<(&'a [u8], Entry<'a>)> {
        self.left = self.left.checked_sub(1)?;
        let name = self.names.as_mut().unwrap_or(&mut self.reader).bytes()?;
        Some((name, value::read(&mut self.reader)?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Fields<'_> {}

/// Appends the head of a node to `out`. `fields` are names and values in turn.
pub fn start(out: &mut Vec<u8>, first: StreamId, fields: &[&[u8]]) {
    out.extend_from_slice(&[0; 2 * LIVE_AT]);
    reader::put_id(out, first);
    varint::write(fields.len() as u64 / 2, out);
    varint::write(names_of(fields).map(reader::size_of_bytes).sum::<usize>() as u64, out);
    names_of(fields).for_each(|name| reader::put_bytes(out, name));
}

/// Appends an entry to the node that occupies `bytes` from `at` to the end.
pub fn append(bytes: &mut Vec<u8>, at: usize, id: StreamId, fields: &[&[u8]]) {
    let node = Node::read(&bytes[at..]).expect("the owner keeps valid nodes");
    let (count, live) = (node.count + 1, node.live + 1);
    let form = Form::of(&node, id, fields);
    varint::write(form.bytes as u64, bytes);
    bytes.push(if form.has_same_names { SAME_FIELDS } else { 0 });
    varint::write(form.ms, bytes);
    varint::write(form.seq, bytes);
    if !form.has_same_names {
        varint::write(fields.len() as u64 / 2, bytes);
    }
    for pair in fields.chunks_exact(2) {
        if !form.has_same_names {
            reader::put_bytes(bytes, pair[0]);
        }
        value::put(bytes, pair[1]);
    }
    set_counters(&mut bytes[at..], count, live);
}

/// Returns whether an entry fits into a node of at most this number of bytes and of entries, of
/// which 0 means no limit.
pub fn has_room(
    bytes: &[u8],
    id: StreamId,
    fields: &[&[u8]],
    most_bytes: usize,
    most_entries: usize,
) -> bool {
    let Some(node) = Node::read(bytes) else { return false };
    let most_entries = if most_entries == 0 { MOST_ENTRIES } else { most_entries };
    if usize::from(node.count) >= most_entries.min(MOST_ENTRIES) {
        return false;
    }
    let entry = Form::of(&node, id, fields).bytes;
    most_bytes == 0 || bytes.len() + varint::size(entry as u64) + entry <= most_bytes
}

/// Marks the entry `id` as deleted. Returns whether it was live.
pub fn delete(bytes: &mut [u8], id: StreamId) -> bool {
    let Some(node) = Node::read(bytes) else { return false };
    let found = node.live_slots().find(|slot| slot.id >= id);
    let Some(slot) = found.filter(|slot| slot.id == id) else { return false };
    let (count, live) = (node.count, node.live.saturating_sub(1));
    let at = slot.flags_at;
    bytes[at] |= DELETED;
    set_counters(bytes, count, live);
    true
}

/// Marks live entries from the front as deleted, until `is_enough` holds for an entry's id and the
/// number of entries marked before. Returns that number.
pub fn delete_front(bytes: &mut [u8], mut is_enough: impl FnMut(StreamId, u64) -> bool) -> u64 {
    let Some(node) = Node::read(bytes) else { return 0 };
    let (count, live) = (node.count, node.live);
    let mut marked = vec![];
    for slot in node.live_slots() {
        if is_enough(slot.id, marked.len() as u64) {
            break;
        }
        marked.push(slot.flags_at);
    }
    marked.iter().for_each(|at| bytes[*at] |= DELETED);
    set_counters(bytes, count, live.saturating_sub(marked.len() as u16));
    marked.len() as u64
}

/// Writes the node anew without its deleted entries.
pub fn compacted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![];
    let node = Node::read(bytes)?;
    for slot in node.live_slots() {
        let values: Vec<Vec<u8>> = node.fields(&slot).map(|(_, value)| value.to_vec()).collect();
        let names = node.fields(&slot).map(|(name, _)| name);
        let fields = names.zip(&values).flat_map(|(name, value)| [name, value]);
        let fields: Vec<&[u8]> = fields.collect();
        if out.is_empty() {
            start(&mut out, slot.id, &fields);
        }
        append(&mut out, 0, slot.id, &fields);
    }
    Some(out)
}

/// Checks bytes from outside: afterwards every reader reaches the end of the node. Returns the node
/// and the id of its last live entry.
///
/// # Errors
/// The position of the first wrong byte.
pub fn validate(bytes: &[u8]) -> Result<(Node<'_>, StreamId), usize> {
    let node = Node::read(bytes).ok_or(0usize)?;
    let mut names = Reader::new(node.names.bytes);
    while !names.is_at_end() {
        names.bytes().ok_or(node.entries_at - names.remaining())?;
    }
    let (mut count, mut live) = (0u64, 0u64);
    let mut last_live = None;
    let mut slots = node.slots();
    while !slots.reader.is_at_end() {
        let at = node.entries_at + slots.reader.position();
        let slot = slots.next().ok_or(at)?;
        let is_in_order = count > 0 || slot.id == node.first;
        let is_above_live = last_live.is_none_or(|last| last < slot.id);
        let has_known_flags = slot.flags & !(DELETED | SAME_FIELDS) == 0;
        let is_valid = is_in_order && is_above_live && has_known_flags;
        if !is_valid || !fills_its_place(node.fields(&slot)) {
            return Err(at);
        }
        count += 1;
        if !slot.is_deleted() {
            last_live = Some(slot.id);
            live += 1;
        }
    }
    let is_counted = count == u64::from(node.count) && live == u64::from(node.live);
    last_live.filter(|_| is_counted).map(|last| (node, last)).ok_or(0)
}

/// Returns whether names and values are whole, and end where they have to.
fn fills_its_place(mut fields: Fields<'_>) -> bool {
    // Each name and each value has at least one byte.
    let is_possible = fields.left <= fields.reader.remaining() as u64;
    let mut is_whole = || {
        let name = fields.names.as_mut().unwrap_or(&mut fields.reader).bytes();
        name.is_some() && value::check(&mut fields.reader).is_some()
    };
    is_possible
        && (0..fields.left).all(|_| is_whole())
        && fields.reader.is_at_end()
        && fields.names.is_none_or(|names| names.is_at_end())
}

/// Sizes of an entry in a given node.
struct Form {
    ms: u64,
    seq: u64,
    has_same_names: bool,
    /// Bytes after the length.
    bytes: usize,
}

impl Form {
    fn of(node: &Node, id: StreamId, fields: &[&[u8]]) -> Form {
        let ms = id.ms - node.first.ms;
        let seq = if ms == 0 { id.seq - node.first.seq } else { id.seq };
        let has_same_names = node.names.are_those_of(fields);
        let values: usize = fields.iter().skip(1).step_by(2).map(|value| value::size(value)).sum();
        let names = if has_same_names {
            0
        } else {
            let names: usize = names_of(fields).map(reader::size_of_bytes).sum();
            varint::size(fields.len() as u64 / 2) + names
        };
        let bytes = 1 + varint::size(ms) + varint::size(seq) + names + values;
        Form { ms, seq, has_same_names, bytes }
    }
}

fn names_of<'a>(fields: &[&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    fields.iter().step_by(2).copied()
}

fn set_counters(bytes: &mut [u8], count: u16, live: u16) {
    bytes[..LIVE_AT].copy_from_slice(&count.to_le_bytes());
    bytes[LIVE_AT..2 * LIVE_AT].copy_from_slice(&live.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64, seq: u64) -> StreamId {
        StreamId::new(ms, seq)
    }

    /// A node of entries with equal and with other fields, some in the same millisecond.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![];
        let entries: [(StreamId, &[&[u8]]); 4] = [
            (id(1000, 5), &[b"name", b"a", b"age", b"1"]),
            (id(1000, 7), &[b"name", b"b", b"age", b"22"]),
            (id(1001, 2), &[b"other", b""]),
            (id(5000, 0), &[b"name", b"c", b"age", b"333"]),
        ];
        start(&mut bytes, entries[0].0, entries[0].1);
        entries.iter().for_each(|(id, fields)| append(&mut bytes, 0, *id, fields));
        bytes
    }

    fn live(bytes: &[u8]) -> Vec<StreamId> {
        Node::read(bytes).unwrap().live_slots().map(|slot| slot.id).collect()
    }

    #[test]
    fn entries_keep_their_ids_and_fields() {
        let bytes = sample();
        let (node, last_live) = validate(&bytes).unwrap();
        assert_eq!((node.count, node.live, last_live), (4, 4, id(5000, 0)));
        assert_eq!(node.last(), Some(last_live));
        assert_eq!(live(&bytes), [id(1000, 5), id(1000, 7), id(1001, 2), id(5000, 0)]);
        let all: Vec<Vec<_>> = node.slots().map(|slot| node.fields(&slot).collect()).collect();
        let (name, age, other) = (&b"name"[..], &b"age"[..], &b"other"[..]);
        assert_eq!(all[1], [(name, Entry::Bytes(b"b")), (age, Entry::Integer(22))]);
        assert_eq!(all[2], [(other, Entry::Bytes(b""))]);
        assert_eq!(all[3], [(name, Entry::Bytes(b"c")), (age, Entry::Integer(333))]);
        assert_eq!(node.fields(&node.slots().nth(1).unwrap()).len(), 2);
    }

    #[test]
    fn entries_are_found_by_their_position() {
        let bytes = sample();
        let node = Node::read(&bytes).unwrap();
        for slot in node.slots() {
            let again = node.slot(slot.at).unwrap();
            assert_eq!((again.id, again.at), (slot.id, slot.at));
            assert_eq!(again.flags_at, slot.flags_at);
        }
        assert!(node.slot(bytes.len()).is_none() && node.slot(0).is_none());
    }

    #[test]
    fn equal_fields_are_stored_once() {
        let mut bytes = sample();
        let before = bytes.len();
        append(&mut bytes, 0, id(5001, 0), &[b"name", b"d", b"age", b"4"]);
        // Length, flags, two bytes of the time, the sequence, a letter with its length, a number.
        assert_eq!(bytes.len() - before, 1 + 1 + 2 + 1 + 2 + 1);
        let others: [&[&[u8]]; 4] = [
            &[b"name", b"d"],
            &[b"age", b"1", b"name", b"d"],
            &[b"name", b"d", b"age", b"4", b"name", b"e"],
            &[],
        ];
        for (ms, fields) in (6_000..).zip(others) {
            append(&mut bytes, 0, id(ms, 0), fields);
            let (node, _) = validate(&bytes).unwrap();
            let stored = node.fields(&node.slots().last().unwrap());
            let stored = stored.flat_map(|(name, value)| [name.to_vec(), value.to_vec()]);
            assert!(stored.eq(fields.iter().map(|part| part.to_vec())));
        }
    }

    #[test]
    fn deletion_marks_entries() {
        let mut bytes = sample();
        assert!(delete(&mut bytes, id(1000, 7)));
        assert!(!delete(&mut bytes, id(1000, 7)));
        assert!(!delete(&mut bytes, id(1000, 6)));
        assert!(!delete(&mut bytes, id(9000, 0)));
        assert_eq!(live(&bytes), [id(1000, 5), id(1001, 2), id(5000, 0)]);
        assert_eq!(delete_front(&mut bytes, |id, _| id.ms >= 5000), 2);
        assert_eq!(live(&bytes), [id(5000, 0)]);
        assert_eq!(validate(&bytes).unwrap().0.live, 1);
        let compact = compacted(&bytes).unwrap();
        assert_eq!(validate(&compact).unwrap().0.count, 1);
        assert_eq!(live(&compact), [id(5000, 0)]);
        assert!(compact.len() < bytes.len());
    }

    #[test]
    fn an_entry_may_have_a_smaller_id_than_deleted_ones() {
        let mut bytes = sample();
        assert!(delete(&mut bytes, id(5000, 0)) && delete(&mut bytes, id(1001, 2)));
        for new in [id(1000, 9), id(1001, 2)] {
            append(&mut bytes, 0, new, &[b"name", b"d"]);
        }
        assert_eq!(validate(&bytes).unwrap().1, id(1001, 2));
        assert_eq!(live(&bytes), [id(1000, 5), id(1000, 7), id(1000, 9), id(1001, 2)]);
        assert!(delete(&mut bytes, id(1001, 2)) && !delete(&mut bytes, id(1001, 2)));
        assert_eq!(delete_front(&mut bytes, |found, _| found >= id(1000, 9)), 2);
        assert_eq!(live(&bytes), [id(1000, 9)]);
    }

    #[test]
    fn room_is_limited_in_bytes_and_entries() {
        let bytes = sample();
        let fields: [&[u8]; 2] = [b"k", b"v"];
        let has_room = |bytes_limit, entries| {
            super::has_room(&bytes, id(6000, 0), &fields, bytes_limit, entries)
        };
        let mut longer = bytes.clone();
        append(&mut longer, 0, id(6000, 0), &fields);
        assert!(has_room(longer.len(), 5));
        assert!(!has_room(longer.len() - 1, 5));
        assert!(!has_room(longer.len(), 4));
        assert!(has_room(0, 0));
    }

    #[test]
    fn ids_and_names_are_checked() {
        let fields: [&[u8]; 4] = [b"name", b"a", b"age", b"1"];
        let node = |first, others: &[StreamId]| {
            let mut bytes = vec![];
            start(&mut bytes, first, &fields);
            others.iter().for_each(|id| append(&mut bytes, 0, *id, &fields));
            bytes
        };
        assert!(validate(&node(id(1, 0), &[id(1, 0), id(1, 1)])).is_ok());
        assert!(validate(&node(id(1, 0), &[id(1, 1)])).is_err());
        assert!(validate(&node(id(1, 0), &[id(1, 0), id(3, 0), id(2, 0)])).is_err());
        assert!(validate(&node(id(1, 0), &[id(1, 0), id(1, 0)])).is_err());
        assert!(validate(&node(id(1, 0), &[])).is_err());
        // The head has two names, but counts one.
        let mut bytes = node(id(1, 0), &[]);
        bytes[6] = 1;
        append(&mut bytes, 0, id(1, 0), &fields[..2]);
        assert!(validate(&bytes).is_err());
    }

    #[test]
    fn wrong_bytes_are_refused_without_a_panic() {
        let good = sample();
        for length in 0..good.len() {
            assert!(validate(&good[..length]).is_err(), "{length}");
        }
        for seed in 0..20_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes = good.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            // Readers must end on anything; what passes the check must be complete.
            if let Some(node) = Node::read(&bytes) {
                node.slots().for_each(|slot| node.fields(&slot).for_each(drop));
            }
            if let Ok((node, _)) = validate(&bytes) {
                assert_eq!(node.slots().count(), usize::from(node.count), "seed {seed}");
                for slot in node.slots() {
                    let fields = node.fields(&slot);
                    assert_eq!(fields.len(), fields.count(), "seed {seed}");
                }
            }
        }
    }
}
