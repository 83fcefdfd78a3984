// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that wait on a stream while another thread closes its last descriptor.
//!
//! The kernel keeps the socket open for such calls: it ends when the last of them returns, and the
//! peer notices nothing until then. Here the stream stays open under a descriptor of the library's
//! own, which the last call to return closes. The number that the calls were made with may belong
//! to another file by then, so after each wait they use [`open_as`](Stream::open_as).

use crate::kernel::errno;
use crate::process;
use crate::state::connections::Stream;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::OnceLock;

/// The waiting calls of a process on a stream. All zero: none.
#[derive(Debug)]
pub struct Inside {
    /// Number of calls that may be waiting.
    calls: AtomicU32,
    /// The library's own descriptor, counted from 1; 0: the stream is not closed.
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
    /// Resets it, for a new socket.
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

    /// Sets the library's own descriptor, under which the stream stays open.
    pub fn continues_as(&self, own: i32) {
        self.own.store(own + 1, Ordering::SeqCst);
    }

    /// The last call has returned: closes the library's own descriptor, if there is one.
    #[cold]
    #[inline(never)]
    fn has_no_calls(&self) {
        if let Some(own) = self.take_own()
            && let Some(close) = CLOSE.get()
        {
            close(own);
        }
    }

    /// The library's own descriptor, which it no longer has for the stream.
    pub fn take_own(&self) -> Option<i32> {
        self.own.swap(0, Ordering::SeqCst).checked_sub(1).filter(|own| *own >= 0)
    }
}

/// Counts a call as waiting until this is dropped.
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
    /// Counts a call with these flags, if it may wait while another thread closes the descriptor.
    #[inline]
    pub fn enter(&self, flags: i32) -> Caller<'_> {
        if process::has_one_thread() || !self.blocks(flags) {
            return Caller(None);
        }
        self.local.inside.calls.fetch_add(1, Ordering::SeqCst);
        Caller(Some(self))
    }

    #[inline]
    fn is_left(&self) {
        if self.local.inside.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.local.inside.has_no_calls();
        }
    }

    /// The descriptor that a call has to use from now on which was made with `descriptor`.
    #[inline]
    pub fn open_as(&self, descriptor: i32) -> i32 {
        match self.local.inside.own.load(Ordering::SeqCst) {
            0 => descriptor,
            own => own - 1,
        }
    }

    /// Calls the kernel with the application's descriptor, unless that was closed since and may
    /// belong to another file.
    #[inline]
    pub fn unless_closed(&self, kernel: impl Fn() -> isize) -> isize {
        match self.local.inside.own.load(Ordering::SeqCst) {
            0 => kernel(),
            _ => errno::fail(libc::EBADF),
        }
    }
}
