// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `SO_LINGER` with a time: `close` waits until the peer's end has what was sent, or the time is
//! over.
//!
//! The kernel has delivered what lies in the peer's receive buffer, whether it was read or not. So
//! of what lies in a ring only what exceeds such a buffer is waited for.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use crate::state::slot::Slot;
use freeport_sockets_proto::slab::flag;

/// Ticks of a second, about.
const SECOND_TICKS: u64 = 2_400_000_000;

impl Stream {
    /// Before the last descriptor of all is closed: waits for as long as the application wants.
    pub fn lingers(&self, descriptor: i32) {
        if self.is_unix() || !self.shared.is(phase::LOOKS) {
            return;
        }
        let Some(slot) = self.slot().filter(|slot| slot.unreceived_bytes() > 0) else { return };
        let Some(seconds) = lingering_seconds(descriptor) else { return };
        let delivered = receive_buffer(descriptor) / 2;
        let (since, most) = (raw::ticks(), u64::from(seconds).saturating_mul(SECOND_TICKS));
        slot.say(flag::ENDED);
        while self.is_delivering(&slot, descriptor, delivered)
            && raw::ticks().wrapping_sub(since) < most
            // A signal ends it.
            && raw::wait(-1, 0, 1) != Err(libc::EINTR)
        {}
    }

    fn is_delivering(&self, slot: &Slot, descriptor: i32, delivered: u64) -> bool {
        slot.unreceived_bytes() > delivered
            && slot.peer_said() & (flag::CLOSED | flag::DEAF) == 0
            && !self.is_peer_gone(descriptor, slot)
            && !self.is_returning(self.shared.phase())
            && !self.has_data(slot)
    }
}

/// How many seconds a descriptor lingers, if that is some time.
fn lingering_seconds(descriptor: i32) -> Option<u32> {
    let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
    raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_LINGER, &mut linger).ok()?;
    u32::try_from(linger.l_linger).ok().filter(|seconds| linger.l_onoff != 0 && *seconds > 0)
}

/// Bytes of a receive buffer, as the application sees them: half of that is for what it costs to
/// keep them.
fn receive_buffer(descriptor: i32) -> u64 {
    let mut bytes = 0_i32;
    _ = raw::get_option(descriptor, libc::SOL_SOCKET, libc::SO_RCVBUF, &mut bytes);
    u64::from(bytes.unsigned_abs())
}
