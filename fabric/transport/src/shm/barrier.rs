// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory barriers in other processes, which a side needs before it sleeps
//! ([`sleep`](freeport_ring::sleep)).

use std::sync::OnceLock;

/// Returns whether this process can make others execute a barrier, and has registered for theirs.
pub fn has_membarrier() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let register = libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    *REGISTERED.get_or_init(|| membarrier(register) && pass_everywhere())
}

/// Makes all registered processes execute a barrier. Returns false if the system refuses.
pub fn pass_everywhere() -> bool {
    membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED)
}

fn membarrier(command: i32) -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
