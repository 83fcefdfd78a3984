// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An AF_XDP socket: its system calls, independent of frames.

use super::memory::Memory;
use super::ring::{Consumer, Layout, Producer};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Frames that the kernel sends per call where it copies them (since Linux 6.17; before, 32).
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// A socket, bound or not.
#[derive(Debug)]
pub(super) struct Socket {
    file: OwnedFd,
}

/// Entries of the rings of a socket, each a power of two, or 0 for no ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RingSizes {
    pub receive: u32,
    pub fill: u32,
    pub transmit: u32,
    pub completion: u32,
}

/// The rings of a socket.
pub(super) struct Rings {
    pub receive: Option<Consumer<libc::xdp_desc>>,
    pub fill: Producer<u64>,
    pub transmit: Option<Producer<libc::xdp_desc>>,
    pub completion: Consumer<u64>,
}

/// Result of a wake-up call to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kick {
    /// The kernel has done what it could.
    Done,
    /// The interface is currently down.
    Down,
}

impl Socket {
    /// Creates a socket in the thread's namespace.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed.
        match unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) } {
            number if number < 0 => Err(io::Error::last_os_error()),
            // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
            number => Ok(Self { file: unsafe { OwnedFd::from_raw_fd(number) } }),
        }
    }

    /// Registers the memory, so that other sockets can share it.
    pub fn register(&self, memory: &Memory) -> io::Result<()> {
        let registration = libc::xdp_umem_reg {
            addr: memory.address(),
            len: memory.bytes() as u64,
            chunk_size: memory.chunk_bytes() as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        self.set(libc::XDP_UMEM_REG, &registration)
    }

    /// Makes the kernel create rings, and maps them.
    pub fn make_rings(&self, sizes: RingSizes) -> io::Result<Rings> {
        let RingSizes { receive, fill, transmit, completion } = sizes;
        self.set(libc::XDP_UMEM_FILL_RING, &fill)?;
        self.set(libc::XDP_UMEM_COMPLETION_RING, &completion)?;
        if receive > 0 {
            self.set(libc::XDP_RX_RING, &receive)?;
        }
        if transmit > 0 {
            self.set(libc::XDP_TX_RING, &transmit)?;
        }
        // A kernel that does not support this option sends fewer frames per call.
        drop(self.set(XDP_MAX_TX_SKB_BUDGET, &transmit));
        let at: libc::xdp_mmap_offsets = self.get(libc::XDP_MMAP_OFFSETS)?;
        let layout = |offsets, page_offset, entries| Layout { offsets, page_offset, entries };
        let file = self.file.as_fd();
        let (fill_at, completion_at) =
            (libc::XDP_UMEM_PGOFF_FILL_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        let of_receive = layout(at.rx, libc::XDP_PGOFF_RX_RING, receive);
        let of_transmit = layout(at.tx, libc::XDP_PGOFF_TX_RING, transmit);
        Ok(Rings {
            receive: (receive > 0).then(|| Consumer::map(file, of_receive)).transpose()?,
            fill: Producer::map(file, layout(at.fr, fill_at as libc::off_t, fill))?,
            transmit: (transmit > 0).then(|| Producer::map(file, of_transmit)).transpose()?,
            completion: Consumer::map(
                file,
                layout(at.cr, completion_at as libc::off_t, completion),
            )?,
        })
    }

    /// Binds it to a queue of an interface; `sharing` is the socket whose memory it shares.
    pub fn bind(
        &self,
        interface: u32,
        queue: u32,
        flags: u16,
        sharing: Option<&Socket>,
    ) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: sharing.map_or(0, |other| other.file.as_raw_fd() as u32),
        };
        let bytes = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        // SAFETY: the address outlives the call and has that many bytes.
        let result =
            unsafe { libc::bind(self.file.as_raw_fd(), (&raw const address).cast(), bytes) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns whether the driver reads and writes the memory itself.
    pub fn is_zero_copy(&self) -> io::Result<bool> {
        let options: libc::xdp_options = self.get(libc::XDP_OPTIONS)?;
        Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// Returns the kernel's counters of lost and refused frames.
    pub fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        self.get(libc::XDP_STATISTICS)
    }

    /// Returns the socket's error since the last call, if it can no longer be used.
    pub fn failure(&self) -> Option<io::Error> {
        let mut code: libc::c_int = 0;
        match self.get_from(libc::SOL_SOCKET, libc::SO_ERROR, &mut code) {
            Ok(()) if code == 0 => None,
            Ok(()) => Some(io::Error::from_raw_os_error(code)),
            Err(error) => Some(error),
        }
    }

    /// Notifies the kernel that there are frames to send.
    ///
    /// # Errors
    /// The interface was removed.
    pub fn kick(&self) -> io::Result<Kick> {
        let (none, file) = (std::ptr::null(), self.file.as_raw_fd());
        // SAFETY: no memory is passed.
        let result = unsafe { libc::sendto(file, none, 0, libc::MSG_DONTWAIT, none.cast(), 0) };
        self.reported(result)
    }

    /// Notifies the kernel that there are chunks to fill.
    ///
    /// # Errors
    /// The interface was removed.
    pub fn kick_receive(&self) -> io::Result<Kick> {
        let (none, file) = (std::ptr::null_mut(), self.file.as_raw_fd());
        let nobody = std::ptr::null_mut();
        // SAFETY: no memory is passed.
        let result =
            unsafe { libc::recvfrom(file, none, 0, libc::MSG_DONTWAIT, none.cast(), nobody) };
        self.reported(result)
    }

    fn reported(&self, result: isize) -> io::Result<Kick> {
        if result >= 0 {
            return Ok(Kick::Done);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // It has sent its limit for one call, or the interface has no room.
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR | libc::EOPNOTSUPP) => {
                Ok(Kick::Done)
            }
            Some(libc::ENETDOWN) if self.failure().is_none() => Ok(Kick::Down),
            _ => Err(error),
        }
    }

    fn set<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        let (place, bytes) = ((&raw const *value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: the value outlives the call and has that many bytes.
        let result =
            unsafe { libc::setsockopt(self.file.as_raw_fd(), libc::SOL_XDP, option, place, bytes) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn get<T>(&self, option: libc::c_int) -> io::Result<T> {
        // SAFETY: the structures of these options are numbers, for which all zeros is a value.
        let mut value: T = unsafe { std::mem::zeroed() };
        self.get_from(libc::SOL_XDP, option, &mut value)?;
        Ok(value)
    }

    fn get_from<T>(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        value: &mut T,
    ) -> io::Result<()> {
        let mut bytes = size_of::<T>() as libc::socklen_t;
        let place = (&raw mut *value).cast();
        // SAFETY: the kernel writes at most that many bytes to the value.
        let result =
            unsafe { libc::getsockopt(self.file.as_raw_fd(), level, option, place, &mut bytes) };
        match result {
            0 if bytes as usize == size_of::<T>() => Ok(()),
            // A kernel that returns a shorter structure is older than the required version (5.4).
            0 => Err(io::ErrorKind::Unsupported.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
