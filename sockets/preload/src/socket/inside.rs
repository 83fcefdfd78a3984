// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that wait on a stream while another thread closes its last descriptor.
//!
//! The kernel holds the socket for them: it ends when the last of them is over, and until then the
//! peer sees nothing of it. Here the stream goes on under a descriptor of the library's own, which
//! whoever leaves as the last one closes. The number that the calls were made with is somebody
//! else's by then perhaps, so they [ask](Stream::open_as) for the one that holds, once they have
//! waited.

use crate::kernel::{errno, raw};
use crate::process;
use crate::reuse::entries;
use crate::socket::connections::Stream;
use crate::socket::opening;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// What a process knows of such calls on a stream. All zero: there are none.
#[derive(Debug)]
pub struct Inside {
    /// Calls that may be waiting.
    calls: AtomicU32,
    /// The descriptor under which it goes on, counted from 1; 0: it is not closed.
    own: AtomicI32,
}

impl Inside {
    /// There are none.
    pub fn forget(&self) {
        self.calls.store(0, Ordering::Relaxed);
        self.own.store(0, Ordering::Relaxed);
    }
}

/// That a call may be waiting, until this is dropped.
pub struct Caller<'a>(Option<&'a Stream>);

impl Drop for Caller<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(stream) = self.0 {
            stream.is_left();
        }
    }
}

impl Stream {
    /// Counts a call with these flags, if it may wait and another thread may close the descriptor
    /// meanwhile.
    #[inline]
    pub fn enter(&self, flags: i32) -> Caller<'_> {
        if process::has_one_thread() || !self.blocks(flags) {
            return Caller(None);
        }
        self.local.inside.calls.fetch_add(1, Ordering::SeqCst);
        Caller(Some(self))
    }

    #[cold]
    fn is_left(&self) {
        if self.local.inside.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.ends_if_closed();
        }
    }

    /// The descriptor under which a call goes on that was made with this one.
    #[inline]
    pub fn open_as(&self, descriptor: i32) -> i32 {
        match self.local.inside.own.load(Ordering::SeqCst) {
            0 => descriptor,
            own => own - 1,
        }
    }

    /// Calls the kernel with the descriptor that the application has given, unless that is closed
    /// since, and may be somebody else's.
    #[inline]
    pub fn unless_closed(&self, kernel: impl Fn() -> isize) -> isize {
        match self.local.inside.own.load(Ordering::SeqCst) {
            0 => kernel(),
            _ => errno::fail(libc::EBADF),
        }
    }

    /// Before the last descriptor of this process is closed: where calls are inside, the stream
    /// goes on under another one for them.
    pub fn goes_on_for_callers(&self, descriptor: i32) {
        let inside = &self.local.inside;
        let is_last = self.local.copies.load(Ordering::Relaxed) == 1;
        if !is_last || inside.calls.load(Ordering::SeqCst) == 0 {
            return;
        }
        if self.open_as(-1) == descriptor {
            // The program closes what it has not opened.
            inside.own.store(0, Ordering::SeqCst);
            return;
        }
        let Some(own) = entries::copy_of(descriptor) else { return };
        opening::note_same(descriptor, own);
        inside.own.store(own + 1, Ordering::SeqCst);
        if inside.calls.load(Ordering::SeqCst) == 0 {
            self.ends_if_closed();
        }
    }

    /// Closes the library's own descriptor, if there is one.
    #[cold]
    fn ends_if_closed(&self) {
        let own = self.local.inside.own.swap(0, Ordering::SeqCst);
        if own != 0 {
            opening::is_closing(own - 1);
            _ = raw::close(own - 1);
        }
    }

    /// In the child of a fork, where no other thread goes on.
    pub fn has_no_callers(&self) {
        self.local.inside.calls.store(0, Ordering::Relaxed);
        self.ends_if_closed();
    }
}
