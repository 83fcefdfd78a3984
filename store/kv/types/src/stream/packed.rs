// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Edits of a packed stream: a head, and behind it at most one node.

use super::node::{self, Node};
use super::trim::{Cut, Trim};
use super::{Head, StreamId};
use crate::limits::Limits;

/// Most bytes of a packed stream, also if nodes may be larger: each change copies it.
const MOST_BYTES: usize = 4096;

/// Replaces the head.
pub fn set_head(bytes: &mut Vec<u8>, head: &Head) {
    let (_, size) = Head::read(bytes);
    replace_head(bytes, size, head);
}

/// Adds an entry, if the stream can stay packed. Otherwise changes nothing and returns false.
pub fn add(limits: &Limits, bytes: &mut Vec<u8>, id: StreamId, fields: &[&[u8]]) -> bool {
    let (mut head, at) = Head::read(bytes);
    if bytes.len() == at {
        node::start(bytes, id, fields);
        if !has_room(limits, &bytes[at..], id, fields) {
            bytes.truncate(at);
            return false;
        }
    } else if !has_room(limits, &bytes[at..], id, fields) {
        match compacted(&bytes[at..]).filter(|node| has_room(limits, node, id, fields)) {
            Some(node) => drop(bytes.splice(at.., node)),
            None => return false,
        }
    }
    node::append(bytes, at, id, fields);
    head.note_added(id);
    replace_head(bytes, at, &head);
    true
}

/// Returns whether a packed stream is within the limits.
pub fn is_small(bytes: &[u8], limits: &Limits) -> bool {
    let (_, at) = Head::read(bytes);
    let count = Node::read(&bytes[at..]).map_or(0, |node| usize::from(node.count));
    let is_within = |size: usize, most: usize| most == 0 || size <= most;
    bytes.len() - at <= MOST_BYTES
        && is_within(bytes.len() - at, limits.stream_node_bytes)
        && is_within(count, limits.stream_node_entries)
}

/// Deletes an entry. Returns whether it existed.
pub fn delete(bytes: &mut Vec<u8>, id: StreamId) -> bool {
    let (mut head, at) = Head::read(bytes);
    let is_deleted = node::delete(&mut bytes[at..], id);
    if is_deleted {
        drop_empty_node(bytes, at);
        head.note_deleted(id);
        replace_head(bytes, at, &head);
    }
    is_deleted
}

/// Removes entries from the front. Returns how many were removed.
pub fn trim(bytes: &mut Vec<u8>, trim: &Trim) -> u64 {
    let (_, at) = Head::read(bytes);
    let Some(node) = Node::read(&bytes[at..]) else { return 0 };
    let length = u64::from(node.live);
    match trim.cut(&node, length, 0) {
        Cut::Nothing => 0,
        Cut::Node => {
            bytes.truncate(at);
            length
        }
        Cut::Front => {
            let removed = trim.delete_front(&mut bytes[at..], length);
            drop_empty_node(bytes, at);
            removed
        }
    }
}

fn replace_head(bytes: &mut Vec<u8>, size: usize, head: &Head) {
    let mut written = Vec::with_capacity(Head::MAX_BYTES);
    head.write(&mut written);
    bytes.splice(..size, written);
}

fn has_room(limits: &Limits, node: &[u8], id: StreamId, fields: &[&[u8]]) -> bool {
    let most_bytes = match limits.stream_node_bytes {
        0 => MOST_BYTES,
        bytes => bytes.min(MOST_BYTES),
    };
    let most_entries = limits.stream_node_entries;
    node::has_room(node, id, fields, most_bytes, most_entries)
}

/// Writes a node anew if at least half of it is deleted.
fn compacted(bytes: &[u8]) -> Option<Vec<u8>> {
    let node = Node::read(bytes)?;
    (node.live <= node.count / 2).then(|| node::compacted(bytes))?
}

fn drop_empty_node(bytes: &mut Vec<u8>, at: usize) {
    if Node::read(&bytes[at..]).is_some_and(|node| node.live == 0) {
        bytes.truncate(at);
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::Limits;
    use crate::stream::{NewId, Stream, StreamId, StreamRef, Trim};

    const FIELDS: [&[u8]; 4] = [b"sensor", b"17", b"value", b"20.5"];

    fn filled(limits: &Limits, entries: u64) -> Stream {
        let mut stream = Stream::default();
        for ms in 1..=entries {
            stream.add(limits, NewId::AutoSeq(1_700_000_000_000 + ms), &FIELDS, 0).unwrap();
        }
        stream
    }

    fn is_packed(stream: &Stream) -> bool {
        matches!(stream, Stream::Packed(_))
    }

    #[test]
    fn a_small_stream_is_small() {
        let stream = filled(&Limits::default(), 1);
        // Names and values of the entry are 17 bytes.
        assert_eq!(stream.view().memory_bytes(), 46);
        let stream = filled(&Limits::default(), 2);
        assert_eq!(stream.view().memory_bytes(), 46 + 10);
    }

    #[test]
    fn a_stream_is_packed_up_to_its_limits() {
        let limits = Limits::default();
        assert!(is_packed(&filled(&limits, 100)));
        assert!(!is_packed(&filled(&limits, 101)));
        let mut stream = Stream::default();
        stream.add(&limits, NewId::AutoSeq(1), &[b"field", &[0; 4096]], 0).unwrap();
        assert!(!is_packed(&stream));
        assert_eq!(stream.view().len(), 1);
    }

    #[test]
    fn large_nodes_do_not_make_large_packed_streams() {
        for stream_node_bytes in [0, 1 << 20] {
            let wide = Limits { stream_node_bytes, stream_node_entries: 0, ..Limits::default() };
            let mut stream = filled(&wide, 200);
            assert!(is_packed(&stream) && stream.view().memory_bytes() <= 4096);
            stream.add(&wide, NewId::Auto, &[b"field", &[0; 4096]], 0).unwrap();
            assert!(!is_packed(&stream));
            assert_eq!(stream.view().info().nodes, 1);
        }
    }

    #[test]
    fn a_capped_stream_stays_packed() {
        let limits = Limits::default();
        let mut stream = Stream::default();
        for ms in 1..=1_000 {
            stream.add(&limits, NewId::AutoSeq(ms), &FIELDS, 0).unwrap();
            stream.trim(&Trim::to_length(20));
        }
        assert!(is_packed(&stream));
        let ids = stream.view().range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id.ms);
        assert!(ids.eq(981..=1_000));
    }

    #[test]
    fn an_empty_stream_keeps_its_counters() {
        let limits = Limits::default();
        let mut stream = filled(&limits, 2);
        let first = stream.view().first_id();
        assert_eq!(stream.delete(&[first, first]), 1);
        assert_eq!(stream.trim(&Trim::to_length(0)), 1);
        let Stream::Packed(bytes) = &stream else { panic!("nothing makes it large") };
        let view = StreamRef::from_packed(bytes);
        assert!(view.is_empty());
        assert_eq!((view.last_id(), view.max_deleted_id()), (first.next_ms(), first));
        assert_eq!((view.entries_added(), view.first_id()), (2, StreamId::MIN));
        assert!(stream.add(&limits, NewId::Exact(first), &FIELDS, 0).is_err());
    }

    impl StreamId {
        fn next_ms(self) -> StreamId {
            StreamId::new(self.ms + 1, self.seq)
        }
    }
}
