// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The signal handlers of the process.

use super::raw::{Result, argument, checked_call};
use core::ptr;

/// Whether calls continue after a signal. They do unless there are handlers and none of them has
/// `SA_RESTART`. If only some have it, it is not known which signal has arrived, and calls
/// continue: programs that want a signal to end their calls usually have no other handlers.
#[cold]
pub fn do_calls_continue() -> bool {
    let (mut some_restart, mut some_end) = (false, false);
    for signal in 1..=SIGNALS {
        let Ok(action) = signal_action(signal) else { continue };
        if action.handler > libc::SIG_IGN {
            let restarts = action.flags & libc::SA_RESTART as usize != 0;
            some_restart |= restarts;
            some_end |= !restarts;
        }
    }
    some_restart || !some_end
}

/// The kernel's structure for the action of a signal.
#[derive(Default)]
#[repr(C)]
struct SignalAction {
    /// The handler's address, or `SIG_DFL` or `SIG_IGN`.
    handler: usize,
    /// `SA_RESTART` and others.
    flags: usize,
    restorer: usize,
    mask: u64,
}

/// The action of a signal.
fn signal_action(signal: i32) -> Result<SignalAction> {
    let mut action = SignalAction::default();
    let (place, set_bytes) = (ptr::from_mut(&mut action) as usize, size_of::<u64>());
    let arguments = [argument(signal), 0, place, set_bytes, 0, 0];
    // SAFETY: the place has room for the answer, and lives as long as the call.
    unsafe { checked_call(libc::SYS_rt_sigaction, arguments) }.map(|_| action)
}

/// Number of signals of Linux.
const SIGNALS: i32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_alone_decides() {
        extern "C" fn nothing(_: i32) {}
        let handle = |flags| {
            // SAFETY: all zero is a value of it.
            let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
            action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
            action.sa_flags = flags;
            // SAFETY: the action lives as long as the call, and its handler does nothing.
            unsafe { libc::sigaction(libc::SIGUSR2, &action, core::ptr::null_mut()) };
            let found = signal_action(libc::SIGUSR2).expect("it can be asked for");
            assert_eq!(found.handler, action.sa_sigaction);
            found.flags & libc::SA_RESTART as usize != 0
        };
        assert_eq!([handle(0), handle(libc::SA_RESTART)], [false, true]);
        assert!(do_calls_continue());
    }
}
