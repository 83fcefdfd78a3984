// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Byte streams between two processes, and those of the kernel: sockets and pipes, with the
//! settings that serve them best.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

/// Opens an end of a channel in a forked process; both are created before the fork.
pub type Open<C> = Box<dyn FnOnce() -> Result<C>>;

/// One end of a byte stream in each direction.
pub trait Channel {
    /// Whether the channel really transports bytes, so that they can be checked.
    const IS_CARRYING: bool = true;

    /// Sends all of the bytes.
    ///
    /// # Errors
    /// The peer has closed its end, or violated the protocol.
    fn send(&mut self, bytes: &[u8]) -> Result<()>;

    /// Waits for bytes and returns their number: at least one.
    ///
    /// # Errors
    /// The peer has closed its end, or violated the protocol.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize>;

    /// Waits until the buffer is full.
    ///
    /// # Errors
    /// The peer has closed its end, or violated the protocol.
    #[inline]
    fn receive_all(&mut self, into: &mut [u8]) -> Result<()> {
        let mut filled = 0;
        while filled < into.len() {
            filled += self.receive(&mut into[filled..])?;
        }
        Ok(())
    }
}

/// Maximum capacity of a pipe, unless the administrator has raised it.
const PIPE_BYTES: libc::c_int = 1 << 20;

/// A channel over file descriptors, with blocking calls.
pub struct Blocking<S>(S);

impl<S> Blocking<S> {
    /// Returns the stream below.
    pub fn into_inner(self) -> S {
        self.0
    }
}

impl<S: Read + Write> Channel for Blocking<S> {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).context("the kernel does not accept the bytes")
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        loop {
            match self.0.read(into) {
                Ok(0) => anyhow::bail!("the peer has closed its end"),
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the kernel returns no bytes"),
            }
        }
    }
}

/// Creates a TCP connection over the loopback interface, with `TCP_NODELAY` and buffers of this
/// size.
pub fn tcp(buffer_bytes: i32) -> Result<[Open<Blocking<TcpStream>>; 2]> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no TCP on 127.0.0.1")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    both([near, far].map(|stream| tcp_end(stream, buffer_bytes)))
}

/// Configures one end of such a connection.
pub fn tcp_end(stream: TcpStream, buffer_bytes: i32) -> Result<Blocking<TcpStream>> {
    stream.set_nodelay(true)?;
    enlarge(stream.as_raw_fd(), buffer_bytes);
    Ok(Blocking(stream))
}

/// Creates a Unix stream connection with buffers of this size.
pub fn unix(buffer_bytes: i32) -> Result<[Open<Blocking<UnixStream>>; 2]> {
    let (near, far) = UnixStream::pair()?;
    let ends = [near, far].map(|stream| {
        enlarge(stream.as_raw_fd(), buffer_bytes);
        Blocking(stream)
    });
    Ok(ends.map(open))
}

/// A pipe in each direction.
pub struct Pipes {
    to: File,
    from: File,
}

impl Read for Pipes {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.from.read(into)
    }
}

impl Write for Pipes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Creates both ends of a pair of pipes.
pub fn pipes() -> Result<[Open<Blocking<Pipes>>; 2]> {
    let [(near_from, far_to), (far_from, near_to)] = [pipe()?, pipe()?];
    let near = Pipes { to: near_to, from: near_from };
    let far = Pipes { to: far_to, from: far_from };
    Ok([near, far].map(Blocking).map(open))
}

fn pipe() -> Result<(File, File)> {
    let (from, to) = std::io::pipe()?;
    // SAFETY: the call takes and returns numbers only.
    let bytes = unsafe { libc::fcntl(to.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
    ensure!(bytes >= PIPE_BYTES, "a pipe cannot be enlarged to {PIPE_BYTES} bytes");
    Ok((std::os::fd::OwnedFd::from(from).into(), std::os::fd::OwnedFd::from(to).into()))
}

/// Enlarges the buffers of a socket where that is permitted. Otherwise the kernel adapts TCP
/// buffers itself, and other sockets keep the default size.
fn enlarge(socket: RawFd, bytes: i32) {
    for option in [libc::SO_SNDBUFFORCE, libc::SO_RCVBUFFORCE] {
        let (value, length) = ((&raw const bytes).cast(), size_of_val(&bytes) as libc::socklen_t);
        // SAFETY: the call reads a number of that length.
        unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, option, value, length) };
    }
}

fn both<C: 'static>([near, far]: [Result<C>; 2]) -> Result<[Open<C>; 2]> {
    Ok([near?, far?].map(open))
}

/// Wraps a channel that needs no further opening.
pub fn open<C: 'static>(channel: C) -> Open<C> {
    Box::new(move || Ok(channel))
}
