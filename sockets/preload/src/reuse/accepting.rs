// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepting: what was connected without the kernel, and what was connected by it.

use super::entries::{self, For};
use super::{listener, recruiting};
use crate::kernel::{errno, raw};
use crate::socket::connections::Stream;
use crate::socket::opening;
use crate::waiting::{ASK_TICKS, Wait};

/// What `accept` has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It is done: the descriptor, or an error.
    Done(raw::Result<i32>),
    /// The kernel accepts, and does not wait for that.
    Kernel,
    /// The kernel accepts, perhaps after a while. Then the listener is
    /// [opened](listener::opens) again.
    Sleep,
}

/// Accepts a connection that was made without the kernel, or says how the kernel does. Who waits
/// looks for both for a while.
pub fn accept(listener: &Stream, descriptor: i32, flags: i32) -> Way {
    entries::sweep();
    if !listener::has(listener) {
        return Way::Kernel;
    }
    let blocks = !listener.shared.nonblocking.load(core::sync::atomic::Ordering::Relaxed);
    let (mut wait, mut asked) = (Wait::new(), 0);
    loop {
        if listener::is_ready(listener)
            && let Some(result) = listener::take(listener, flags)
        {
            return Way::Done(result);
        }
        if !blocks {
            return Way::Kernel;
        }
        let now = raw::ticks();
        if now.wrapping_sub(asked) >= ASK_TICKS {
            asked = now;
            if raw::events(descriptor, libc::POLLIN) != 0 {
                return Way::Kernel;
            }
        }
        if wait.step(|| false) {
            continue;
        }
        if !listener::closes(listener) {
            return Way::Sleep;
        }
        listener::opens(listener);
    }
}

/// Says whose connection it is that was accepted, where the program wants to know it, as `accept`
/// does.
pub fn named(new: i32, address: *mut libc::sockaddr, length: *mut libc::socklen_t) -> i32 {
    if address.is_null() {
        return new;
    }
    match raw::address_into(new, address, length) {
        Ok(_) => new,
        Err(error) => {
            // As with the kernel, the connection is lost.
            opening::is_closing(new);
            _ = raw::close(new);
            errno::fail(error) as i32
        }
    }
}

/// The kernel has given a connection: the next ones may come without it.
pub fn is_made(listener: &Stream, stream: &Stream, descriptor: i32) {
    if let Some(number) = listener::counts(listener) {
        let is_still = || listener::is_open(number).is_some();
        recruiting::recruit(stream, descriptor, For::Accepting(number), is_still);
    }
}
