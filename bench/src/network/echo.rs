// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ICMP echo requests, as sent by `ping`.

use super::Host;
use crate::harness::histogram::Histogram;
use anyhow::{Context, Result};
use freeport_port::packet::checksum;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

const REQUEST: u8 = 8;
const REPLY: u8 = 0;
const HEADER_BYTES: usize = 8;

/// Results of echo requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Echoes {
    /// Number of requests sent.
    pub sent: u32,
    /// Times of the replies that arrived.
    pub round_trips: Histogram,
}

/// Sends `count` requests with `bytes` bytes of payload, each after the reply to the previous one,
/// or after `wait` if there is none.
///
/// # Errors
/// No right to open a raw socket, or no route.
pub fn ping(
    host: &Host,
    target: Ipv4Addr,
    count: u16,
    bytes: usize,
    wait: Duration,
) -> Result<Echoes> {
    let socket = host.within(open)?;
    let identity = fastrand::u16(..);
    let mut round_trips = Histogram::default();
    for number in 0..count {
        let request = message(identity, number, bytes);
        let begin = Instant::now();
        let to = SocketAddrV4::new(target, 0);
        socket.send_to(&request, to).with_context(|| format!("an echo request to {target}"))?;
        if is_answered(&socket, &request, begin + wait)? {
            round_trips.add(begin.elapsed());
        }
    }
    Ok(Echoes { sent: count.into(), round_trips })
}

/// Opens a raw socket; the standard library's type for UDP sockets serves for it as well.
fn open() -> Result<UdpSocket> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: the call takes three numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, kind, libc::IPPROTO_ICMP) };
    if socket < 0 {
        return Err(io::Error::last_os_error()).context("no raw socket for ICMP can be opened");
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) }.into())
}

fn message(identity: u16, number: u16, bytes: usize) -> Vec<u8> {
    let mut message = vec![REQUEST, 0, 0, 0];
    message.extend(identity.to_be_bytes());
    message.extend(number.to_be_bytes());
    message.extend((0..bytes).map(|at| at as u8));
    let sum = checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Returns whether the reply arrives in time. The socket receives all ICMP packets of its host.
fn is_answered(socket: &UdpSocket, request: &[u8], end: Instant) -> Result<bool> {
    let mut memory = vec![0; 1 << 16];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        socket.set_read_timeout(Some(left))?;
        let length = match socket.recv(&mut memory) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error).context("receiving an echo reply"),
        };
        // Raw sockets deliver the IPv4 header too.
        let header = usize::from(memory[0] & 15) * 4;
        let Some(reply) = memory[..length].get(header..) else { continue };
        let is_ours = reply.len() == request.len() && reply[0] == REPLY;
        if is_ours && reply[4..] == request[4..] && reply.len() >= HEADER_BYTES {
            return Ok(true);
        }
    }
}
