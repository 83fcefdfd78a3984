// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection of a memcached client to a whole server, without sockets.

use freeport_kv_items::serve_untrusted;

/// Serves a connection that receives these bytes. Where they are cut does not matter.
pub fn memcached_server(bytes: &[u8]) {
    // Replies tell times and counts of the process, so they are not compared.
    serve_untrusted(bytes);
}
