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
use super::node;
use super::pending::Pending;
use super::reader::{Reader, put_bytes, put_id};
use super::{Head, Stream, StreamId};
use crate::{Corrupt, varint};

const PACKED: u8 = 0;
const LARGE: u8 = 1;

impl Stream {
    /// Appends the stream to `out`.
    pub fn serialize(&self, out: &mut Vec<u8>) {
        match self {
            Stream::Packed(bytes) => {
                out.push(PACKED);
                out.extend_from_slice(bytes);
            }
            Stream::Large(large) => {
                out.push(LARGE);
                large.write(out);
            }
        }
    }

    /// Reads a stream that fills `bytes`.
    ///
    /// # Errors
    /// The first rule that the bytes violate.
    pub fn deserialize(bytes: &[u8]) -> Result<Stream, Corrupt> {
        match bytes {
            [PACKED, packed @ ..] => {
                validate_packed(packed).map_err(|corrupt| corrupt.behind(1))?;
                Ok(Stream::Packed(packed.to_vec()))
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
        node => validate_node(node, at, head.last_id)?,
    };
    validate_head(&head, length)
}

/// Checks a node that begins at `at`. Returns its number of live entries.
fn validate_node(bytes: &[u8], at: usize, last_id: StreamId) -> Result<u64, Corrupt> {
    let node = node::validate(bytes)
        .map_err(|offset| Corrupt::at(at + offset, "a node consists of complete entries"))?;
    let is_below = node.last().is_some_and(|last| last <= last_id);
    let live = u64::from(node.live);
    is_below.then_some(live).ok_or(Corrupt::at(at, "no entry has an id above the last id"))
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

impl Large {
    fn write(&self, out: &mut Vec<u8>) {
        self.head.write(out);
        varint::write(self.log.nodes().len() as u64, out);
        self.log.nodes().values().for_each(|node| put_bytes(out, node));
        varint::write(self.groups.iter().len() as u64, out);
        for (name, group) in self.groups.iter() {
            put_bytes(out, name);
            group.write(out);
        }
    }
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
            let live = validate_node(bytes, at, head.last_id)?;
            let node = node::Node::read(bytes).ok_or(Corrupt::at(at, "a node has a head"))?;
            if last.is_some_and(|last| last >= node.first) {
                return Err(Corrupt::at(at, "nodes are in ascending order"));
            }
            last = node.last();
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
