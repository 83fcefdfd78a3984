// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A stream of bytes to a server: a connection of TCP, or shared memory.

use crate::options::Options;
use freeport_fabric::shm;
use freeport_fabric::wait::Waiting;
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;

#[derive(Debug)]
pub(crate) enum Transport {
    Tcp(TcpStream),
    Fabric(Box<shm::Connection>),
}

impl Transport {
    /// Connects to a host and port.
    pub(crate) fn tcp(host: &str, options: &Options) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, options.timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(options.timeout))?;
                    stream.set_write_timeout(Some(options.timeout))?;
                    return Ok(Self::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to the socket through which a server shares memory.
    pub(crate) fn fabric(path: &Path, options: &Options) -> io::Result<Self> {
        let shared = shm::Options {
            waiting: Waiting { timeout: Some(options.timeout), ..options.waiting },
            patience: options.timeout,
            ..shm::Options::with_capacity(options.ring_bytes)
        };
        let connection = shm::Connection::connect(UnixStream::connect(path)?, &shared)?;
        Ok(Self::Fabric(Box::new(connection)))
    }

    /// Sends some of the bytes, and waits until there is room.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = uninterrupted(|| match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Fabric(connection) => Ok(connection.write(bytes)?),
        })?;
        if sent == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(sent) }
    }

    /// Sends some of the bytes if there is room: otherwise none, and 0.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = uninterrupted(|| match self {
            Self::Tcp(stream) => SockRef::from(&*stream)
                .send_with_flags(bytes, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL),
            Self::Fabric(connection) => Ok(connection.try_write(bytes)?),
        });
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            sent => sent,
        }
    }

    /// Receives some bytes, at least one.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = uninterrupted(|| match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Fabric(connection) => Ok(connection.read(into)?),
        })?;
        if bytes == 0 {
            let text = "the server closed the connection";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        Ok(bytes)
    }
}

/// Repeats a call that a signal interrupts.
fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
