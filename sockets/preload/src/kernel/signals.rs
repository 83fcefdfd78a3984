// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the process does when signals come.

use super::raw;

/// Whether each signal that has a handler has one behind which calls go on (`SA_RESTART`). Where
/// only some do, it is not known which one has just come, and calls go on as well: programs that
/// want theirs to end are those that have no other handlers, as far as they sleep in calls.
#[cold]
pub fn do_calls_go_on() -> bool {
    let (mut some_restart, mut some_end) = (false, false);
    for signal in 1..=SIGNALS {
        let Ok(action) = raw::signal_action(signal) else { continue };
        if action.handler > libc::SIG_IGN {
            let restarts = action.flags & libc::SA_RESTART as usize != 0;
            some_restart |= restarts;
            some_end |= !restarts;
        }
    }
    some_restart || !some_end
}

/// The signals that Linux has.
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
            let found = raw::signal_action(libc::SIGUSR2).expect("it can be asked for");
            assert_eq!(found.handler, action.sa_sigaction);
            found.flags & libc::SA_RESTART as usize != 0
        };
        assert_eq!([handle(0), handle(libc::SA_RESTART)], [false, true]);
        assert!(do_calls_go_on());
    }
}
