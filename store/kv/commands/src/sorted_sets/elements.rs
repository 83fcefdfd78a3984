// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies with elements. With scores, version 2 has members and scores in turn in one array;
//! version 3 has an array of a member and its score for each element.

use freeport_kv_protocol::resp::{Version, Writer};
use freeport_kv_types::Entry;

use crate::entries::bulk;

/// Writes elements, with their scores if `has_scores`.
pub fn write<'v>(
    reply: &mut Writer<'_>,
    elements: impl ExactSizeIterator<Item = (Entry<'v>, f64)>,
    has_scores: bool,
) {
    write_header(reply, elements.len(), has_scores);
    for (member, score) in elements {
        write_element(reply, member, has_scores.then_some(score));
    }
}

/// Writes the header of an array of elements.
pub fn write_header(reply: &mut Writer<'_>, elements: usize, has_scores: bool) {
    let is_flat = has_scores && reply.version() == Version::Two;
    reply.array(if is_flat { 2 * elements } else { elements });
}

/// Writes one element of such an array.
pub fn write_element(reply: &mut Writer<'_>, member: Entry<'_>, score: Option<f64>) {
    if score.is_some() && reply.version() == Version::Three {
        reply.array(2);
    }
    bulk(reply, member);
    if let Some(score) = score {
        reply.double(score);
    }
}
