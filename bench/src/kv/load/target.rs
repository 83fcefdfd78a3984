// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a server listens, and a connection to it of any kind: bytes are sent and received without
//! waiting.

use super::datagrams::Datagrams;
use anyhow::{Context, Result};
use freeport_fabric::shm;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
    /// A Unix socket where the fabric's connections begin.
    Fabric(PathBuf),
    /// A UDP port, for datagrams of the batched protocol.
    Udp(SocketAddr),
}

impl Target {
    /// A TCP port of this machine.
    pub fn local(port: u16) -> Self {
        Self::Tcp((Ipv4Addr::LOCALHOST, port).into())
    }

    /// Whether connections are rings in shared memory, which are polled.
    pub fn is_polled(&self) -> bool {
        matches!(self, Self::Fabric(_))
    }

    /// Whether packets and replies can be lost.
    pub fn is_lossy(&self) -> bool {
        matches!(self, Self::Udp(_))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "{}", path.display()),
            Self::Fabric(path) => write!(formatter, "{} (fabric)", path.display()),
            Self::Udp(address) => write!(formatter, "{address} (UDP)"),
        }
    }
}

/// Time limit for a connection to be made.
const CONNECTING: Duration = Duration::from_secs(5);
/// Bytes of each ring of the fabric: usual packets fit, and the rings of several connections stay
/// in the caches.
pub const RING_BYTES: usize = 128 << 10;

/// A connection to a server.
pub enum Link {
    Tcp(TcpStream),
    Unix(UnixStream),
    Fabric(Box<shm::Connection>),
    Datagrams(Datagrams),
}

impl Link {
    /// Connects to a server.
    ///
    /// # Errors
    /// Nothing listens, or the listener is not of this kind.
    pub fn open(target: &Target) -> Result<Self> {
        let link = match target {
            Target::Tcp(address) => tcp(address),
            Target::Unix(path) => unix(path),
            Target::Fabric(path) => fabric(path),
            Target::Udp(address) => Datagrams::open(address, CONNECTING).map(Self::Datagrams),
        };
        link.with_context(|| format!("no connection to {target}"))
    }

    /// Sends as many bytes as there is room for.
    ///
    /// # Errors
    /// There is no room (`WouldBlock`), or the server has closed.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Fabric(ring) => ring.try_write(bytes).map_err(of_ring),
            Self::Datagrams(socket) => socket.send(bytes),
        }
    }

    /// Receives what has arrived, as far as it fits; 0 is the end.
    ///
    /// # Errors
    /// Nothing has arrived (`WouldBlock`), or the server is gone.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            Self::Fabric(ring) => ring.try_read(into).map_err(of_ring),
            Self::Datagrams(socket) => socket.receive(into),
        }
    }

    /// Prepares for waiting on the descriptor, with `room` also for room to send. Returns whether
    /// there is nothing to do before the descriptor reports something.
    ///
    /// # Errors
    /// The server is gone.
    pub fn arm(&mut self, room: bool) -> io::Result<bool> {
        match self {
            Self::Tcp(_) | Self::Unix(_) | Self::Datagrams(_) => Ok(true),
            Self::Fabric(ring) => Ok(ring.arm(room)?),
        }
    }
}

impl AsRawFd for Link {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Fabric(ring) => ring.as_fd().as_raw_fd(),
            Self::Datagrams(socket) => socket.as_raw_fd(),
        }
    }
}

/// Polls often find nothing, and the general conversion of errors allocates memory.
fn of_ring(error: freeport_fabric::Error) -> io::Error {
    if error.is_would_block() { ErrorKind::WouldBlock.into() } else { error.into() }
}

fn tcp(address: &SocketAddr) -> Result<Link> {
    let stream = TcpStream::connect_timeout(address, CONNECTING)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(Link::Tcp(stream))
}

fn unix(path: &Path) -> Result<Link> {
    let stream = UnixStream::connect(path)?;
    stream.set_nonblocking(true)?;
    Ok(Link::Unix(stream))
}

fn fabric(path: &Path) -> Result<Link> {
    let options = shm::Options { patience: CONNECTING, ..shm::Options::with_capacity(RING_BYTES) };
    let ring = shm::Connection::connect(UnixStream::connect(path)?, &options)?;
    Ok(Link::Fabric(Box::new(ring)))
}
