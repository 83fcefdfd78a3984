// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP datagrams that a host echoes.

use super::Host;
use anyhow::{Context, Result};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum time until the server notices that it should stop.
const TURN: Duration = Duration::from_millis(50);
const MOST_BYTES: usize = 65_507;

/// Echoes every datagram until it is dropped.
#[derive(Debug)]
pub struct Mirror {
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mirror {
    /// Starts on a port of a host.
    ///
    /// # Errors
    /// The port is in use.
    pub fn start(host: &Host, port: u16) -> Result<Self> {
        let socket = host.within(|| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port));
            socket.with_context(|| format!("port {port} of UDP cannot be used"))
        })?;
        socket.set_read_timeout(Some(TURN))?;
        let is_stopping = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let is_stopping = Arc::clone(&is_stopping);
            move || send_back(&socket, &is_stopping)
        });
        Ok(Self { is_stopping, thread: Some(thread) })
    }
}

fn send_back(socket: &UdpSocket, is_stopping: &AtomicBool) {
    let mut memory = vec![0; MOST_BYTES];
    while !is_stopping.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut memory) {
            // A lost answer counts the same as a lost question.
            drop(socket.send_to(&memory[..length], from));
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Sends `count` datagrams of `bytes` bytes from a host, one after the other; returns how many were
/// echoed unchanged, each within `wait`.
///
/// # Errors
/// No socket, or a datagram cannot be sent.
pub fn ask(
    host: &Host,
    server: SocketAddrV4,
    count: u32,
    bytes: usize,
    wait: Duration,
) -> Result<u32> {
    let socket = host.within(|| Ok(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(wait))?;
    let mut memory = vec![0; MOST_BYTES];
    let mut returned = 0;
    for number in 0..count {
        let mut question = vec![number as u8; bytes.max(4)];
        question[..4].copy_from_slice(&number.to_le_bytes());
        socket.send(&question).with_context(|| format!("a datagram to {server}"))?;
        match socket.recv(&mut memory) {
            Ok(length) => returned += u32::from(memory[..length] == question),
            Err(error) if is_no_answer(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(returned)
}

fn is_no_answer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | ConnectionRefused)
}
