// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections whose handshake of TLS or of shared memory takes too long. They would hold a place
//! among the clients.

use std::time::Duration;

use super::Worker;

/// Milliseconds between two looks at all connections.
const LOOK_MS: u64 = 1_000;
/// Time for a handshake in a server without TLS.
const FABRIC_LIMIT: Duration = Duration::from_secs(10);

impl Worker {
    /// Ends connections that had their time for a handshake.
    pub(super) fn end_late_handshakes(&mut self) {
        let core = &mut self.core;
        let tls = &core.shared.configuration.tls;
        if tls.is_none() && !core.shared.options.has_fabric() {
            return;
        }
        if core.now_ms < core.network.next_handshakes_ms {
            return;
        }
        let limit = tls.as_ref().map_or(FABRIC_LIMIT, |tls| tls.handshake_timeout);
        core.network.next_handshakes_ms = core.now_ms + LOOK_MS;
        let connections = core.network.connections.iter();
        let late = connections.filter(|(_, connection)| connection.stream.is_late(limit));
        let late: Vec<u64> = late.map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.disconnect(id));
    }
}
