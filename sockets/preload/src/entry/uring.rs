// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of `liburing` that make rings, and those that submit entries: it makes both system
//! calls by instructions of its own.

mod entries;

use crate::kernel::next::Next;
use crate::life::uring;
use crate::process;
use core::ffi::{c_int, c_uint, c_void};
use core::mem;
use entries::Asked;

/// Calls the replaced function, and returns its result, which is an error below zero.
macro_rules! call {
    ($name:ident($($argument:ident: $kind:ty),*)) => {{
        static NEXT: Next = Next::new(
            // SAFETY: ends with zero, and has none before.
            unsafe {
                core::ffi::CStr::from_bytes_with_nul_unchecked(
                    concat!(stringify!($name), "\0").as_bytes(),
                )
            },
        );
        let found = NEXT.get();
        if found.is_null() {
            return -libc::ENOSYS;
        }
        let function: unsafe extern "C-unwind" fn($($kind),*) -> c_int =
            // SAFETY: the function of that name has this type.
            unsafe { mem::transmute(found) };
        // SAFETY: the arguments are the program's.
        unsafe { function($($argument),*) }
    }};
}

/// Makes a ring with these flags.
fn make(flags: c_uint, make: impl FnOnce() -> c_int) -> c_int {
    if entries::can_be_read(flags) { make() } else { uring::begins(|| make() as isize) as c_int }
}

/// Before the kernel gets the entries of a ring.
fn asks(ring: *mut c_void) {
    // SAFETY: the program's ring, which other threads do not use at the same time.
    if !process::uring::is_used() && unsafe { entries::concern_us(ring.cast::<Asked>()) } {
        uring::takes_sockets();
    }
}

/// Defines a function that submits entries to the kernel.
macro_rules! asking {
    ($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*)) => {
        $(#[$about])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            ring: *mut c_void
            $(, $argument: $kind)*
        ) -> c_int {
            asks(ring);
            call!($name(ring: *mut c_void $(, $argument: $kind)*))
        }
    };
}

asking!(
    /// `io_uring_submit(3)`.
    io_uring_submit()
);
asking!(
    /// `io_uring_submit_and_wait(3)`.
    io_uring_submit_and_wait(count: c_uint)
);
asking!(
    /// `io_uring_submit_and_wait_timeout(3)`.
    io_uring_submit_and_wait_timeout(
        done: *mut c_void, count: c_uint, time: *mut c_void, mask: *mut c_void
    )
);
asking!(
    /// `io_uring_submit_and_wait_min_timeout(3)`.
    io_uring_submit_and_wait_min_timeout(
        done: *mut c_void, count: c_uint, time: *mut c_void, least: c_uint, mask: *mut c_void
    )
);
asking!(
    /// `io_uring_submit_and_wait_reg(3)`.
    io_uring_submit_and_wait_reg(done: *mut c_void, count: c_uint, at: c_int)
);
asking!(
    /// `io_uring_submit_and_get_events(3)`.
    io_uring_submit_and_get_events()
);
asking!(
    /// `io_uring_wait_cqes(3)`, which submits entries as well with older kernels.
    io_uring_wait_cqes(done: *mut c_void, count: c_uint, time: *mut c_void, mask: *mut c_void)
);
asking!(
    /// `io_uring_wait_cqes_min_timeout(3)`, likewise.
    io_uring_wait_cqes_min_timeout(
        done: *mut c_void, count: c_uint, time: *mut c_void, least: c_uint, mask: *mut c_void
    )
);
asking!(
    /// `io_uring_wait_cqe_timeout(3)`, likewise.
    io_uring_wait_cqe_timeout(done: *mut c_void, time: *mut c_void)
);

/// `io_uring_enter(2)`: the entries are in a ring that the library does not know.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_enter(
    fd: c_uint,
    count: c_uint,
    least: c_uint,
    flags: c_uint,
    mask: *mut c_void,
) -> c_int {
    if count > 0 {
        uring::takes_sockets();
    }
    call!(io_uring_enter(fd: c_uint, count: c_uint, least: c_uint, flags: c_uint,
        mask: *mut c_void))
}

/// `io_uring_enter2(2)`, likewise.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_enter2(
    fd: c_uint,
    count: c_uint,
    least: c_uint,
    flags: c_uint,
    argument: *mut c_void,
    bytes: usize,
) -> c_int {
    if count > 0 {
        uring::takes_sockets();
    }
    call!(io_uring_enter2(fd: c_uint, count: c_uint, least: c_uint, flags: c_uint,
        argument: *mut c_void, bytes: usize))
}

/// The flags among the parameters of a ring (`struct io_uring_params`).
///
/// # Safety
/// The pointer is null, or to such parameters.
unsafe fn flags_of(parameters: *const c_void) -> c_uint {
    const FLAGS: usize = 2;
    // SAFETY: the caller upholds it; the words before are there as well.
    let at = parameters.cast::<c_uint>().wrapping_add(FLAGS);
    // SAFETY: as above.
    if parameters.is_null() { 0 } else { unsafe { at.read() } }
}

/// `io_uring_queue_init(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init(
    entries: c_uint,
    ring: *mut c_void,
    flags: c_uint,
) -> c_int {
    make(flags, || call!(io_uring_queue_init(entries: c_uint, ring: *mut c_void, flags: c_uint)))
}

/// `io_uring_queue_init_params(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init_params(
    entries: c_uint,
    ring: *mut c_void,
    parameters: *mut c_void,
) -> c_int {
    // SAFETY: the program's parameters, if there are any.
    let flags = unsafe { flags_of(parameters) };
    make(flags, || {
        call!(io_uring_queue_init_params(entries: c_uint, ring: *mut c_void,
            parameters: *mut c_void))
    })
}

/// `io_uring_queue_init_mem(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init_mem(
    entries: c_uint,
    ring: *mut c_void,
    parameters: *mut c_void,
    memory: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: as above.
    let flags = unsafe { flags_of(parameters) };
    make(flags, || {
        call!(io_uring_queue_init_mem(entries: c_uint, ring: *mut c_void,
            parameters: *mut c_void, memory: *mut c_void, bytes: usize))
    })
}

/// `io_uring_queue_mmap(3)`, for programs that have made the ring themselves.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_mmap(
    fd: c_int,
    parameters: *mut c_void,
    ring: *mut c_void,
) -> c_int {
    uring::begins(|| {
        let make =
            || call!(io_uring_queue_mmap(fd: c_int, parameters: *mut c_void, ring: *mut c_void));
        make() as isize
    }) as c_int
}

/// `io_uring_setup(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_setup(entries: c_uint, parameters: *mut c_void) -> c_int {
    uring::begins(|| {
        let make = || call!(io_uring_setup(entries: c_uint, parameters: *mut c_void));
        make() as isize
    }) as c_int
}
