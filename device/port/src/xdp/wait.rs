// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One descriptor to wait on for several sockets.

use super::socket::Socket;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// A descriptor that is readable when one of the sockets is.
#[derive(Debug)]
pub(super) enum Wait {
    /// The only socket.
    Socket(Arc<Socket>),
    /// `epoll` over all of them.
    Any(OwnedFd),
}

impl Wait {
    pub fn on<'s>(sockets: impl ExactSizeIterator<Item = &'s Arc<Socket>>) -> io::Result<Self> {
        let mut sockets = sockets.peekable();
        if sockets.len() == 1
            && let Some(socket) = sockets.peek()
        {
            return Ok(Self::Socket(Arc::clone(socket)));
        }
        // SAFETY: no memory is passed.
        let any = match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            number if number < 0 => return Err(io::Error::last_os_error()),
            // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
            number => unsafe { OwnedFd::from_raw_fd(number) },
        };
        for socket in sockets {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            let (add, file) = (libc::EPOLL_CTL_ADD, socket.as_fd().as_raw_fd());
            // SAFETY: the event outlives the call.
            if unsafe { libc::epoll_ctl(any.as_raw_fd(), add, file, &mut event) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self::Any(any))
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.as_fd(),
            Self::Any(any) => any.as_fd(),
        }
    }
}
