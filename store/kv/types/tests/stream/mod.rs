// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of streams: random commands against a plain model, and against a real server.

mod command;
mod differential;
mod memory;
mod model;
mod server;
mod walk;

use freeport_kv_types::Limits;

/// Limits with this number of entries in a node.
fn limits(entries: usize, bytes: usize) -> Limits {
    let mut limits = Limits::default();
    limits.stream_node_entries = entries;
    limits.stream_node_bytes = bytes;
    limits
}
