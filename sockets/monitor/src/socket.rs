// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Unix sockets that keep messages apart, and descriptors that travel over them.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Descriptors of one message that are looked at; the kernel closes what is beyond.
const DESCRIPTORS_MAX: usize = 4;

/// The bytes of a path in a socket's address, without the zero behind.
pub const PATH_MAX: usize = 107;

/// How many processes may wait until they are accepted.
const BACKLOG: i32 = 128;

/// Words, so that it is aligned.
type ControlBytes = [u64; 8];

/// A message that came.
#[derive(Debug)]
pub struct Message {
    /// How many bytes it has; 0: the peer hung up.
    pub length: usize,
    /// Whether it had more bytes, which are lost.
    pub is_cut: bool,
    /// The descriptors that came with it. If there were many more, the kernel has closed those.
    pub descriptors: Vec<OwnedFd>,
}

/// Who is at the other end, as the kernel says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The process that made the connection; 0 if it is in no namespace that is seen from here.
    pub pid: i32,
    /// Its user.
    pub user: u32,
}

fn new() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed.
    let descriptor = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// An address and its length.
fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.len() > PATH_MAX || bytes.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all zero is a value of it.
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

/// Listens at a path, where there must be nothing, with these rights from the first moment on.
///
/// # Errors
/// The system refuses.
pub fn listen(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let socket = new()?;
    let (address, length) = address(path)?;
    // The file gets the rights of the socket, less those of the process's mask.
    // SAFETY: no memory is passed.
    done(unsafe { libc::fchmod(socket.as_raw_fd(), mode) })?;
    // SAFETY: the address has that length, and lives as long as the call.
    done(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    // The mask may have taken rights away; none has been too many meanwhile.
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    // SAFETY: no memory is passed.
    done(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    Ok(socket)
}

/// Connects, without waiting. Whatever is done with the result does not wait either.
///
/// # Errors
/// Nobody listens, or has no room.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket = new()?;
    let (address, length) = address(path)?;
    // SAFETY: the descriptor is open, and the address lives as long as the call.
    done(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(socket)
}

/// Takes a connection, if there is one.
///
/// # Errors
/// There is none (`WouldBlock`), or no descriptor for it.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let (none, no_length) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: null asks for no address, so nothing is written.
    let descriptor = unsafe { libc::accept4(listener.as_raw_fd(), none, no_length, flags) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Who made the connection, or who listens.
///
/// # Errors
/// It is not connected.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: room for the answer, and its length.
    done(unsafe {
        let value = (&raw mut found).cast();
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        libc::getsockopt(socket.as_raw_fd(), level, name, value, &mut length)
    })?;
    Ok(Peer { pid: found.pid, user: found.uid })
}

/// Sends a message, perhaps with a descriptor, without waiting.
///
/// # Errors
/// There is no room now (`WouldBlock`), or the peer has hung up.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "no message has more");
    let mut control: ControlBytes = [0; 8];
    let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    // SAFETY: all zero is a value of it.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    if !descriptors.is_empty() {
        let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let length = size_of_val(numbers.as_slice()) as u32;
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: only computes a size.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(length) } as usize;
        // SAFETY: the header names `control`, which has room for as many descriptors.
        let at = unsafe { libc::CMSG_FIRSTHDR(&header) };
        // SAFETY: the start of `control`, which is aligned and all zero.
        let first = unsafe { &mut *at };
        first.cmsg_level = libc::SOL_SOCKET;
        first.cmsg_type = libc::SCM_RIGHTS;
        // SAFETY: only computes a size.
        first.cmsg_len = unsafe { libc::CMSG_LEN(length) } as usize;
        // SAFETY: `at` is the header of a message, and its data begin behind it.
        let data = unsafe { libc::CMSG_DATA(at) };
        // SAFETY: `control` has room for as many descriptors, and they are elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(numbers.as_ptr(), data.cast(), numbers.len()) };
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the header and all it points to live until then.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &header, flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a message, without waiting.
///
/// # Errors
/// There is none now (`WouldBlock`), or the connection is broken.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<Message> {
    receive_with(socket, into, true)
}

/// The same, but the kernel drops the message's descriptors if they are not wanted: this process
/// never has them, and need not close them.
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
    // SAFETY: all zero is a value of it.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    if wants_descriptors {
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: it only computes.
        let room = unsafe { libc::CMSG_SPACE((DESCRIPTORS_MAX * size_of::<RawFd>()) as u32) };
        header.msg_controllen = room as usize;
    }
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header and all it points to live until then.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, flags) };
    let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
    Ok(Message {
        length,
        is_cut: header.msg_flags & libc::MSG_TRUNC != 0,
        // SAFETY: the kernel has filled it in.
        descriptors: unsafe { take(&header) },
    })
}

/// Takes the descriptors: from here on each has an owner.
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
            // SAFETY: `at` is the header of a message, and its data begin behind it.
            let data = unsafe { libc::CMSG_DATA(at) }.cast::<RawFd>();
            for number in 0..bytes / size_of::<RawFd>() {
                // SAFETY: the message has more descriptors than `number`.
                let place = unsafe { data.add(number) };
                // SAFETY: a descriptor that the kernel has written there.
                let descriptor = unsafe { place.read_unaligned() };
                // SAFETY: the kernel made it for this message, and it has no other owner.
                descriptors.push(unsafe { OwnedFd::from_raw_fd(descriptor) });
            }
        }
        // SAFETY: `at` is a header that one of these two gave for this message.
        at = unsafe { libc::CMSG_NXTHDR(header, at) };
    }
    descriptors
}
