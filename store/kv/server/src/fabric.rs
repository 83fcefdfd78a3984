// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client in another process of this machine, whose bytes go through memory that both have
//! mapped ([`freeport_fabric`]).
//!
//! 1. The client connects to a Unix socket, and sends its hello there, with the memory.
//! 2. When the socket reports it, the stream answers the hello, so no worker ever waits for one.
//! 3. From then on bytes go through memory. Neither side makes a system call while both work; the
//!    descriptor of the stream reports a doorbell, which the client rings for a worker that has
//!    [armed](FabricStream::arm) the stream, and the end of the client's process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use freeport_fabric::shm::{Connection, Options};
use mio::event::Source;
use mio::net::UnixStream;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

/// Time for a hello that the socket has reported already. Only a client that sends something else
/// needs any of it.
const PATIENCE: Duration = Duration::from_millis(1);
/// Largest ring of a client in bytes: it holds a whole packet of nearly every client, and ten
/// thousand clients cannot make the server map more than its address space.
const RING_BYTES_MAX: usize = 16 << 20;

/// A connection over shared memory.
#[derive(Debug)]
pub struct FabricStream {
    state: State,
    path: PathBuf,
    since: Instant,
    /// The descriptor has reported something: the peer may be gone.
    is_rung: bool,
    /// Bytes that were read and written until now.
    moved: u64,
    /// Its worker looks at it in every turn.
    pub is_hot: bool,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "streams of this kind are in boxes")]
enum State {
    /// The client has not sent its hello.
    Greeting(UnixStream),
    Open(Connection),
    /// The hello was refused.
    Failed,
}

/// The reasons to wake a worker that does not look at a stream any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes to read.
    pub data: bool,
    /// Room to write.
    pub room: bool,
}

impl FabricStream {
    /// A client that has connected to a socket.
    pub fn new(socket: UnixStream, path: PathBuf) -> Self {
        let state = State::Greeting(socket);
        Self { state, path, since: Instant::now(), is_rung: false, moved: 0, is_hot: false }
    }

    /// Reports what happens as events with a token.
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.state {
            State::Greeting(socket) => socket.register(registry, token, Interest::READABLE),
            State::Open(connection) => SourceFd(&connection.as_fd().as_raw_fd()).register(
                registry,
                token,
                Interest::READABLE,
            ),
            State::Failed => Ok(()),
        }
    }

    /// Reports nothing more. The worker that registers it next looks at it first.
    ///
    /// # Errors
    /// Those of the system.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.is_hot = false;
        match &mut self.state {
            State::Greeting(socket) => socket.deregister(registry),
            State::Open(connection) => {
                SourceFd(&connection.as_fd().as_raw_fd()).deregister(registry)
            }
            State::Failed => Ok(()),
        }
    }

    /// The descriptor has reported something: a hello, a doorbell, or the end of the client.
    pub fn rang(&mut self, registry: &Registry, token: Token) {
        self.is_rung = true;
        if matches!(self.state, State::Greeting(_)) {
            // A client that is refused finds its socket closed.
            self.state = match self.agree(registry, token) {
                Ok(connection) => State::Open(connection),
                Err(_) => State::Failed,
            };
        }
    }

    fn agree(&mut self, registry: &Registry, token: Token) -> io::Result<Connection> {
        let State::Greeting(mut socket) = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        socket.deregister(registry)?;
        let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(socket));
        let options = Options { patience: PATIENCE, largest: RING_BYTES_MAX, ..Options::default() };
        let connection = Connection::accept(socket, &options)?;
        let descriptor = connection.as_fd().as_raw_fd();
        SourceFd(&descriptor).register(registry, token, Interest::READABLE)?;
        Ok(connection)
    }

    /// Reads bytes that have come; 0: the client has closed its side.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: there are none. Otherwise the client is gone, or has broken
    /// the protocol.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let connection = match &mut self.state {
            State::Open(connection) => connection,
            State::Greeting(_) => return Err(io::ErrorKind::WouldBlock.into()),
            State::Failed => return Err(io::ErrorKind::ConnectionAborted.into()),
        };
        let mut read = connection.try_read(buffer);
        if matches!(&read, Err(error) if error.is_would_block())
            && std::mem::take(&mut self.is_rung)
            && !connection.peer_is_alive()?
        {
            // It may have written before it ended.
            read = connection.try_read(buffer);
            if matches!(&read, Err(error) if error.is_would_block()) {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            self.is_rung = true;
        }
        let bytes = read?;
        self.moved += bytes as u64;
        Ok(bytes)
    }

    /// Writes bytes as far as there is room.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`]: there is none. Otherwise the client is gone, or has broken
    /// the protocol.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let State::Open(connection) = &mut self.state else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let bytes = connection.try_write(bytes)?;
        self.moved += bytes as u64;
        Ok(bytes)
    }

    /// Makes the descriptor report when something is wanted that is not there yet. Returns false
    /// if it is there. Reading and writing undo this.
    ///
    /// # Errors
    /// The client is gone, or has broken the protocol.
    pub fn arm(&mut self, wanted: Wanted) -> io::Result<bool> {
        let State::Open(connection) = &mut self.state else { return Ok(true) };
        Ok(match wanted {
            Wanted { data: true, room } => connection.arm(room)?,
            Wanted { data: false, room: true } => connection.arm_for_room()?,
            Wanted { data: false, room: false } => true,
        })
    }

    /// The hello has been answered.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// The client has not sent its hello, although it had that much time.
    pub fn is_late(&self, limit: Duration) -> bool {
        !self.is_open() && self.since.elapsed() >= limit
    }

    /// Number of bytes that were read and written until now.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// Socket that the client has connected to.
    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Number of the descriptor that reports what happens.
    pub fn descriptor(&self) -> i32 {
        match &self.state {
            State::Greeting(socket) => socket.as_raw_fd(),
            State::Open(connection) => connection.as_fd().as_raw_fd(),
            State::Failed => -1,
        }
    }
}
