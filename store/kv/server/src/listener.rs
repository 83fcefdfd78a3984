// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sockets of a server: those that it listens on, and those of its clients.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};

use crate::error::ServerError;
use crate::fabric::FabricStream;
use crate::options::Bind;
use crate::tls::{Tls, TlsStream};

/// Probes of an idle connection without an answer after which it has failed, as with Redis.
const KEEPALIVE_PROBES: u32 = 3;

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// That of Redis.
    Resp,
    /// Those of memcached.
    Memcached,
    /// Batches of operations in packets.
    Batch,
}

/// A socket that clients connect to.
#[derive(Debug)]
pub struct Listener {
    socket: Listening,
    /// Its clients encrypt.
    tls: Option<Arc<Tls>>,
    /// Protocol of its clients.
    pub protocol: Protocol,
}

#[derive(Debug)]
enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
    Fabric(UnixListener, PathBuf),
}

/// The socket of a client.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS on TCP.
    Tls(Box<TlsStream>),
    /// Memory that the client has mapped too.
    Fabric(Box<FabricStream>),
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn open(bind: &Bind, protocol: Protocol) -> Result<Self, ServerError> {
        let socket = match bind {
            Bind::Tcp(address) => {
                let listener = TcpListener::bind(*address)
                    .map_err(|error| ServerError::Listen { address: address.to_string(), error })?;
                Listening::Tcp(listener)
            }
            Bind::Unix(path) => Listening::Unix(listen_unix(path)?, path.clone()),
            Bind::Fabric(path) => Listening::Fabric(listen_unix(path)?, path.clone()),
        };
        Ok(Self { socket, tls: None, protocol })
    }

    /// Listens for clients that encrypt.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn open_encrypted(
        bind: &Bind,
        protocol: Protocol,
        tls: Arc<Tls>,
    ) -> Result<Self, ServerError> {
        let mut listener = Self::open(bind, protocol)?;
        listener.tls = Some(tls);
        Ok(listener)
    }

    /// Address of a TCP socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Listening::Tcp(listener) => listener.local_addr().ok(),
            Listening::Unix(..) | Listening::Fabric(..) => None,
        }
    }

    /// The next client that has connected, with its address as `CLIENT LIST` shows it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn accept(&self) -> io::Result<(Stream, String)> {
        match &self.socket {
            Listening::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                // A reply leaves when it is written.
                stream.set_nodelay(true)?;
                let stream = match &self.tls {
                    None => Stream::Tcp(stream),
                    Some(tls) => Stream::Tls(Box::new(tls.accept(stream, address)?)),
                };
                Ok((stream, address.to_string()))
            }
            Listening::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                Ok((Stream::Unix(stream), format!("{}:0", path.display())))
            }
            Listening::Fabric(listener, path) => {
                let (socket, _) = listener.accept()?;
                let stream = FabricStream::new(socket, path.clone());
                Ok((Stream::Fabric(Box::new(stream)), format!("{}:0", path.display())))
            }
        }
    }

    /// Its clients send requests of Redis, and do not encrypt.
    pub fn is_plain(&self) -> bool {
        self.tls.is_none() && self.protocol == Protocol::Resp
    }

    /// Reports nothing more, so that another thread can register it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match &mut self.socket {
            Listening::Tcp(socket) => socket.deregister(registry),
            Listening::Unix(socket, _) | Listening::Fabric(socket, _) => {
                socket.deregister(registry)
            }
        }
    }

    /// Reports connecting clients as events with a token.
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            Listening::Tcp(socket) => socket.register(registry, token, Interest::READABLE),
            Listening::Unix(socket, _) | Listening::Fabric(socket, _) => {
                socket.register(registry, token, Interest::READABLE)
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listening::Unix(_, path) | Listening::Fabric(_, path) = &self.socket {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn listen_unix(path: &PathBuf) -> Result<UnixListener, ServerError> {
    remove_abandoned(path);
    UnixListener::bind(path).map_err(|error| ServerError::ListenUnix { path: path.clone(), error })
}

/// Removes a Unix socket that nobody listens on, as a server that was killed leaves it.
fn remove_abandoned(path: &PathBuf) {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket
        && std::os::unix::net::UnixStream::connect(path).is_err_and(|error| refused(&error))
    {
        // `bind` says why it stays.
        let _ = std::fs::remove_file(path);
    }
}

impl Stream {
    /// Reports what happens as events with a token, once for each change of its state.
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interests = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(stream) => stream.register(registry, token, interests),
            Self::Unix(stream) => stream.register(registry, token, interests),
            Self::Tls(stream) => stream.socket_mut().register(registry, token, interests),
            Self::Fabric(stream) => stream.register(registry, token),
        }
    }

    /// Reports nothing more, so that another worker can register it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.deregister(registry),
            Self::Unix(stream) => stream.deregister(registry),
            Self::Tls(stream) => stream.socket_mut().deregister(registry),
            Self::Fabric(stream) => stream.deregister(registry),
        }
    }

    /// Makes the system ask an idle peer whether it is still there, after a number of seconds and
    /// three times from then on; 0: never. Unix sockets need no such question.
    pub fn keep_alive(&self, seconds: u32) {
        let Some(socket) = self.tcp() else { return };
        let idle = Duration::from_secs(seconds.into());
        let interval = Duration::from_secs(u64::from(seconds / KEEPALIVE_PROBES).max(1));
        let keepalive = TcpKeepalive::new()
            .with_time(idle)
            .with_interval(interval)
            .with_retries(KEEPALIVE_PROBES);
        if seconds > 0 {
            // A connection without it is served as well.
            let _ = SockRef::from(socket).set_tcp_keepalive(&keepalive);
        }
    }

    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(stream) => Some(stream.socket()),
            Self::Unix(_) | Self::Fabric(_) => None,
        }
    }

    /// The client is a process of this machine, known by a path.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_) | Self::Fabric(_))
    }

    /// The next read may return more, although the socket reports nothing.
    pub fn has_more(&self) -> bool {
        match self {
            Self::Tls(stream) => stream.has_more(),
            Self::Tcp(_) | Self::Unix(_) | Self::Fabric(_) => false,
        }
    }

    /// A read has something to do when the socket takes bytes again.
    pub fn has_records(&self) -> bool {
        match self {
            Self::Tls(stream) => stream.has_records(),
            Self::Tcp(_) | Self::Unix(_) | Self::Fabric(_) => false,
        }
    }

    /// The client has not completed its handshake, although it had that much time.
    pub fn is_late(&self, limit: Duration) -> bool {
        match self {
            Self::Tls(stream) => !stream.is_established() && stream.age() >= limit,
            Self::Fabric(stream) => stream.is_late(limit),
            Self::Tcp(_) | Self::Unix(_) => false,
        }
    }
}

impl Stream {
    /// Address that the client connected to, as `CLIENT LIST` shows it.
    pub fn local_address(&self) -> String {
        match self {
            Self::Tcp(_) | Self::Tls(_) => {
                let address = self.tcp().and_then(|stream| stream.local_addr().ok());
                address.map(|address| address.to_string()).unwrap_or_default()
            }
            Self::Unix(stream) => {
                let address = stream.local_addr().ok();
                let path = address.as_ref().and_then(|address| address.as_pathname());
                path.map(|path| format!("{}:0", path.display())).unwrap_or_default()
            }
            Self::Fabric(stream) => format!("{}:0", stream.path().display()),
        }
    }

    /// Number of the socket.
    pub fn descriptor(&self) -> i32 {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Tls(stream) => stream.socket().as_raw_fd(),
            Self::Fabric(stream) => stream.descriptor(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
            Self::Fabric(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Fabric(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
