// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams that are sent together.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use socket2::SockAddr;

use crate::socket::{BATCH, Socket};

/// Bytes for which memory is kept.
const KEPT_BYTES: usize = 1 << 20;

/// Datagrams that were not sent yet.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// End of each datagram, and where it goes.
    datagrams: Vec<(usize, SockAddr)>,
}

/// Counts of the datagrams of an [`Outbox`] after an attempt to send them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Number of datagrams that the system has taken.
    pub sent: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of datagrams that it has not taken, because its buffer is full or their address
    /// cannot be reached.
    pub dropped: u64,
}

impl Outbox {
    /// There is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Number of datagrams.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Bytes of all datagrams.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a datagram.
    pub fn push(&mut self, target: SocketAddr, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.datagrams.push((self.bytes.len(), target.into()));
    }

    /// Sends all datagrams. It is empty afterwards, whatever became of them.
    pub fn send(&mut self, socket: &Socket) -> Sent {
        let mut result = Sent::default();
        let mut next = 0;
        while next < self.datagrams.len() {
            match self.send_some(next, socket) {
                Ok(count) => {
                    result.sent += count as u64;
                    result.bytes += (self.start(next + count) - self.start(next)) as u64;
                    next += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_of_buffer(&error) => {
                    result.dropped += (self.datagrams.len() - next) as u64;
                    break;
                }
                // The first of them cannot be sent; the others may.
                Err(_) => {
                    result.dropped += 1;
                    next += 1;
                }
            }
        }
        self.datagrams.clear();
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = vec![];
        }
        result
    }

    /// Where a datagram begins.
    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.datagrams[before].0)
    }

    /// Sends datagrams from a number with one call; returns how many, at least one.
    fn send_some(&self, first: usize, socket: &Socket) -> io::Result<usize> {
        let mut slices = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
        // SAFETY: a header is numbers and pointers, for which zero is a value.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        let mut start = self.start(first);
        let places = headers.iter_mut().zip(&mut slices);
        for ((header, slice), (end, target)) in places.zip(&self.datagrams[first..]) {
            slice.iov_base = self.bytes[start..*end].as_ptr().cast_mut().cast();
            slice.iov_len = end - start;
            header.msg_hdr.msg_name = target.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = target.len();
            header.msg_hdr.msg_iov = slice;
            header.msg_hdr.msg_iovlen = 1;
            start = *end;
            count += 1;
        }
        let (descriptor, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        // SAFETY: each of the `count` headers points to an address, and by its slice to bytes,
        // which the system only reads, and which are borrowed until the call has returned.
        let sent = unsafe { libc::sendmmsg(descriptor, headers.as_mut_ptr(), count, flags) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// The system takes no datagrams at this time, for any address.
fn is_of_buffer(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}
