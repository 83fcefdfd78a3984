// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of a TCP connection whose streams are in rings, as `TCP_INFO` reports it. The kernel's
//! own connection stays established for doorbells after both directions have ended.

use crate::state::connection::phase;
use crate::state::connections::Stream;
use freeport_sockets_proto::slab::flag;

/// Its own end was sent and acknowledged.
const FIN_WAIT2: u8 = 5;
/// The connection is over.
const CLOSE: u8 = 7;
/// The peer has ended its stream.
const CLOSE_WAIT: u8 = 8;

impl Stream {
    /// The state, if it differs from the kernel's.
    #[cold]
    pub fn tcp_state(&self) -> Option<u8> {
        let slot = self.slot().filter(|_| self.shared.is(phase::ATTACHED) && !self.is_unix())?;
        if self.is_answered() {
            return None;
        }
        if self.has_no_peer() {
            return Some(CLOSE);
        }
        let has_peer_ended = slot.peer_said() & (flag::ENDED | flag::CLOSED) != 0;
        match self.shared.is(phase::ENDED) {
            true => Some(FIN_WAIT2),
            false => has_peer_ended.then_some(CLOSE_WAIT),
        }
    }
}
