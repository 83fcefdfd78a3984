// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that wait on a stream while another thread closes its last descriptor.
//!
//! The kernel holds the socket for them: it ends when the last of them is over, and until then the
//! peer sees nothing of it. Here the stream goes on under a descriptor of the library's own, which
//! whoever leaves as the last one closes. The number that the calls were made with is somebody
//! else's by then perhaps, so they [ask](Stream::open_as) for the one that holds, once they have
//! waited.

use crate::kernel::errno;
use crate::process;
use crate::state::connections::Stream;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::OnceLock;

/// What a process knows of such calls on a stream. All zero: there are none.
#[derive(Debug)]
pub struct Inside {
    /// Calls that may be waiting.
    calls: AtomicU32,
    /// The descriptor under which it goes on, counted from 1; 0: it is not closed.
    own: AtomicI32,
}

/// Closes the library's own descriptor of a stream, which the rooms above do. Set when the library
/// is loaded.
static CLOSE: OnceLock<fn(i32)> = OnceLock::new();

/// Sets the function that closes the library's own descriptor of a stream, once.
pub fn set_close(close: fn(i32)) {
    _ = CLOSE.set(close);
}

impl Inside {
    /// There are none.
    pub fn forget(&self) {
        self.forget_calls();
        self.own.store(0, Ordering::Relaxed);
    }

    /// No call is waiting, whatever was counted.
    pub fn forget_calls(&self) {
        self.calls.store(0, Ordering::Relaxed);
    }

    /// Whether calls may be waiting.
    pub fn has_calls(&self) -> bool {
        self.calls.load(Ordering::SeqCst) != 0
    }

    /// The stream goes on under the library's own descriptor.
    pub fn goes_on_as(&self, own: i32) {
        self.own.store(own + 1, Ordering::SeqCst);
    }

    /// The library's own descriptor, which it no longer has for the stream.
    pub fn take_own(&self) -> Option<i32> {
        self.own.swap(0, Ordering::SeqCst).checked_sub(1).filter(|own| *own >= 0)
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
        let inside = &self.local.inside;
        if inside.calls.fetch_sub(1, Ordering::SeqCst) == 1
            && let Some(own) = inside.take_own()
            && let Some(close) = CLOSE.get()
        {
            close(own);
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
}
