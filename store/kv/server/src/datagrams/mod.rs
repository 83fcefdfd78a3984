// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The batched protocol over UDP. A datagram is a packet, and many of them are received and sent
//! with one system call.
//!
//! The life of a datagram:
//! 1. A hello gets a [token], and everything else without the token of its sender a refusal that
//!    is not longer than the datagram itself. The token finds the [session](sessions).
//! 2. Its operations are executed as those of a connection.
//! 3. Its replies are [divided](division) into datagrams that the client can receive.
//! 4. They are [held] until the append log has what they depend on, if there is one, and
//!    sent.
//!
//! Nothing here waits. A datagram that fits into no buffer of the system or of the server is
//! dropped and counted, as the network may drop it.

mod counters;
mod division;
mod greeting;
mod held;
mod pending;
mod port;
mod sessions;
mod token;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use freeport_kv_datagrams::{Inbox, Socket};
use mio::event::Source;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use crate::error::ServerError;
pub use counters::{DatagramCount, DatagramCounters};
pub use division::limits;
pub use greeting::PAYLOAD_BYTES_MAX;
pub use pending::Underway;
pub use port::Port;

/// Bytes that the system is asked to keep for a socket in each direction.
const BUFFER_BYTES: usize = 4 << 20;
/// Bytes of the largest datagram over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// A socket that receives datagrams, with the clients that send them.
#[derive(Debug)]
pub struct Datagrams {
    /// The datagrams that were received last.
    pub inbox: Inbox,
    /// The rest.
    pub port: Port,
}

impl Datagrams {
    /// Binds sockets to the address of a number, a socket for each worker. The system divides the
    /// clients among them. Replaces port 0 by the one that the system has chosen.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn open(
        (number, address): (usize, &mut SocketAddr),
        workers: usize,
    ) -> Result<Vec<Self>, ServerError> {
        let sockets = Self::bind((number, address), workers);
        sockets.map_err(|error| ServerError::Listen { address: format!("UDP {address}"), error })
    }

    fn bind((number, address): (usize, &mut SocketAddr), workers: usize) -> io::Result<Vec<Self>> {
        // Alone at first, so that an address in use is an error.
        let first = Socket::bind(*address, false, BUFFER_BYTES)?;
        *address = first.address()?;
        if workers == 1 {
            return Ok(vec![Self::new(number, first)?]);
        }
        drop(first);
        let bind = |_| Self::new(number, Socket::bind(*address, true, BUFFER_BYTES)?);
        (0..workers).map(bind).collect()
    }

    fn new(number: usize, socket: Socket) -> io::Result<Self> {
        Ok(Self { inbox: Inbox::default(), port: Port::new(number, socket)? })
    }

    /// Reports received datagrams as events with a token.
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        let descriptor = self.port.socket.as_raw_fd();
        SourceFd(&descriptor).register(registry, token, Interest::READABLE)
    }
}
