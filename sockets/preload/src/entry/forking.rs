// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making children, with and without memory of their own, and moving to other networks. `fork`
//! calls handlers before and after it, in which sockets are shared; the others do not.

use crate::kernel::errno;
use crate::kernel::next::{Next, next};
use crate::life::forking::{self, Fork};
use crate::process::guests;
use crate::reuse;
use core::ffi::{c_int, c_void};

/// `fork(2)`. If it fails, the sharing is taken back.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fork() -> libc::pid_t {
    let fork = Fork::new();
    let child = next!(fork() -> libc::pid_t);
    if child != 0 {
        fork.has_made(child);
    }
    child
}

/// Before a `vfork`: returns the replaced function, or one that fails.
extern "C" fn before_guest() -> *const c_void {
    extern "C" fn there_is_none() -> c_int {
        errno::fail(libc::ENOSYS) as c_int
    }
    static NEXT: Next = Next::new(c"vfork");
    guests::may_come();
    let next = NEXT.get();
    if next.is_null() { there_is_none as *const c_void } else { next }
}

// `vfork` returns twice, so nothing may be on the stack when it is called: the replaced function is
// not called but jumped to.
macro_rules! vfork {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[cfg(target_arch = "x86_64")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {before}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                before = sym before_guest,
            )
        }
    };
}

vfork!(
    /// `vfork(2)`.
    vfork
);
vfork!(
    /// The other name of `vfork`.
    __vfork
);

/// `unshare(2)`: in another network, the same addresses belong to other hosts.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn unshare(flags: c_int) -> c_int {
    if flags & libc::CLONE_NEWNET != 0 {
        reuse::stops();
    }
    next!(unshare(flags: c_int) -> c_int)
}

/// `setns(2)`: the kind of the namespace may be given by its descriptor alone.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn setns(fd: c_int, kind: c_int) -> c_int {
    if kind == 0 || kind & libc::CLONE_NEWNET != 0 {
        reuse::stops();
    }
    next!(setns(fd: c_int, kind: c_int) -> c_int)
}

/// `_Fork(3)`.
#[cfg_attr(test, expect(non_snake_case, reason = "it is called so"))]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn _Fork() -> libc::pid_t {
    forking::fork_by(|| next!(_Fork() -> libc::pid_t) as isize) as libc::pid_t
}

/// `clone(2)`. The arguments after the fourth exist only if the flags request them; otherwise their
/// values are meaningless.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn clone(
    function: *const c_void,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    number_here: *mut libc::pid_t,
    thread: *mut c_void,
    number_there: *mut libc::pid_t,
) -> c_int {
    let make = || {
        next!(clone(function: *const c_void, stack: *mut c_void, flags: c_int,
            argument: *mut c_void, number_here: *mut libc::pid_t, thread: *mut c_void,
            number_there: *mut libc::pid_t) -> c_int)
    };
    forking::child_by(u64::from(flags.cast_unsigned()), || make() as isize) as c_int
}

/// The other name of [`clone`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __clone(
    function: *const c_void,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    number_here: *mut libc::pid_t,
    thread: *mut c_void,
    number_there: *mut libc::pid_t,
) -> c_int {
    // SAFETY: the caller upholds the contract of the libc function this replaces.
    unsafe { clone(function, stack, flags, argument, number_here, thread, number_there) }
}
