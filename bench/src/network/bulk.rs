// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A long transfer over one TCP connection, of which the receiver verifies every byte.
//!
//! The sender sends chunks preceded by their length; a length of zero ends the transfer. So the end
//! is signalled without closing, and the server closes first: middleboxes that take the first FIN
//! for the end of a connection do not cut off data after it.

use super::{Host, PATIENCE, Service};
use anyhow::{Context, Result, bail, ensure};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of all chunks but the last; a prime, so that chunks and segments never align.
const CHUNK_BYTES: usize = 65_521;
const LENGTH_BYTES: usize = 4;

/// Direction of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// A transfer that runs in its own thread.
#[derive(Debug)]
pub struct Transfer {
    progress: Arc<Progress>,
    stream: TcpStream,
    thread: Option<JoinHandle<Result<Done>>>,
}

/// A completed transfer, every byte of which was correct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Bytes received.
    pub bytes: u64,
    /// Time from the first byte to the acknowledgement of the last.
    pub elapsed: Duration,
}

#[derive(Debug, Default)]
struct Progress {
    bytes: AtomicU64,
    is_to_stop: AtomicBool,
}

/// Serves transfers on a port of a host.
///
/// # Errors
/// The port is in use.
pub fn serve(host: &Host, port: u16) -> Result<Service> {
    // The client reports broken connections and wrong bytes.
    Service::start(host, port, |stream| drop(answer(stream)))
}

/// Starts a transfer of `bytes` bytes from a host.
///
/// # Errors
/// No connection.
pub fn start(
    host: &Host,
    server: SocketAddrV4,
    direction: Direction,
    bytes: u64,
) -> Result<Transfer> {
    let stream = host.within(|| {
        let stream = TcpStream::connect_timeout(&server.into(), PATIENCE);
        stream.with_context(|| format!("no connection to {server}"))
    })?;
    let progress = Arc::new(Progress::default());
    let thread = std::thread::spawn({
        let (progress, stream) = (Arc::clone(&progress), stream.try_clone()?);
        move || ask(stream, direction, bytes, &progress)
    });
    Ok(Transfer { progress, stream, thread: Some(thread) })
}

impl Transfer {
    /// Returns the bytes that the client has sent or received so far.
    pub fn bytes(&self) -> u64 {
        self.progress.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether the transfer has ended, successfully or not.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the transfer after the bytes in flight, then works as [`finish`](Self::finish).
    ///
    /// # Errors
    /// As for `finish`.
    pub fn stop(self) -> Result<Done> {
        self.progress.is_to_stop.store(true, Ordering::Relaxed);
        self.finish()
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The connection broke or stalled, or bytes are wrong or missing.
    pub fn finish(mut self) -> Result<Done> {
        let thread = self.thread.take().context("the transfer was finished before")?;
        thread.join().map_err(|_| anyhow::anyhow!("the transfer panicked"))?
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            drop(self.stream.shutdown(Shutdown::Both));
            drop(thread.join());
        }
    }
}

impl Done {
    /// Returns the rate in millions of bytes per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_secs_f64().max(1e-9) / 1e6
    }
}

/// Runs the client's side.
fn ask(
    mut stream: TcpStream,
    direction: Direction,
    bytes: u64,
    progress: &Progress,
) -> Result<Done> {
    limit_waiting(&stream)?;
    let kind = if direction == Direction::Up { b'u' } else { b'd' };
    let begin = Instant::now();
    stream.write_all(&[&[kind][..], &bytes.to_le_bytes()].concat())?;
    let arrived = match direction {
        Direction::Up => {
            let sent = send(&mut stream, bytes, progress)?;
            let arrived =
                read_number(&mut stream).context("the server reports no number of bytes")?;
            ensure!(arrived == sent, "only {arrived} of {sent} bytes arrived undamaged");
            ensure!(stream.read(&mut [0])? == 0, "the server does not close");
            arrived
        }
        Direction::Down => {
            let arrived = receive(&mut stream, progress)?;
            let is_stopped = progress.is_to_stop.load(Ordering::Relaxed);
            ensure!(is_stopped || arrived == bytes, "only {arrived} of {bytes} bytes arrived");
            arrived
        }
    };
    Ok(Done { bytes: arrived, elapsed: begin.elapsed() })
}

/// Runs the server's side.
fn answer(mut stream: TcpStream) -> Result<()> {
    limit_waiting(&stream)?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    let bytes = read_number(&mut stream)?;
    let progress = Progress::default();
    match kind[0] {
        b'u' => {
            let arrived = receive(&mut stream, &progress)?;
            stream.write_all(&arrived.to_le_bytes())?;
        }
        _ => drop(send(&mut stream, bytes, &progress)?),
    }
    Ok(())
}

fn limit_waiting(stream: &TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream.set_write_timeout(Some(PATIENCE))?)
}

fn read_number(stream: &mut TcpStream) -> io::Result<u64> {
    let mut number = [0; 8];
    stream.read_exact(&mut number)?;
    Ok(u64::from_le_bytes(number))
}

/// Returns a whole chunk with its length; each byte depends on its offset.
fn chunk() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    let bytes = (0..CHUNK_BYTES).map(|_| random.u8(..));
    (CHUNK_BYTES as u32).to_le_bytes().into_iter().chain(bytes).collect()
}

/// Sends up to `bytes` bytes and the end; returns the number sent.
fn send(stream: &mut TcpStream, bytes: u64, progress: &Progress) -> Result<u64> {
    let mut chunk = chunk();
    let mut sent = 0;
    while sent < bytes && !progress.is_to_stop.load(Ordering::Relaxed) {
        let length = (bytes - sent).min(CHUNK_BYTES as u64) as usize;
        chunk[..LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
        stream.write_all(&chunk[..LENGTH_BYTES + length]).context("sending")?;
        sent += length as u64;
        progress.bytes.store(sent, Ordering::Relaxed);
    }
    stream.write_all(&[0; LENGTH_BYTES]).context("sending the end")?;
    Ok(sent)
}

/// Receives until the end, or until it is stopped; returns the number of correct bytes.
fn receive(stream: &mut TcpStream, progress: &Progress) -> Result<u64> {
    let expected = chunk().split_off(LENGTH_BYTES);
    let mut memory = vec![0; CHUNK_BYTES];
    let mut received = 0;
    while !progress.is_to_stop.load(Ordering::Relaxed) {
        let mut length = [0; LENGTH_BYTES];
        stream.read_exact(&mut length).context("receiving")?;
        let length = u32::from_le_bytes(length) as usize;
        ensure!(length <= CHUNK_BYTES, "wrong bytes after the first {received}");
        if length == 0 {
            break;
        }
        stream.read_exact(&mut memory[..length]).context("receiving")?;
        if memory[..length] != expected[..length] {
            bail!("wrong bytes after the first {received}");
        }
        received += length as u64;
        progress.bytes.store(received, Ordering::Relaxed);
    }
    Ok(received)
}
