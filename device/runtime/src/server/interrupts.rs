// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SIGINT and SIGTERM as a request to stop: the program ends between two batches, with everything
//! sent that had come out. A second one ends the process at once.

use std::io;
use std::mem::MaybeUninit;

/// The exit status of a process that a second signal ended.
const ENDED_AT_ONCE: i32 = 130;

/// From now on the first of these signals calls `stop`, which asks the worker to end, and may wait
/// for that. To be called before other threads begin, because they inherit which signals they leave
/// alone.
///
/// # Errors
/// No thread, or the kernel refuses.
pub fn stop_on_interrupts(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: there is room for a set.
    unsafe { libc::sigemptyset(signals.as_mut_ptr()) };
    // SAFETY: `sigemptyset` has initialised it, which cannot fail.
    let mut signals = unsafe { signals.assume_init() };
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(&mut signals, libc::SIGINT) };
    // SAFETY: as above.
    unsafe { libc::sigaddset(&mut signals, libc::SIGTERM) };
    // SAFETY: the set is initialised; null asks for no earlier mask.
    let refused = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut()) };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    let wait = move || {
        let mut signal = 0;
        // SAFETY: both live for the length of the call.
        unsafe { libc::sigwait(&signals, &mut signal) == 0 }
    };
    let take_signals = move || {
        if wait() {
            let asks = std::thread::Builder::new().name("stop".into());
            // Without a thread to ask, only the second signal ends the process.
            let _ = asks.spawn(stop);
        }
        if wait() {
            std::process::exit(ENDED_AT_ONCE);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(take_signals).map(drop)
}
