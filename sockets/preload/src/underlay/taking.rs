// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Looking at doorbells, and taking them.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use core::sync::atomic::Ordering;
use freeport_sockets_proto::slab::flag;

/// Number of doorbells that are looked at together.
pub const DOORBELLS: usize = 64;

impl Stream {
    /// Takes the doorbells that were seen, unless other sleepers need them to wake. As long as the
    /// stream comes through the kernel, they are bytes of it. False: they are still there.
    fn take_doorbells(&self, descriptor: i32, seen: usize, others: Others) -> bool {
        if !self.shared.is(phase::RECEIVES) || others.sleep(self) {
            return false;
        }
        // The connection does not come back into the kernel while this is held.
        let Some(_half) = self.shared.receive.take(self.shared.is_alone()) else { return false };
        // No thread announces a sleep either: the doorbells seen are for earlier sleepers.
        if others.sleep(self) {
            return false;
        }
        let Some(slot) = self.slot() else { return false };
        let said = slot.peer_said();
        if !self.shared.is(phase::RECEIVES)
            || self.shared.is(phase::STOPS)
            || said & (flag::STOPS | flag::LEAVES) != 0
        {
            // Arriving bytes may belong to the stream again.
            return false;
        }
        // Others may have taken those that were seen, and the peer may be leaving its ring: so this
        // takes no more than the peer has counted. A doorbell that is being sent is counted, and
        // nothing else arrives before it.
        let left = slot.peer_rang().saturating_sub(self.shared.rung.load(Ordering::Relaxed));
        let seen = usize::try_from(left).map_or(seen, |left| seen.min(left));
        let mut bytes = [0; DOORBELLS];
        let Some(bytes) = bytes.get_mut(..seen).filter(|bytes| !bytes.is_empty()) else {
            return false;
        };
        let result = raw::receive(descriptor, bytes, libc::MSG_DONTWAIT);
        self.shared.rung.fetch_add(result.unwrap_or(0) as u64, Ordering::Relaxed);
        self.kernel_said(result);
        true
    }

    /// Takes all doorbells, before the socket is closed.
    pub fn take_all_doorbells(&self, descriptor: i32) {
        let mut bytes = [0; DOORBELLS];
        while self.shared.is(phase::RECEIVES)
            && raw::receive(descriptor, &mut bytes, libc::MSG_DONTWAIT) == Ok(DOORBELLS)
        {}
    }

    /// Looks at the underlay, and takes its doorbells if at most `sleepers` threads sleep on the
    /// socket. Sleeping sets have to look again.
    pub fn look_at_underlay(&self, descriptor: i32, sleepers: u32) {
        self.look(descriptor, Others::Beyond(sleepers));
    }

    /// Looks at the underlay, and takes its doorbells if no thread sleeps, in a set or not. True:
    /// there were some.
    pub fn glance_at_underlay(&self, descriptor: i32) -> bool {
        self.look(descriptor, Others::Any)
    }

    fn look(&self, descriptor: i32, others: Others) -> bool {
        let mut bytes = [0; DOORBELLS];
        let result = raw::receive(descriptor, &mut bytes, libc::MSG_PEEK | libc::MSG_DONTWAIT);
        self.has_looked(descriptor, result, others);
        matches!(result, Ok(1..))
    }

    /// Handles the result of a look at the underlay, and takes the doorbells if none of `others`
    /// sleep. False: some doorbells stay.
    pub fn has_looked(&self, descriptor: i32, result: raw::Result, others: Others) -> bool {
        self.kernel_said(result);
        let Ok(seen @ 1..) = result else { return true };
        let are_taken = self.take_doorbells(descriptor, seen, others);
        if !are_taken {
            self.look_behind_doorbells(descriptor);
        }
        are_taken
    }

    /// Takes the doorbells that are there, if that is possible now.
    pub fn take_doorbells_that_stay(&self, descriptor: i32) -> bool {
        let mut bytes = [0; DOORBELLS];
        let result = raw::receive(descriptor, &mut bytes, libc::MSG_PEEK | libc::MSG_DONTWAIT);
        self.has_looked(descriptor, result, Others::Beyond(1))
    }
}

/// The sleepers that doorbells have to wake.
#[derive(Clone, Copy)]
pub enum Others {
    /// Those beyond that number of sleepers on the socket itself.
    Beyond(u32),
    /// Any sleeper on the socket, or in a set that has it.
    Any,
}

impl Others {
    fn sleep(self, stream: &Stream) -> bool {
        let sleepers = stream.shared.sleepers.load(Ordering::SeqCst);
        match self {
            Self::Beyond(count) => sleepers > count,
            Self::Any => sleepers > 0 || stream.shared.announced.load(Ordering::SeqCst) > 0,
        }
    }
}
