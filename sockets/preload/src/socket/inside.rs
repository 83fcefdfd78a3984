// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Closing the last descriptor of a stream on which calls wait, as [`inside`](crate::state::inside)
//! says.

use crate::kernel::raw;
use crate::reuse::entries;
use crate::socket::{closing, opening};
use crate::state::connections::Stream;
use core::sync::atomic::Ordering;

impl Stream {
    /// Before the last descriptor of this process is closed: if calls wait on the stream, it stays
    /// open under another one for them.
    pub fn continues_for_callers(&self, descriptor: i32) {
        let inside = &self.local.inside;
        let is_last = self.local.copies.load(Ordering::Relaxed) == 1;
        if !is_last || !inside.has_calls() {
            return;
        }
        if self.open_as(-1) == descriptor {
            // The program closes a descriptor that it has not opened.
            _ = inside.take_own();
            return;
        }
        let Some(own) = entries::copy_of(descriptor) else { return };
        opening::note_same(descriptor, own);
        inside.continues_as(own);
        if !inside.has_calls() {
            self.ends_if_closed();
        }
    }

    /// Closes the library's own descriptor, if there is one.
    #[cold]
    fn ends_if_closed(&self) {
        if let Some(own) = self.local.inside.take_own() {
            close_own(own);
        }
    }

    /// In the child of a fork, where no other thread runs.
    pub fn has_no_callers(&self) {
        self.local.inside.forget_calls();
        self.ends_if_closed();
    }
}

/// Closes the library's own descriptor of a stream.
pub fn close_own(own: i32) {
    closing::is_closing(own);
    _ = raw::close(own);
}
