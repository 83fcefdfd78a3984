// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `syscall(2)`: what programs ask the kernel for by number is done as by the functions of that
//! name, if it has to do with a connection.
//!
//! All else is the kernel's at once. What is behind ours is not looked up, since allocators call
//! this while they begin, and looking it up may allocate.

use super::{data, descriptors, programs, sockets};
use crate::handing::leaving;
use crate::kernel::next::next;
use crate::kernel::{errno, raw};
use crate::life::{confined, forking, identity, uring};
use crate::process::guests;
use crate::reuse;
use crate::state::table;
use crate::state::table::stream;
use crate::upgrade::monitor;
use core::ffi::{c_int, c_long, c_uint};

/// What the kernel gives for errors.
const ERRORS: core::ops::Range<isize> = -4095..0;

/// `syscall(2)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> c_long {
    let arguments = [first, second, third, fourth, fifth, sixth];
    // SAFETY: the caller upholds the contract of the system call of that number.
    let kernel = || unsafe { raw::call(number, arguments) };
    // SAFETY: as above.
    let done = unsafe { of_data(number, arguments) };
    // SAFETY: as above.
    let done = done.or_else(|| unsafe { of_descriptors(number, arguments) });
    if let Some(result) = done {
        return result as c_long;
    }
    let result = match number {
        libc::SYS_execve | libc::SYS_execveat => programs::become_another(kernel),
        libc::SYS_exit_group => {
            leaving::is_over();
            kernel()
        }
        libc::SYS_pidfd_getfd => {
            let taken = kernel();
            descriptors::was_taken(taken as c_int);
            taken
        }
        libc::SYS_prctl | libc::SYS_seccomp if gives_up_calls(number, first) => {
            confined::begins(kernel)
        }
        libc::SYS_io_uring_setup => uring::begins(kernel),
        libc::SYS_io_uring_enter if second > 0 => {
            uring::takes_sockets();
            kernel()
        }
        libc::SYS_setuid
        | libc::SYS_setreuid
        | libc::SYS_setresuid
        | libc::SYS_setgid
        | libc::SYS_setregid
        | libc::SYS_setresgid => identity::changes(kernel),
        libc::SYS_setns | libc::SYS_unshare if changes_network(number, arguments) => {
            reuse::stops();
            kernel()
        }
        _ => match flags_of_child(number, arguments) {
            Some(flags) => forking::child_by(flags, kernel),
            None => kernel(),
        },
    };
    if ERRORS.contains(&result) {
        errno::fail(-result as c_int) as c_long
    } else {
        result as c_long
    }
}

/// `prctl(2)`, by which programs give up system calls.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn prctl(
    option: c_int,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> c_int {
    let make = || {
        next!(prctl(option: c_int, second: usize, third: usize, fourth: usize, fifth: usize)
            -> c_int)
    };
    if gives_up_calls(libc::SYS_prctl, option as usize) {
        confined::begins(|| make() as isize) as c_int
    } else {
        make()
    }
}

/// Whether a program gives up system calls by that.
fn gives_up_calls(number: c_long, first: usize) -> bool {
    const STRICT: usize = libc::SECCOMP_SET_MODE_STRICT as usize;
    const FILTER: usize = libc::SECCOMP_SET_MODE_FILTER as usize;
    match number {
        libc::SYS_prctl => first == libc::PR_SET_SECCOMP as usize,
        _ => matches!(first, STRICT | FILTER),
    }
}

/// Sending and receiving, if it is on a connection.
unsafe fn of_data(number: c_long, arguments: [usize; 6]) -> Option<isize> {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let fd = first as c_int;
    let is_data = matches!(
        number,
        libc::SYS_read
            | libc::SYS_write
            | libc::SYS_readv
            | libc::SYS_writev
            | libc::SYS_recvfrom
            | libc::SYS_sendto
            | libc::SYS_recvmsg
            | libc::SYS_sendmsg
    );
    if !is_data || stream(fd).is_none() {
        return None;
    }
    Some(match number {
        // SAFETY: the caller upholds the contract of the system call of that number, which is that
        // of the function; the same holds for all below.
        libc::SYS_read => unsafe { data::read(fd, second as *mut _, third) },
        // SAFETY: as above.
        libc::SYS_write => unsafe { data::write(fd, second as *const _, third) },
        // SAFETY: as above.
        libc::SYS_readv => unsafe { data::readv(fd, second as *const _, third as c_int) },
        // SAFETY: as above.
        libc::SYS_writev => unsafe { data::writev(fd, second as *const _, third as c_int) },
        libc::SYS_recvfrom => {
            let (address, length) = (fifth as *mut _, sixth as *mut _);
            let (buffer, flags) = (second as *mut _, fourth as c_int);
            // SAFETY: as above.
            unsafe { data::recvfrom(fd, buffer, third, flags, address, length) }
        }
        libc::SYS_sendto => {
            let (address, length) = (fifth as *const _, sixth as libc::socklen_t);
            let (buffer, flags) = (second as *const _, fourth as c_int);
            // SAFETY: as above.
            unsafe { data::sendto(fd, buffer, third, flags, address, length) }
        }
        // SAFETY: as above.
        libc::SYS_recvmsg => unsafe { data::recvmsg(fd, second as *mut _, third as c_int) },
        // SAFETY: as above.
        _ => unsafe { data::sendmsg(fd, second as *const _, third as c_int) },
    })
}

/// Closing and copying descriptors, if one of them is of interest: libuv and others close so.
unsafe fn of_descriptors(number: c_long, arguments: [usize; 6]) -> Option<isize> {
    let [first, second, third, ..] = arguments;
    let (fd, other, flags) = (first as c_int, second as c_int, third as c_int);
    let is_known = |fd: c_int| monitor::is_ours(fd) || table::get(fd).is_some();
    let result = match number {
        // SAFETY: the caller upholds the contract of the system call of that number, which is that
        // of the function; the same holds for all below.
        libc::SYS_close if is_known(fd) => unsafe { descriptors::close(fd) },
        // SAFETY: as above.
        libc::SYS_dup if is_known(fd) => unsafe { descriptors::dup(fd) },
        // SAFETY: as above.
        libc::SYS_dup3 if is_known(fd) || is_known(other) => unsafe {
            descriptors::dup3(fd, other, flags)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        libc::SYS_dup2 if is_known(fd) || is_known(other) => unsafe {
            descriptors::dup2(fd, other)
        },
        // SAFETY: as above.
        libc::SYS_close_range => unsafe {
            descriptors::close_range(first as c_uint, second as c_uint, flags)
        },
        // SAFETY: as above.
        libc::SYS_shutdown if is_known(fd) => unsafe { sockets::shutdown(fd, other) },
        _ => return None,
    };
    Some(result as isize)
}

/// Whether a call takes the process to another network.
fn changes_network(number: c_long, arguments: [usize; 6]) -> bool {
    let [first, second, ..] = arguments;
    let kind = if number == libc::SYS_unshare { first } else { second };
    kind & libc::CLONE_NEWNET as usize != 0 || number == libc::SYS_setns && kind == 0
}

/// The flags with which a call makes a child, as `clone` has them.
fn flags_of_child(number: c_long, arguments: [usize; 6]) -> Option<u64> {
    match number {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fork => Some(0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => Some(guests::WITH_MEMORY),
        libc::SYS_clone => Some(arguments[0] as u64),
        libc::SYS_clone3 => {
            let [flags, bytes, ..] = arguments;
            let has_flags = bytes >= size_of::<u64>() && flags != 0;
            // SAFETY: the kernel reads flags in front of all else there.
            has_flags.then(|| unsafe { (flags as *const u64).read() })
        }
        _ => None,
    }
}
