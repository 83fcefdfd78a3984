// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams as bytes for snapshots, and the check of such bytes.
//!
//! ```text
//! packed:    0 | packed form
//! large:     1 | head | nodes: number, each (byte string) | groups: number, each
//! group:     name | last id | entries read + 1, or 0 | consumers: number, each
//!            | pending entries: number, each (id, delivered, deliveries, consumer)
//! consumer:  name | seen | active + 1, or 0
//! ```
//!
//! Nodes, groups, consumers and pending entries are in ascending order, and a pending entry names
//! its consumer by its place in that order. Memory is taken as elements are read, never for a
//! number that the bytes only promise.

use super::group::{ConsumerNumber, Group};
use super::large::Large;
use super::node::{self, Node};
use super::packed;
use super::pending::Pending;
use super::range::Nodes;
use super::reader::{Reader, put_bytes, put_id};
use super::{Head, Stream, StreamId, StreamRef};
use crate::corrupt::Corrupt;
use crate::limits::Limits;
use crate::varint;

const PACKED: u8 = 0;
const LARGE: u8 = 1;

impl StreamRef<'_> {
    /// Appends the stream to `out`, for [`Stream::deserialize`].
    pub fn serialize(self, out: &mut Vec<u8>) {
        match self.nodes {
            Nodes::One(node) => {
                out.push(PACKED);
                // The stream that never had an entry is the empty byte string.
                if self.head != Head::default() {
                    self.head.write(out);
                    out.extend_from_slice(node);
                }
            }
            Nodes::Many(nodes) => {
                out.push(LARGE);
                self.head.write(out);
                varint::write(nodes.len() as u64, out);
                nodes.values().for_each(|node| put_bytes(out, node));
                let groups = self.groups.into_iter().flat_map(|groups| groups.iter());
                varint::write(self.groups.map_or(0, |groups| groups.iter().len()) as u64, out);
                for (name, group) in groups {
                    put_bytes(out, name);
                    group.write(out);
                }
            }
        }
    }
}

impl Stream {
    /// Reads what [`StreamRef::serialize`] wrote. A packed stream above the limits becomes large.
    ///
    /// # Errors
    /// The first rule that the bytes violate.
    pub fn deserialize(bytes: &[u8], limits: &Limits) -> Result<Stream, Corrupt> {
        match bytes {
            [PACKED, packed @ ..] => {
                validate_packed(packed).map_err(|corrupt| corrupt.behind(1))?;
                let mut stream = Stream::Packed(packed.to_vec());
                if !packed::is_small(packed, limits) {
                    stream.enlarge();
                }
                Ok(stream)
            }
            [LARGE, ..] => {
                let mut input = Input { reader: Reader::new(bytes) };
                input.reader.byte();
                Ok(Stream::Large(Box::new(input.large()?)))
            }
            _ => Err(Corrupt::at(0, "the form of a stream is 0 or 1")),
        }
    }
}

/// Checks a packed stream from outside.
///
/// # Errors
/// The first rule that the bytes violate.
pub fn validate_packed(bytes: &[u8]) -> Result<(), Corrupt> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut reader = Reader::new(bytes);
    let head = Head::take(&mut reader).ok_or(Corrupt::at(0, "a head is five numbers"))?;
    let at = reader.position();
    let length = match reader.rest() {
        [] => 0,
        node => u64::from(validate_node(node, at, head.last_id)?.0.live),
    };
    validate_head(&head, length)
}

/// Checks a node that begins at `at`. Returns it and the id of its last live entry.
fn validate_node(
    bytes: &[u8],
    at: usize,
    last_id: StreamId,
) -> Result<(Node<'_>, StreamId), Corrupt> {
    let (node, last) = node::validate(bytes)
        .map_err(|offset| Corrupt::at(at + offset, "a node consists of complete entries"))?;
    let is_below = last <= last_id;
    is_below.then_some((node, last)).ok_or(Corrupt::at(at, "no entry has an id above the last id"))
}

fn validate_head(head: &Head, length: u64) -> Result<(), Corrupt> {
    if head.max_deleted_id > head.last_id {
        return Err(Corrupt::at(0, "no deleted id is above the last id"));
    }
    if head.entries_added < length {
        return Err(Corrupt::at(0, "every entry was added"));
    }
    Ok(())
}

impl Group {
    fn write(&self, out: &mut Vec<u8>) {
        put_id(out, self.last_id);
        put_option(out, self.entries_read);
        varint::write(self.consumers().len() as u64, out);
        let mut places = vec![];
        for (place, consumer) in self.consumers().enumerate() {
            put_bytes(out, &consumer.name);
            varint::write(consumer.seen_ms, out);
            put_option(out, consumer.active_ms);
            let number = self.number_of(&consumer.name).expect("it is listed") as usize;
            places.resize(places.len().max(number + 1), 0);
            places[number] = place as u64;
        }
        varint::write(self.pending.len() as u64, out);
        for (id, pending) in &self.pending {
            put_id(out, *id);
            varint::write(pending.delivered_ms, out);
            varint::write(pending.deliveries, out);
            varint::write(places[pending.consumer as usize], out);
        }
    }
}

/// Writes a number plus 1, or 0. The largest number counts as unknown.
fn put_option(out: &mut Vec<u8>, value: Option<u64>) {
    varint::write(value.and_then(|value| value.checked_add(1)).unwrap_or(0), out);
}

/// Bytes of a large stream.
struct Input<'a> {
    reader: Reader<'a>,
}

impl<'a> Input<'a> {
    fn large(&mut self) -> Result<Large, Corrupt> {
        let head = Head::take(&mut self.reader).ok_or(self.corrupt("a head is five numbers"))?;
        let mut large = Large { head, ..Large::default() };
        let mut length = 0;
        let mut last = None;
        for _ in 0..self.number()? {
            let bytes = self.bytes()?;
            let at = self.reader.position() - bytes.len();
            let (node, last_live) = validate_node(bytes, at, head.last_id)?;
            if last.is_some_and(|last| last >= node.first) {
                return Err(Corrupt::at(at, "nodes are in ascending order"));
            }
            last = Some(last_live);
            let live = u64::from(node.live);
            length += live;
            large.log.insert(node.first, live, bytes.to_vec());
        }
        validate_head(&head, length).map_err(|corrupt| corrupt.behind(1))?;
        self.groups(&mut large)?;
        if !self.reader.is_at_end() {
            return Err(self.corrupt("nothing lies behind the last group"));
        }
        Ok(large)
    }

    fn groups(&mut self, large: &mut Large) -> Result<(), Corrupt> {
        let mut last: Option<&[u8]> = None;
        for _ in 0..self.number()? {
            let name = self.bytes()?;
            if last.is_some_and(|last| last >= name) {
                return Err(self.corrupt("groups are in ascending order"));
            }
            last = Some(name);
            large.groups.insert(name, self.group()?);
        }
        Ok(())
    }

    fn group(&mut self) -> Result<Group, Corrupt> {
        let last_id = self.id()?;
        let entries_read = self.option()?;
        let mut group = Group::new(last_id, entries_read);
        let mut last: Option<&[u8]> = None;
        let consumers = self.number()?;
        for _ in 0..consumers {
            let name = self.bytes()?;
            if last.is_some_and(|last| last >= name) {
                return Err(self.corrupt("consumers are in ascending order"));
            }
            last = Some(name);
            let seen_ms = self.number()?;
            let number = group.create_consumer(name, seen_ms);
            group.consumer_mut(number).active_ms = self.option()?;
        }
        let mut last = None;
        for _ in 0..self.number()? {
            let id = self.id()?;
            let (delivered_ms, deliveries) = (self.number()?, self.number()?);
            let consumer = self.number()?;
            if last.is_some_and(|last| last >= id) || consumer >= consumers {
                return Err(self.corrupt("pending entries are in order and have a consumer"));
            }
            last = Some(id);
            let consumer = consumer as ConsumerNumber;
            group.assign(id, Pending { delivered_ms, deliveries, consumer });
        }
        Ok(group)
    }

    fn number(&mut self) -> Result<u64, Corrupt> {
        self.reader.number().ok_or(self.corrupt("a number is missing"))
    }

    fn option(&mut self) -> Result<Option<u64>, Corrupt> {
        Ok(self.number()?.checked_sub(1))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Corrupt> {
        self.reader.bytes().ok_or(self.corrupt("a byte string is incomplete"))
    }

    fn id(&mut self) -> Result<StreamId, Corrupt> {
        self.reader.id().ok_or(self.corrupt("an id is two numbers"))
    }

    fn corrupt(&self, reason: &'static str) -> Corrupt {
        Corrupt::at(self.reader.position(), reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Claim, GroupRead, GroupStart, NewId, ReadFrom};

    fn limits() -> Limits {
        Limits { stream_node_entries: 4, ..Limits::default() }
    }

    fn add(stream: &mut Stream, entries: u64) {
        for ms in 1..=entries {
            let value = ms.to_string();
            stream.add(&limits(), NewId::AutoSeq(ms), &[b"f", value.as_bytes()], 0).unwrap();
        }
    }

    /// A stream with several nodes, groups, consumers and pending entries.
    fn large() -> Stream {
        let mut stream = Stream::default();
        stream.create_group(b"g", GroupStart::Last, Some(0)).unwrap();
        stream.create_group(b"h", GroupStart::Last, None).unwrap();
        add(&mut stream, 10);
        let read = GroupRead { from: ReadFrom::New, count: 6, is_acknowledged: false, now_ms: 9 };
        for consumer in [&b"b"[..], b"a", b"c"] {
            stream.read_group(b"g", consumer, &read, |_, _| {}).unwrap();
        }
        let ids = [StreamId::new(2, 0), StreamId::new(8, 0)];
        stream.claim(b"g", b"c", &ids, &Claim::default(), |_| {}).unwrap();
        stream.delete(&ids);
        stream.delete_consumer(b"g", b"a").unwrap();
        stream
    }

    fn bytes(stream: &Stream) -> Vec<u8> {
        let mut out = vec![];
        stream.view().serialize(&mut out);
        out
    }

    #[test]
    fn both_forms_are_read_again() {
        let mut packed = Stream::default();
        add(&mut packed, 3);
        for stream in [Stream::default(), packed, large()] {
            let first = bytes(&stream);
            let again = Stream::deserialize(&first, &limits()).unwrap();
            assert_eq!(bytes(&again), first);
            assert_eq!(again.view().len(), stream.view().len());
            let form = |stream: &Stream| matches!(stream, Stream::Large(_));
            assert_eq!(form(&again), form(&stream));
        }
    }

    #[test]
    fn a_packed_stream_above_the_limits_becomes_large() {
        let mut packed = Stream::default();
        add(&mut packed, 3);
        let narrow = Limits { stream_node_entries: 2, ..Limits::default() };
        let stream = Stream::deserialize(&bytes(&packed), &narrow).unwrap();
        assert!(matches!(stream, Stream::Large(_)));
        assert_eq!(stream.view().len(), 3);
    }

    #[test]
    fn wrong_bytes_are_refused_without_a_panic() {
        let mut packed = Stream::default();
        add(&mut packed, 4);
        packed.delete(&[StreamId::new(2, 0)]);
        for stream in [packed, large()] {
            let good = bytes(&stream);
            for length in 0..good.len() {
                // The head alone, or nothing, is a packed stream without entries.
                let cut = Stream::deserialize(&good[..length], &limits());
                assert!(cut.is_err() || good[0] == PACKED && cut.unwrap().view().is_empty());
            }
            let longer = [&good[..], &[0]].concat();
            assert!(Stream::deserialize(&longer, &limits()).is_err());
            for seed in 0..20_000 {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut wrong = good.clone();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..wrong.len());
                    wrong[at] = random.u8(..);
                }
                // Bytes that are accepted are those of a stream.
                if let Ok(stream) = Stream::deserialize(&wrong, &limits()) {
                    let entries = stream.view().full_info(0).entries.len() as u64;
                    assert_eq!(entries, stream.view().len(), "seed {seed}");
                    let again = Stream::deserialize(&bytes(&stream), &limits());
                    assert!(again.is_ok(), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn errors_have_an_offset() {
        let mut good = bytes(&large());
        assert_eq!(Stream::deserialize(&[], &limits()).unwrap_err().offset, 0);
        assert_eq!(Stream::deserialize(&[9], &limits()).unwrap_err().offset, 0);
        let end = good.len();
        good.push(7);
        let corrupt = Stream::deserialize(&good, &limits()).unwrap_err();
        assert_eq!(corrupt, Corrupt::at(end, "nothing lies behind the last group"));
    }

    #[test]
    fn counters_do_not_contradict_the_entries() {
        let id = |ms| StreamId::new(ms, 0);
        let is_valid = |last_ms, deleted_ms, entries_added| {
            let head = Head { last_id: id(last_ms), max_deleted_id: id(deleted_ms), entries_added };
            let mut packed = vec![];
            head.write(&mut packed);
            node::start(&mut packed, id(1), &[b"f", b"v"]);
            let at = Head::read(&packed).1;
            (1..=2).for_each(|ms| node::append(&mut packed, at, id(ms), &[b"f", b"v"]));
            validate_packed(&packed).is_ok()
        };
        assert!(is_valid(2, 0, 2) && is_valid(5, 5, 9));
        assert!(!is_valid(1, 0, 2) && !is_valid(2, 3, 2) && !is_valid(2, 0, 1));
    }

    #[test]
    fn nodes_do_not_overlap() {
        let node = |times: &[u64]| {
            let mut bytes = vec![];
            let ids = times.iter().map(|ms| StreamId::new(*ms, 0));
            node::start(&mut bytes, StreamId::new(times[0], 0), &[b"f", b"v"]);
            ids.for_each(|id| node::append(&mut bytes, 0, id, &[b"f", b"v"]));
            bytes
        };
        let read = |second: &[u64], last_ms| {
            let mut large = Large::default();
            large.head.last_id = StreamId::new(last_ms, 0);
            large.head.entries_added = 4;
            large.log.insert(StreamId::new(1, 0), 2, node(&[1, 3]));
            large.log.insert(StreamId::new(second[0], 0), 2, node(second));
            Stream::deserialize(&bytes(&Stream::Large(Box::new(large))), &limits()).is_ok()
        };
        assert!(read(&[4, 5], 5));
        assert!(!read(&[3, 5], 5));
        assert!(!read(&[2, 5], 5));
        assert!(!read(&[4, 5], 4));
    }
}
