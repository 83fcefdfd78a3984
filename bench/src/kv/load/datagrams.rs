// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client over UDP. Its first packet, hello, gets a token, which each later packet has.

use anyhow::{Context, Result, bail};
use freeport_kv_protocol::batch::{
    Header, Hello, HelloReply, Operation, PacketLimits, PacketWriter, ReplyReader,
};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// Time after which hello is sent again.
const AGAIN: Duration = Duration::from_millis(200);
/// Longest reply to hello that is read: status, length and value, or a short text.
const REPLY_BYTES: usize = 512;

/// A socket with its token.
pub struct Datagrams {
    socket: UdpSocket,
    token: u64,
    /// A packet with its token.
    datagram: Vec<u8>,
}

impl Datagrams {
    /// Gets a token from the server at `address`, in this time.
    ///
    /// # Errors
    /// Nothing listens, or the server refuses.
    pub fn open(address: &SocketAddr, within: Duration) -> Result<Self> {
        let own: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(own)?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(AGAIN))?;
        let token = hello(&socket, Instant::now() + within)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, token, datagram: vec![] })
    }

    /// Sends a packet, which has no token yet.
    ///
    /// # Errors
    /// There is no room (`WouldBlock`), or nothing listens any more.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<usize> {
        let header = Header::parse_request(packet, u32::MAX).ok().flatten();
        let header = header.ok_or(ErrorKind::InvalidInput)?;
        self.datagram.clear();
        Header { token: Some(self.token), ..header }.write(&mut self.datagram);
        self.datagram.extend_from_slice(&packet[header.bytes()..]);
        self.socket.send(&self.datagram)?;
        Ok(packet.len())
    }

    /// Receives a datagram.
    ///
    /// # Errors
    /// None has arrived (`WouldBlock`), or nothing listens any more.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.recv(into)
    }
}

impl AsRawFd for Datagrams {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Asks for a token until it comes.
fn hello(socket: &UdpSocket, until: Instant) -> Result<u64> {
    let value = Hello::default().value();
    let mut packet = vec![];
    let mut writer = PacketWriter::begin(&mut packet, PacketLimits::default(), 0, None);
    writer.push(&mut packet, &Operation::hello(&[], &value))?;
    writer.finish(&mut packet);
    let mut received = [0; REPLY_BYTES];
    loop {
        socket.send(&packet)?;
        match socket.recv(&mut received) {
            Ok(length) => return token(&received[..length]),
            Err(error) if is_silence(&error) && Instant::now() < until => {}
            Err(error) if is_silence(&error) => bail!("there is no reply to hello"),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The token in a reply to hello.
fn token(received: &[u8]) -> Result<u64> {
    let header = Header::parse_reply(received, REPLY_BYTES as u32)?;
    let header = header.context("the reply to hello is too short")?;
    let payload = received.get(header.bytes()..).context("the reply to hello is too short")?;
    let reply = match header.is_error {
        true => None,
        false => ReplyReader::new(payload, header.count).next().transpose()?,
    };
    let value = reply.and_then(|reply| reply.value);
    match value.and_then(HelloReply::decode) {
        Some(reply) => Ok(reply.token),
        None => {
            let text = value.unwrap_or(payload);
            bail!("the server has refused hello: {}", String::from_utf8_lossy(text))
        }
    }
}
