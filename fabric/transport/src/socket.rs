// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending descriptors over a Unix socket, and identifying the sender.
//!
//! The credentials of a socket are those of its creator, which for an inherited pair is the wrong
//! process. So each message carries its own credentials, which the kernel checks, and, where
//! supported (Linux 6.5), a descriptor of the sending process.

use crate::error::Error;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;

/// Maximum number of descriptors of a message.
const DESCRIPTORS_MAX: usize = 4;

/// `SO_PASSPIDFD` and `SCM_PIDFD`: not all C libraries' headers have them.
const SO_PASSPIDFD: i32 = 76;
const SCM_PIDFD: i32 = 4;

/// Buffer for control messages, in words for alignment: descriptors, credentials and a descriptor
/// of a process fit.
type Control = [u64; 32];

/// A received message.
#[derive(Debug)]
pub struct Message {
    /// Number of bytes; 0 if the peer hung up.
    pub length: usize,
    /// The descriptors that came with it.
    pub descriptors: Vec<OwnedFd>,
    /// The process that sent it; 0 if unknown.
    pub pid: i32,
    /// A descriptor of that process.
    pub process: Option<OwnedFd>,
}

/// Makes the kernel identify senders. Has to be called before the first [`receive`].
///
/// # Errors
/// The kernel refuses.
pub fn ask_for_sender(stream: &UnixStream) -> Result<(), Error> {
    if !set(stream, libc::SO_PASSCRED) {
        return Err(Error::system("SO_PASSCRED"));
    }
    // Older kernels refuse this; `receive` then finds the process by its number.
    set(stream, SO_PASSPIDFD);
    Ok(())
}

fn set(stream: &UnixStream, option: i32) -> bool {
    let on = 1_i32;
    let length = size_of::<i32>() as u32;
    // SAFETY: the option is an int, and `on` outlives the call.
    unsafe {
        let value = (&raw const on).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, option, value, length) == 0
    }
}

/// Sends bytes and descriptors as one message.
///
/// # Errors
/// The system refuses, or the peer has hung up.
pub fn send(stream: &UnixStream, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "no message has more");
    let me = libc::ucred {
        // SAFETY: the call takes no arguments and cannot fail.
        pid: unsafe { libc::getpid() },
        // SAFETY: as above.
        uid: unsafe { libc::getuid() },
        // SAFETY: as above.
        gid: unsafe { libc::getgid() },
    };
    let mut control: Control = [0; 32];
    let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    // SAFETY: the structure is plain data, for which all zeros is a value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>();
    // SAFETY: the header points to `control` and states its size.
    let first = unsafe { libc::CMSG_FIRSTHDR(&header) };
    // SAFETY: `control` is aligned and has room for credentials, which come first.
    let mut used = unsafe { put(first, libc::SCM_CREDENTIALS, std::slice::from_ref(&me)) };
    if !descriptors.is_empty() {
        // SAFETY: `first` is a message in `control`, and its length is written.
        let second = unsafe { libc::CMSG_NXTHDR(&header, first) };
        // SAFETY: `control` has room for this number of descriptors after the credentials.
        used += unsafe { put(second, libc::SCM_RIGHTS, descriptors) };
    }
    header.msg_controllen = used;
    // SAFETY: the header and everything it points to outlive the call.
    let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &header, libc::MSG_NOSIGNAL) };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Writes a control message and returns the room that it takes.
///
/// # Safety
/// There is that much room at `at`.
unsafe fn put<T>(at: *mut libc::cmsghdr, kind: i32, items: &[T]) -> usize {
    let bytes = size_of_val(items) as u32;
    // SAFETY: the caller guarantees room for a message, whose header may hold any numbers.
    let header = unsafe { &mut *at };
    header.cmsg_level = libc::SOL_SOCKET;
    header.cmsg_type = kind;
    // SAFETY: only computes a size.
    header.cmsg_len = unsafe { libc::CMSG_LEN(bytes) } as usize;
    // SAFETY: `at` is the header of a message, and its data begin after it.
    let data = unsafe { libc::CMSG_DATA(at) };
    // SAFETY: the caller guarantees room for the items as well, and they do not overlap.
    unsafe { ptr::copy_nonoverlapping(items.as_ptr(), data.cast(), items.len()) };
    // SAFETY: only computes a size.
    unsafe { libc::CMSG_SPACE(bytes) as usize }
}

/// Receives one message, or as much of it as there is room for.
///
/// # Errors
/// The system refuses, the socket's time-out expires, or more descriptors arrived than any message
/// has.
pub fn receive(stream: &UnixStream, into: &mut [u8]) -> io::Result<Message> {
    let mut control: Control = [0; 32];
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: the structure is plain data, for which all zeros is a value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>();
    // SAFETY: the header and everything it points to outlive the call.
    let length = unsafe { libc::recvmsg(stream.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
    let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
    let mut message = Message { length, descriptors: vec![], pid: 0, process: None };
    // SAFETY: the kernel has filled it in.
    unsafe { take(&header, &mut message) };
    if header.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "more descriptors than expected"));
    }
    if message.process.is_none() && message.pid > 0 {
        message.process = open_process(message.pid);
    }
    Ok(message)
}

/// Takes the control messages: from here on each descriptor has an owner.
///
/// # Safety
/// `recvmsg` has filled in the header.
unsafe fn take(header: &libc::msghdr, message: &mut Message) {
    // SAFETY: the caller's header points to control data that the kernel has filled in.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: `CMSG_FIRSTHDR` and `CMSG_NXTHDR` return null, or a header inside the control data.
    while let Some(part) = unsafe { at.as_ref() } {
        // SAFETY: `at` is the header of a message, and its data begin after it.
        let data = unsafe { libc::CMSG_DATA(at) };
        // SAFETY: only computes a size.
        let bytes = part.cmsg_len.saturating_sub(unsafe { libc::CMSG_LEN(0) } as usize);
        match (part.cmsg_level, part.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                for number in 0..bytes / size_of::<RawFd>() {
                    // SAFETY: the message has more descriptors than `number`.
                    let place = unsafe { data.cast::<RawFd>().add(number) };
                    // SAFETY: the place holds a descriptor that the kernel has written.
                    let descriptor = unsafe { place.read_unaligned() };
                    // SAFETY: the kernel made it for this message, and it has no other owner.
                    message.descriptors.push(unsafe { OwnedFd::from_raw_fd(descriptor) });
                }
            }
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if bytes >= size_of::<libc::ucred>() => {
                // SAFETY: the message is long enough, and credentials are numbers only.
                let credentials = unsafe { data.cast::<libc::ucred>().read_unaligned() };
                message.pid = credentials.pid;
            }
            (libc::SOL_SOCKET, SCM_PIDFD) if bytes >= size_of::<RawFd>() => {
                // SAFETY: the message is long enough for a descriptor.
                let descriptor = unsafe { data.cast::<RawFd>().read_unaligned() };
                // SAFETY: as above, unless the kernel has put an error there.
                message.process =
                    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
            _ => {}
        }
        // SAFETY: `at` is a header that one of these two returned for this message.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
}

/// Opens a descriptor of the process with this number.
fn open_process(pid: i32) -> Option<OwnedFd> {
    // SAFETY: no memory is passed.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) as RawFd };
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })
}
