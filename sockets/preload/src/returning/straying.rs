// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Children of forks that the library did not see, since the program made them by an instruction of
//! its own: such a child holds its parent's sockets, while the parent assumes that it alone holds
//! them.
//!
//! The child notices with its first call of the library, and marks the sockets (`STRAYS`). The ends
//! of rings are in memory of the parent, and the child has only copies. So the child waits a moment
//! for the parent to share them with its next operation. A parent that does none, perhaps because
//! it waits for the child, has not moved since the fork: then the copies are right, and the child
//! brings the connection back with them.

use crate::kernel::raw;
use crate::state::connection::phase;
use crate::state::connections::Stream;
use core::sync::atomic::Ordering;
use freeport_ring::bytes::ByteReceiver;
use freeport_sockets_proto::Reason;
use freeport_sockets_proto::slab::Ring;

/// Milliseconds that a child waits for its parent.
const PATIENCE: u32 = 20;

impl Stream {
    /// In such a child: marks a socket that it holds together with its parent.
    pub fn strays(&self) {
        if self.local.ends.become_copies() {
            self.shared.mark(phase::STRAYS);
        }
        self.shared.forked.store(true, Ordering::Release);
    }

    /// In the parent, before it closes a descriptor of the socket.
    #[inline]
    pub fn parts_from_stray(&self) {
        if self.shared.is(phase::STRAYS) {
            self.shares_with_stray();
        }
    }

    /// In the parent: shares the ends of the rings. False: this is the child.
    fn shares_with_stray(&self) -> bool {
        let is_parent = self.local.ends.are_here();
        if is_parent {
            self.share_ends();
            if !self.local.ends.are_here() {
                self.shared.unmark(phase::STRAYS);
            }
        }
        is_parent
    }

    /// Before an operation of either.
    #[cold]
    pub fn meets_stray(&self, descriptor: i32) {
        if self.shares_with_stray() {
            return;
        }
        for _ in 0..PATIENCE {
            if !self.shared.is(phase::STRAYS) {
                return;
            }
            raw::sleep_milliseconds(1);
        }
        if self.takes_copies() {
            self.bring_back(descriptor, Reason::Shared);
        } else {
            self.keep(Reason::Shared);
            self.give_up(descriptor);
        }
    }

    /// In the child: uses the copies, if the parent has not moved since the fork as far as the
    /// shared state tells.
    fn takes_copies(&self) -> bool {
        let (send, receive) = (self.shared.send.take(false), self.shared.receive.take(false));
        let (Some((mut send, mut receive)), Some(slot)) = (send.zip(receive), self.slot()) else {
            return false;
        };
        let area = self.shared.receive.area.load(Ordering::Relaxed);
        if !self.local.ends.are_right() {
            return false;
        }
        let is_same = self.with_receiver(&slot, &mut receive, |receiver| {
            ByteReceiver::ring(receiver).capacity() == Ring::capacity(area)
                && slot.available(self, receiver) == Some(slot.unread_bytes() as usize)
        });
        self.leave_ends(&mut send, &mut receive);
        is_same == Some(true)
    }
}
