// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets as datagrams, which can be lost, arrive twice, or overtake each other.
//!
//! A request that only reads is sent again until its replies come, each time with another number,
//! so that replies of different times are not mixed. Any other request is sent once.

use crate::address::Address;
use crate::error::Error;
use crate::options::Options;
use freeport_kv_protocol::batch::Header;
use socket2::SockRef;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Largest datagram, in bytes.
pub(crate) const DATAGRAM_BYTES: usize = 65_507;
/// Size for which the system is asked for received datagrams. It may give less.
const SYSTEM_BYTES: usize = 4 << 20;
/// The time between two sends of a datagram doubles up to this often.
const DOUBLINGS: u32 = 6;
/// Where the number of a batch is in its packet.
const BATCH: Range<usize> = 4..8;

#[derive(Debug)]
pub(crate) struct Datagrams {
    address: Address,
    timeout: Duration,
    retry_after: Duration,
    socket: UdpSocket,
    buffer: Vec<u8>,
    /// Requests without all of their replies.
    in_flight: VecDeque<Sent>,
    /// Number of the next datagram.
    next: u32,
    /// Longest time between two looks for overdue requests.
    tick: Duration,
    next_look: Instant,
}

/// A request without all of its replies.
#[derive(Debug)]
struct Sent {
    /// Number by which the caller knows it.
    batch: u32,
    /// Number of its last datagram.
    number: u32,
    count: u16,
    /// Number of replies that have not come.
    missing: u16,
    /// The first replies of the parts that have come.
    parts: Vec<u16>,
    /// The datagram, if it may be sent again.
    datagram: Vec<u8>,
    retries: u32,
    /// How often it was sent again.
    retried: u32,
    first_sent: Instant,
    last_sent: Instant,
}

impl Datagrams {
    pub(crate) fn connect(address: &Address, host: &str, options: &Options) -> io::Result<Self> {
        let socket = connect(host)?;
        // Less is enough for a small window.
        _ = SockRef::from(&socket).set_recv_buffer_size(SYSTEM_BYTES);
        let tick = options.retry_after.min(options.timeout) / 4;
        let tick = tick.max(Duration::from_millis(1));
        socket.set_read_timeout(Some(tick))?;
        socket.set_write_timeout(Some(options.timeout))?;
        Ok(Self {
            address: address.clone(),
            timeout: options.timeout,
            retry_after: options.retry_after,
            socket,
            buffer: vec![0; DATAGRAM_BYTES],
            in_flight: VecDeque::new(),
            // Replies to a former user of this port have other numbers.
            next: RandomState::new().build_hasher().finish() as u32,
            tick,
            next_look: Instant::now(),
        })
    }

    /// Requests without all of their replies.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Sends a packet, and up to `retries` times again if no replies come.
    pub(crate) fn send(
        &mut self,
        packet: &mut [u8],
        batch: u32,
        count: u16,
        retries: u32,
    ) -> Result<(), Error> {
        let number = self.number();
        packet[BATCH].copy_from_slice(&number.to_le_bytes());
        self.socket.send(packet).map_err(|source| self.lost(source))?;
        let now = Instant::now();
        self.in_flight.push_back(Sent {
            batch,
            number,
            count,
            missing: count,
            parts: Vec::new(),
            datagram: if retries > 0 { packet.to_vec() } else { Vec::new() },
            retries,
            retried: 0,
            first_sent: now,
            last_sent: now,
        });
        Ok(())
    }

    /// Waits for replies to any request; there has to be one. Returns the number of the request,
    /// with the header and the place of the payload. True means that no replies are missing.
    pub(crate) fn receive(&mut self) -> Result<(u32, Header, Range<usize>, bool), Error> {
        loop {
            self.look()?;
            let bytes = match self.socket.recv(&mut self.buffer) {
                Ok(bytes) => bytes,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted => continue,
                    _ => return Err(self.lost(error)),
                },
            };
            // Anybody can send datagrams: what is no reply is ignored.
            let limit = bytes as u32;
            let Ok(Some(header)) = Header::parse_reply(&self.buffer[..bytes], limit) else {
                continue;
            };
            if header.packet_bytes() == bytes
                && let Some((batch, is_last)) = self.accept(&header)
            {
                return Ok((batch, header, header.bytes()..bytes, is_last));
            }
        }
    }

    /// Bytes of a payload until the next call of [`receive`](Self::receive).
    pub(crate) fn payload(&self, payload: Range<usize>) -> &[u8] {
        &self.buffer[payload]
    }

    /// Finds the request of replies. `None` if there is none, or it has them already.
    fn accept(&mut self, header: &Header) -> Option<(u32, bool)> {
        let at = self.in_flight.iter().position(|sent| sent.number == header.batch)?;
        let sent = &mut self.in_flight[at];
        let Header { first, count, is_error, .. } = *header;
        let is_within = first.checked_add(count).is_some_and(|end| end <= sent.count);
        if !is_error && (!is_within || count == 0 || sent.parts.contains(&first)) {
            return None;
        }
        let missing = if is_error { 0 } else { sent.missing.checked_sub(count)? };
        let batch = sent.batch;
        if missing == 0 {
            self.in_flight.remove(at);
        } else {
            sent.missing = missing;
            sent.parts.push(first);
        }
        Some((batch, missing == 0))
    }

    /// Sends overdue requests again.
    ///
    /// # Errors
    /// A request is older than the time-out. It is no longer in flight.
    fn look(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now < self.next_look {
            return Ok(());
        }
        self.next_look = now + self.tick;
        for at in 0..self.in_flight.len() {
            let number = self.next;
            let sent = &mut self.in_flight[at];
            if now - sent.first_sent >= self.timeout {
                self.in_flight.remove(at);
                let (address, after) = (self.address.clone(), self.timeout);
                return Err(Error::TimedOut { address, after });
            }
            let wait = self.retry_after * (1 << sent.retried.min(DOUBLINGS));
            if sent.retried < sent.retries && now - sent.last_sent >= wait {
                sent.number = number;
                sent.datagram[BATCH].copy_from_slice(&number.to_le_bytes());
                (sent.missing, sent.last_sent) = (sent.count, now);
                sent.parts.clear();
                sent.retried += 1;
                let result = self.socket.send(&sent.datagram);
                result.map_err(|source| self.lost(source))?;
                self.next = number.wrapping_add(1);
            }
        }
        Ok(())
    }

    fn number(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    fn lost(&self, source: io::Error) -> Error {
        Error::lost(&self.address, self.timeout, source)
    }
}

/// A socket that receives from the first address of a host that can be used.
fn connect(host: &str) -> io::Result<UdpSocket> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in host.to_socket_addrs()? {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any);
        match socket.and_then(|socket| socket.connect(address).map(|()| socket)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}
