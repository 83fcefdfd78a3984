// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often others have got the processor that a thread would have gone on using.

use core::cell::Cell;

std::thread_local! {
    /// What the kernel had counted when it was asked last.
    static COUNTED: Cell<libc::c_long> = const { Cell::new(0) };
}

/// Whether another thread of the machine has had the processor of this one, which did not sleep,
/// since that was asked last. Time that the hypervisor or an interrupt takes is not counted.
pub fn have_been() -> bool {
    // SAFETY: all zero is a valid value.
    let mut used: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: room for what is used.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut used) };
    COUNTED.with(|counted| counted.replace(used.ru_nivcsw) != used.ru_nivcsw)
}
