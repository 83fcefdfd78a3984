// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether processes can make each other pass a memory barrier, which who goes to sleep has to
//! ([`sleep`](freeport_ring::sleep)).

use std::sync::OnceLock;

/// Whether this process can make others pass a barrier, and has said that it can be made to.
pub fn has_membarrier() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let register = libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    *REGISTERED.get_or_init(|| membarrier(register) && pass_everywhere())
}

/// Makes all registered processes pass a barrier, wherever they are. False: it is refused.
pub fn pass_everywhere() -> bool {
    membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED)
}

fn membarrier(command: i32) -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
