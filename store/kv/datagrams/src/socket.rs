// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A UDP socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use socket2::{Domain, Protocol, Type};

/// Datagrams that one system call receives or sends at most.
pub const BATCH: usize = 64;
/// Bytes of the largest datagram. The length field of UDP has 16 bits.
pub const DATAGRAM_BYTES_MAX: usize = 65_535;

/// A UDP socket that never blocks.
#[derive(Debug)]
pub struct Socket(UdpSocket);

impl Socket {
    /// Binds a socket; port 0 lets the system choose. It asks the system for buffers of
    /// `buffer_bytes` in each direction, which may give less. Several sockets may share an address
    /// if all of them are `is_shared`: the system divides the clients among them.
    ///
    /// # Errors
    /// Those of the system, for example that the address is in use.
    pub fn bind(address: SocketAddr, is_shared: bool, buffer_bytes: usize) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if is_shared {
            socket.set_reuse_port(true)?;
        }
        // Smaller buffers lose more datagrams, and are no error.
        let _ = socket.set_recv_buffer_size(buffer_bytes);
        let _ = socket.set_send_buffer_size(buffer_bytes);
        socket.bind(&address.into())?;
        Ok(Self(socket.into()))
    }

    /// The address that it is bound to, with the port that the system has chosen.
    ///
    /// # Errors
    /// Those of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
