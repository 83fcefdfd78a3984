// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Involuntary context switches of the calling thread.

use super::raw::{argument, call};
use core::sync::atomic::{AtomicU64, Ordering};

/// Threads whose counts are kept. Threads that share a place overwrite each other's count, which
/// then looks as if it had changed.
const THREADS: usize = 64;

/// The kernel's count at the last call of [`have_been`], by thread. No thread-local variable: its
/// first use can allocate memory, which a signal handler must not do.
static COUNTED: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];

/// Whether the kernel has run another thread in place of this one, which did not sleep, since the
/// last call. Time taken by the hypervisor or by interrupts does not count.
pub fn have_been() -> bool {
    let (thread, count) = (thread(), counted());
    COUNTED
        .get(thread % THREADS)
        .is_none_or(|counted| counted.swap(count, Ordering::Relaxed) != count)
}

/// The number of this thread.
fn thread() -> usize {
    // SAFETY: no memory is passed.
    (unsafe { call(libc::SYS_gettid, [0; 6]) }).cast_unsigned()
}

/// The kernel's count for this thread.
fn counted() -> u64 {
    // SAFETY: all zero is a valid value.
    let mut used: libc::rusage = unsafe { core::mem::zeroed() };
    let arguments = [argument(libc::RUSAGE_THREAD), &raw mut used as usize, 0, 0, 0, 0];
    // SAFETY: there is room for the answer.
    unsafe { call(libc::SYS_getrusage, arguments) };
    used.ru_nivcsw.cast_unsigned()
}
