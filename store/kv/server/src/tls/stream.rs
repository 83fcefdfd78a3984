// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An encrypted connection on a socket that does not block.
//!
//! The socket reports each change once, and the session may have decrypted bytes of which the
//! socket knows nothing. So a read takes all that is there: it returns fewer bytes than fit only if
//! the socket has no more, or says so by [`TlsStream::has_more`].
//!
//! Bytes count as written when their records have left for the socket. Until then a write returns
//! [`io::ErrorKind::WouldBlock`] and its caller repeats it with the same bytes, as it does with a
//! socket that is full. So the session never has more than one write, and the connection's own
//! count of unsent bytes is right.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use rustls::{ServerConfig, ServerConnection};

use super::Handshakes;

/// Bytes that are taken from the socket at once; a record has at most 16 KiB and some more.
const PART_BYTES: usize = 16 << 10;
/// How often the socket is read before others get their turn. Records may be empty.
const PARTS: usize = 16;
/// Bytes that are encrypted at once.
const WRITE_BYTES: usize = 32 << 10;

/// An encrypted connection.
#[derive(Debug)]
pub struct TlsStream {
    socket: TcpStream,
    session: ServerConnection,
    peer: SocketAddr,
    handshakes: Arc<Handshakes>,
    begin: Instant,
    is_established: bool,
    /// Received bytes that were not decrypted, because there was no room for more.
    rest: Vec<u8>,
    /// Bytes of the last write, whose records wait for the socket.
    held: usize,
    has_more: bool,
    /// The other side has ended the connection, or it failed.
    is_over: bool,
}

impl TlsStream {
    /// A connection whose handshake begins.
    pub(super) fn new(
        socket: TcpStream,
        peer: SocketAddr,
        config: Arc<ServerConfig>,
        handshakes: Arc<Handshakes>,
    ) -> io::Result<Self> {
        let session = ServerConnection::new(config).map_err(io::Error::other)?;
        Ok(Self {
            socket,
            session,
            peer,
            handshakes,
            begin: Instant::now(),
            is_established: false,
            rest: vec![],
            held: 0,
            has_more: false,
            is_over: false,
        })
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// The socket.
    pub fn socket_mut(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// The handshake is complete.
    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// Time since the connection was accepted.
    pub fn age(&self) -> Duration {
        self.begin.elapsed()
    }

    /// The next read may return more, although the socket reports nothing.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Records wait for the socket. A read sends them too.
    pub fn has_records(&self) -> bool {
        self.session.wants_write()
    }

    /// Decrypts what the socket has, until there is no room for more. Returns false if the socket
    /// may have more.
    fn fill(&mut self, buffer: &mut [u8], filled: &mut usize) -> io::Result<bool> {
        let rest = std::mem::take(&mut self.rest);
        self.decrypt(&rest, buffer, filled)?;
        for _ in 0..PARTS {
            if self.is_over || *filled == buffer.len() {
                return Ok(true);
            }
            let mut part = [0; PART_BYTES];
            match self.socket.read(&mut part) {
                Ok(0) => self.is_over = true,
                Ok(bytes) => self.decrypt(&part[..bytes], buffer, filled)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Decrypts received bytes, and keeps those for which there is no room.
    fn decrypt(
        &mut self,
        mut records: &[u8],
        buffer: &mut [u8],
        filled: &mut usize,
    ) -> io::Result<()> {
        loop {
            self.take_decrypted(buffer, filled)?;
            if records.is_empty() || self.is_over {
                return Ok(());
            }
            if *filled == buffer.len() {
                self.rest = records.to_vec();
                return Ok(());
            }
            self.session.read_tls(&mut records)?;
            self.session.process_new_packets().map_err(io::Error::other)?;
            if !self.is_established && !self.session.is_handshaking() {
                self.is_established = true;
                self.handshakes.completed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn take_decrypted(&mut self, buffer: &mut [u8], filled: &mut usize) -> io::Result<()> {
        while *filled < buffer.len() && !self.is_over {
            match self.session.reader().read(&mut buffer[*filled..]) {
                Ok(0) => self.is_over = true,
                Ok(bytes) => *filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends records until the socket takes no more.
    fn send_records(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Read for TlsStream {
    /// Returns 0 when the connection has ended or failed.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        let is_all = self.fill(buffer, &mut filled).unwrap_or_else(|error| {
            tracing::debug!(peer = %self.peer, %error, "a TLS connection failed");
            self.is_over = true;
            true
        });
        // Answers of the handshake, tickets and alerts.
        match self.send_records() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => self.is_over = true,
            _ => {}
        }
        self.has_more = !is_all || self.is_over;
        match (filled, self.is_over) {
            (0, false) => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(filled),
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_established {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // Afterwards the session has room.
        self.send_records()?;
        if self.held == 0 {
            self.held = self.session.writer().write(&bytes[..bytes.len().min(WRITE_BYTES)])?;
            self.send_records()?;
        }
        Ok(std::mem::take(&mut self.held))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_records()
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        if !self.is_established {
            self.handshakes.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.session.send_close_notify();
        // The connection ends either way.
        let _ = self.send_records();
    }
}
