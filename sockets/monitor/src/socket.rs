// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unix sockets that preserve message boundaries, and descriptors sent over them.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Maximum number of descriptors per message; the kernel closes further ones.
const DESCRIPTORS_MAX: usize = 4;

/// Maximum length of a path in a socket address, without the terminating zero.
pub const PATH_MAX: usize = 107;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Words, for alignment.
type ControlBytes = [u64; 8];

/// A received message.
#[derive(Debug)]
pub struct Message {
    /// Number of bytes; 0 if the peer hung up.
    pub length: usize,
    /// Whether it was longer, so that bytes were lost.
    pub is_cut: bool,
    /// Descriptors that came with it. If there were too many, the kernel has closed the rest.
    pub descriptors: Vec<OwnedFd>,
}

/// Credentials of the peer, as the kernel reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// PID of the peer; 0 if it is in no PID namespace that is visible from here.
    pub pid: i32,
    /// User of the peer.
    pub user: u32,
}

fn new() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed.
    let descriptor = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Returns an address and its length.
fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.len() > PATH_MAX || bytes.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all zero is a valid value.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (place, byte) in address.sun_path.iter_mut().zip(bytes) {
        *place = *byte as libc::c_char;
    }
    Ok((address, size_of::<libc::sockaddr_un>() as libc::socklen_t))
}

fn done(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Listens at a path, which must not exist yet, with this mode from the first moment.
///
/// # Errors
/// An error of the system.
pub fn listen(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let socket = new()?;
    let (address, length) = address(path)?;
    // The file gets the mode of the socket, reduced by the umask.
    // SAFETY: no memory is passed.
    done(unsafe { libc::fchmod(socket.as_raw_fd(), mode) })?;
    // SAFETY: the address has that length, and outlives the call.
    done(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    // The umask may have removed permissions; the file never had more than `mode`.
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    // SAFETY: no memory is passed.
    done(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    Ok(socket)
}

/// Connects without blocking. Later calls on the socket do not block either.
///
/// # Errors
/// No process listens, or its backlog is full.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = new()?;
    let (address, length) = address(path)?;
    // SAFETY: the descriptor is open, and the address outlives the call.
    done(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

/// Accepts a connection, if there is one.
///
/// # Errors
/// `WouldBlock`: there is none. Otherwise, there is no free descriptor.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let (none, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: null requests no address, so nothing is written.
    let descriptor = unsafe { libc::accept4(listener.as_raw_fd(), none, no_length, flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Returns the credentials of the process that connected or that listens.
///
/// # Errors
/// The socket is not connected.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: there is room for the answer, and `length` is its size.
    done(unsafe {
        let value = (&raw mut found).cast();
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        libc::getsockopt(socket.as_raw_fd(), level, name, value, &mut length)
    })?;
    Ok(Peer { pid: found.pid, user: found.uid })
}

/// Sends a message, with descriptors if given, without blocking.
///
/// # Errors
/// `WouldBlock`: there is no room now. Otherwise, the peer has hung up.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "no message has more");
    let mut control: ControlBytes = [0; 8];
    let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    // SAFETY: all zero is a valid value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let length = size_of_val(numbers.as_slice()) as u32;
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: only computes a size.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(length) } as usize;
        // SAFETY: the header names `control`, which has room for these descriptors.
        let at = unsafe { libc::CMSG_FIRSTHDR(&header) };
        // SAFETY: it is the start of `control`, which is aligned and all zero.
        let first = unsafe { &mut *at };
        first.cmsg_level = libc::SOL_SOCKET;
        first.cmsg_type = libc::SCM_RIGHTS;
        // SAFETY: only computes a size.
        first.cmsg_len = unsafe { libc::CMSG_LEN(length) } as usize;
        // SAFETY: `at` is the header of a message, and its data follow it.
        let data = unsafe { libc::CMSG_DATA(at) };
        // SAFETY: `control` has room for these descriptors, and they are elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), data.cast(), numbers.len()) };
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the header and everything it points to outlive the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &header, flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a message without blocking.
///
/// # Errors
/// `WouldBlock`: there is none now. Otherwise, the connection is broken.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<Message> {
    receive_with(socket, into, true)
}

/// As [`receive`]; if descriptors are not wanted, the kernel drops those of the message: this
/// process never holds them, and need not close them.
///
/// # Errors
/// As [`receive`].
pub fn receive_with(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    wants_descriptors: bool,
) -> io::Result<Message> {
    let mut control: ControlBytes = [0; 8];
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all zero is a valid value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    if wants_descriptors {
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: only computes a size.
        let room = unsafe { libc::CMSG_SPACE((DESCRIPTORS_MAX * size_of::<RawFd>()) as u32) };
        header.msg_controllen = room as usize;
    }
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header and everything it points to outlive the call.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, flags) };
    let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
    Ok(Message {
        length,
        is_cut: header.msg_flags & libc::MSG_TRUNC != 0,
        // SAFETY: the kernel has filled in the header.
        descriptors: unsafe { take(&header) },
    })
}

/// Takes ownership of the descriptors of a received message.
///
/// # Safety
/// `recvmsg` has filled in the header.
unsafe fn take(header: &libc::msghdr) -> Vec<OwnedFd> {
    let mut descriptors = vec![];
    // SAFETY: the caller's header names control data that the kernel has filled.
    let mut at = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: `CMSG_FIRSTHDR` and `CMSG_NXTHDR` give null, or a header inside the control data.
    while let Some(part) = unsafe { at.as_ref() } {
        if (part.cmsg_level, part.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: only computes a size.
            let bytes = part.cmsg_len.saturating_sub(unsafe { libc::CMSG_LEN(0) } as usize);
            // SAFETY: `at` is the header of a message, and its data follow it.
            let data = unsafe { libc::CMSG_DATA(at) }.cast::<RawFd>();
            for number in 0..bytes / size_of::<RawFd>() {
                // SAFETY: the message has more descriptors than `number`.
                let place = unsafe { data.add(number) };
                // SAFETY: the kernel has written a descriptor there.
                let descriptor = unsafe { place.read_unaligned() };
                // SAFETY: the kernel made it for this message, and it has no other owner.
                descriptors.push(unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
        }
        // SAFETY: `at` is a header that one of these two returned for this message.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    descriptors
}
