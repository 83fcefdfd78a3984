// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Edits of a packed stream: a head, and behind it at most one node.

use super::node::{self, Node};
use super::trim::{Cut, Trim};
use super::{Head, StreamId};
use crate::Limits;

/// Replaces the head.
pub fn set_head(bytes: &mut Vec<u8>, head: &Head) {
    let (_, size) = Head::read(bytes);
    replace_head(bytes, size, head);
}

/// Adds an entry, if the stream can stay packed. Otherwise changes nothing and returns false.
pub fn add(bytes: &mut Vec<u8>, id: StreamId, fields: &[&[u8]], limits: &Limits) -> bool {
    let (mut head, at) = Head::read(bytes);
    if bytes.len() == at {
        node::start(bytes, id, fields);
        if !has_room(&bytes[at..], id, fields, limits) {
            bytes.truncate(at);
            return false;
        }
    } else if !has_room(&bytes[at..], id, fields, limits) {
        match compacted(&bytes[at..]).filter(|node| has_room(node, id, fields, limits)) {
            Some(node) => drop(bytes.splice(at.., node)),
            None => return false,
        }
    }
    node::append(bytes, at, id, fields);
    head.note_added(id);
    replace_head(bytes, at, &head);
    true
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
    let mut written = vec![];
    head.write(&mut written);
    bytes.splice(..size, written);
}

fn has_room(node: &[u8], id: StreamId, fields: &[&[u8]], limits: &Limits) -> bool {
    node::has_room(node, id, fields, limits.stream_node_bytes, limits.stream_node_entries)
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
