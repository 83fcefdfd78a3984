// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Descriptors in the control data of messages (`SCM_RIGHTS`).

use crate::kernel::memory;
use crate::socket::opening;
use crate::{handing, process};

/// A header of control data, behind which its content begins.
const HEADER: usize = size_of::<libc::cmsghdr>();
/// Largest number of descriptors that the kernel accepts in one header.
const DESCRIPTORS: usize = 253;
/// Largest number of bytes of control data that the kernel reads.
const BYTES: usize = i32::MAX as usize;

/// Before a message is sent: the receiver has to find its descriptors in the kernel.
///
/// # Safety
/// It is null, or a message as `sendmsg` takes it.
#[inline]
pub unsafe fn is_sent(message: *const libc::msghdr) {
    // SAFETY: the caller upholds it.
    if memory::exists(message, 1) && unsafe { (*message).msg_controllen } != 0 {
        // SAFETY: as above.
        let message = unsafe { &*message };
        // SAFETY: the control data of a message for `sendmsg` can be read.
        unsafe { pass(message) };
    }
}

/// After a message was received. `MSG_PEEK` returns copies of its descriptors as well.
///
/// # Safety
/// It is a message that `recvmsg` has filled.
#[inline]
pub unsafe fn has_come(message: *const libc::msghdr, flags: i32) {
    // SAFETY: the caller upholds it.
    if memory::exists(message, 1) && unsafe { (*message).msg_controllen } != 0 {
        // SAFETY: as above.
        let message = unsafe { &*message };
        // SAFETY: the kernel has filled the control data.
        unsafe { adopt(message, flags & libc::MSG_PEEK != 0) };
    }
}

#[cold]
unsafe fn pass(message: &libc::msghdr) {
    process::check();
    // SAFETY: the caller upholds it.
    unsafe { each_descriptor(message, handing::is_passed) };
}

#[cold]
unsafe fn adopt(message: &libc::msghdr, was_peeked: bool) {
    if process::is_guest() {
        return;
    }
    process::check();
    let adopt = |descriptor| {
        opening::is_new(descriptor);
        handing::adopt(descriptor);
        if was_peeked {
            // The message will give another descriptor of the same socket.
            handing::is_passed(descriptor);
        }
    };
    // SAFETY: the caller upholds it.
    unsafe { each_descriptor(message, adopt) };
}

/// Calls `visit` with each descriptor of a message. If the control data is not well-formed, the
/// kernel accepts none of it; descriptors before that place are visited here.
///
/// # Safety
/// Its control data can be read.
unsafe fn each_descriptor(message: &libc::msghdr, mut visit: impl FnMut(i32)) {
    let (start, bytes) = (message.msg_control.cast::<u8>(), message.msg_controllen);
    if start.is_null() || bytes > BYTES || !memory::exists(start, bytes) {
        return;
    }
    let mut at = 0;
    while bytes.saturating_sub(at) >= HEADER {
        // SAFETY: `at` and a header behind it are inside the control data.
        let place = unsafe { start.add(at) };
        // SAFETY: as above; the caller says that it can be read, and any bytes are a header.
        let header = unsafe { place.cast::<libc::cmsghdr>().read_unaligned() };
        let length = header.cmsg_len;
        if length < HEADER || length > bytes - at {
            return;
        }
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS {
            let count = (length - HEADER) / size_of::<i32>();
            for number in 0..count.min(DESCRIPTORS) {
                let place = at + HEADER + number * size_of::<i32>();
                // SAFETY: the header's length is inside the control data, and the descriptors are
                // inside that length.
                let descriptor = unsafe { start.add(place) };
                // SAFETY: as above; any bytes are a number.
                visit(unsafe { descriptor.cast::<i32>().read_unaligned() });
            }
        }
        at += length.next_multiple_of(size_of::<usize>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(length: usize, level: i32, kind: i32) -> Vec<u8> {
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes
    }

    fn rights(descriptors: &[i32]) -> Vec<u8> {
        let length = HEADER + descriptors.len() * 4;
        let mut bytes = header(length, libc::SOL_SOCKET, libc::SCM_RIGHTS);
        bytes.extend(descriptors.iter().flat_map(|descriptor| descriptor.to_ne_bytes()));
        bytes.resize(length.next_multiple_of(8), 0);
        bytes
    }

    /// The descriptors found in an allocation of exactly these bytes.
    fn found(control: &[u8]) -> Vec<i32> {
        let mut copy = control.to_vec().into_boxed_slice();
        // SAFETY: a message of zeroes is one of nothing.
        let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
        message.msg_control = copy.as_mut_ptr().cast();
        message.msg_controllen = copy.len();
        let mut found = vec![];
        // SAFETY: the control data is what the copy has.
        unsafe { each_descriptor(&message, |descriptor| found.push(descriptor)) };
        found
    }

    #[test]
    fn descriptors_of_all_headers_are_found() {
        let others = [header(HEADER, libc::SOL_SOCKET, libc::SCM_CREDENTIALS), rights(&[9])];
        let all = [rights(&[3, 4, 5]), others.concat(), rights(&[])].concat();
        assert_eq!(found(&all), [3, 4, 5, 9]);
        assert_eq!(found(&rights(&[0; 300])), [0; DESCRIPTORS]);
        // The last one need not be padded.
        assert_eq!(found(&rights(&[7])[..HEADER + 4]), [7]);
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
        let whole = rights(&[3, 4]);
        for length in 0..whole.len() {
            assert_eq!(found(&whole[..length]), []);
        }
        for wrong in [0, 1, HEADER - 1, HEADER + 1000, usize::MAX, usize::MAX - 6] {
            let control = header(wrong, libc::SOL_SOCKET, libc::SCM_RIGHTS);
            assert_eq!(found(&[rights(&[3]), control].concat()), [3]);
        }
        assert_eq!(found(&rights(&[3])[..HEADER + 3]), []);
    }

    #[test]
    fn without_control_data_nothing_is_found() {
        // SAFETY: a message of zeroes is one of nothing.
        let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
        message.msg_controllen = 64;
        // SAFETY: there is none.
        unsafe { each_descriptor(&message, |_| unreachable!()) };
    }
}
