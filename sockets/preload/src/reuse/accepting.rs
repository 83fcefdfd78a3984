// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepting: what was connected without the kernel, and what was connected by it.

use super::entries::{self, For};
use super::listener::{self, Sleeper};
use super::recruiting;
use crate::kernel::raw;
use crate::process;
use crate::state::connections::Stream;
use crate::underlay::ASK_TICKS;
use crate::waiting::Wait;
use core::sync::atomic::Ordering;

/// What `accept` has to do.
#[derive(Debug)]
pub enum Way {
    /// It is done: the descriptor, or an error.
    Done(raw::Result<i32>),
    /// The kernel accepts; meanwhile the thread may sleep.
    Kernel(Option<Sleeper>),
}

/// Accepts a connection that was made without the kernel, or says how the kernel does. Who waits
/// looks for both for a while.
pub fn accept(listener: &Stream, descriptor: i32, flags: i32) -> Way {
    entries::sweep();
    if !listener::is_known(listener) {
        return Way::Kernel(None);
    }
    let blocks = !listener.shared.nonblocking.load(Ordering::Relaxed);
    let (mut wait, mut asked) = (Wait::new(), 0);
    loop {
        let is_kernels =
            (!blocks || process::has_one_thread()) && listener::is_turn_of_kernel(listener);
        if !is_kernels
            && listener::is_ready(listener)
            && let Some(result) = listener::take(listener, flags)
        {
            return Way::Done(result);
        }
        if !blocks {
            return Way::Kernel(None);
        }
        let now = raw::ticks();
        let is_time = now.wrapping_sub(asked) >= ASK_TICKS;
        asked = if is_time { now } else { asked };
        let is_over = is_kernels
            || !listener::is_busy(listener)
            || is_time && raw::events(descriptor, libc::POLLIN) != 0
            || !wait.step(|| false);
        if is_over {
            // Also where the kernel has one: another thread may be quicker.
            let (sleeper, is_ready) = Sleeper::new(listener);
            if !is_ready || is_kernels {
                return Way::Kernel(Some(sleeper));
            }
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
