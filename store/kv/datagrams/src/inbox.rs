// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Received datagrams.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use socket2::{SockAddr, SockAddrStorage};

use crate::socket::{BATCH, DATAGRAM_BYTES_MAX, Socket};

/// Distance of buffers. It is no multiple of a page: the first lines of all buffers would have the
/// same place in the cache.
const STRIDE: usize = DATAGRAM_BYTES_MAX + 1 + 1_536;

/// A datagram in an [`Inbox`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Address of its sender.
    pub sender: SocketAddr,
    /// Its contents.
    pub bytes: &'a [u8],
}

/// The datagrams that the last call has received.
pub struct Inbox {
    /// A buffer for each datagram. The system gives memory only to those pages that are used.
    buffers: Box<[u8]>,
    addresses: Box<[SockAddrStorage; BATCH]>,
    received: Vec<(SocketAddr, usize)>,
}

impl Default for Inbox {
    /// An empty one.
    fn default() -> Self {
        Self {
            buffers: vec![0; BATCH * STRIDE].into_boxed_slice(),
            addresses: Box::new(std::array::from_fn(|_| SockAddrStorage::zeroed())),
            received: Vec::with_capacity(BATCH),
        }
    }
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Inbox").field("received", &self.received).finish_non_exhaustive()
    }
}

impl Inbox {
    /// Forgets its datagrams, and receives up to [`BATCH`] others. Returns their number. Fewer than
    /// [`BATCH`]: the socket had no more at that time.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there are none, and others of the system.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        self.received.clear();
        let mut slices = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: a header is numbers and pointers, for which zero is a value.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let buffers = self.buffers.chunks_exact_mut(STRIDE);
        let places = headers.iter_mut().zip(&mut slices);
        for ((header, slice), (buffer, address)) in
            places.zip(buffers.zip(self.addresses.iter_mut()))
        {
            slice.iov_base = buffer.as_mut_ptr().cast();
            slice.iov_len = DATAGRAM_BYTES_MAX;
            header.msg_hdr.msg_name = std::ptr::from_mut(address).cast();
            header.msg_hdr.msg_namelen = address.size_of();
            header.msg_hdr.msg_iov = slice;
            header.msg_hdr.msg_iovlen = 1;
        }
        let (descriptor, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT);
        let (first, none) = (headers.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: each of the headers points to a place for an address, and by its slice to a
        // buffer, which are as long as it says and borrowed until the call has returned.
        let count = unsafe { libc::recvmmsg(descriptor, first, BATCH as u32, flags, none) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (header, address) in headers[..count].iter().zip(self.addresses.iter_mut()) {
            let storage = std::mem::replace(address, SockAddrStorage::zeroed());
            // SAFETY: the system has written an address of this length there.
            let address = unsafe { SockAddr::new(storage, header.msg_hdr.msg_namelen) };
            let sender = address.as_socket().ok_or(io::ErrorKind::Unsupported)?;
            self.received.push((sender, header.msg_len as usize));
        }
        Ok(count)
    }

    /// The datagram of a number, if the last call has received as many.
    pub fn get(&self, number: usize) -> Option<Datagram<'_>> {
        let (sender, length) = *self.received.get(number)?;
        let bytes = &self.buffers[number * STRIDE..][..length];
        Some(Datagram { sender, bytes })
    }

    /// The datagrams in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        (0..self.received.len()).filter_map(|number| self.get(number))
    }
}
