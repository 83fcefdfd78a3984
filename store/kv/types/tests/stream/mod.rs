// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of streams: random commands against a plain model.

mod model;
mod walk;

use freeport_kv_types::Limits;

/// Limits with this number of entries and bytes in a node; 0 is no limit.
fn limits(stream_node_entries: usize, stream_node_bytes: usize) -> Limits {
    Limits { stream_node_entries, stream_node_bytes, ..Limits::default() }
}
