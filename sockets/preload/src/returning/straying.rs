// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Children of forks that nobody was told of, since they were made by an instruction of the program
//! itself: such a child has its parent's sockets, and its parent takes them for its own alone.
//!
//! The child notices with its first call of the library, and marks the sockets (`STRAYS`). As the
//! ends of rings are in memory of the parent, which the child has only copies of, the child waits a
//! moment for the parent to share them with its next operation. A parent that does none, because it
//! waits for the child perhaps, has not moved since the fork: then the copies are right, and the
//! child brings the connection back with them.

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
    /// In such a child: has the socket together with its parent.
    pub fn strays(&self) {
        if self.local.ends.become_copies() {
            self.shared.mark(phase::STRAYS);
        }
        self.shared.forked.store(true, Ordering::Release);
    }

    /// In the parent, before it has a descriptor of it no more.
    #[inline]
    pub fn parts_from_stray(&self) {
        if self.shared.is(phase::STRAYS) {
            self.shares_with_stray();
        }
    }

    /// In the parent: shares what the child needs. False: this is the child.
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

    /// In the child: takes the copies for right, if the parent has not moved since the fork, as far
    /// as what is shared tells.
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
