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

#[cfg(test)]
mod tests {
    use super::super::canned::{Answers, Canned};
    use super::super::contents::{Contents, Form, Workload};
    use super::super::script::{Recipe, Script};
    use super::super::target::Target;
    use super::super::{Outcome, Plan, Span, run};
    use super::*;
    use crate::kv::draws::Spread;
    use freeport_kv_protocol::batch::{ReplyLimits, ReplyWriter};
    use std::thread;

    const TOKEN: u64 = 7;
    const CONTENTS: Contents = Contents {
        form: Form::DATAGRAM,
        key_bytes: 6,
        value_bytes: 30,
        pairs: 500,
        are_counters: false,
    };

    /// A server on `socket` until an empty datagram arrives. It loses one of five packets, and
    /// answers the others twice.
    fn serve(socket: &UdpSocket) {
        let mut answers = Answers::new(Canned::new(&CONTENTS));
        let (mut received, mut packets) = ([0; 2048], 0);
        loop {
            let (length, client) = socket.recv_from(&mut received).expect("it receives");
            let packet = &received[..length];
            let Ok(Some(header)) = Header::parse_request(packet, u32::MAX) else { return };
            let Some(token) = header.token else {
                let reply = HelloReply { workers: 1, token: TOKEN, ..HelloReply::default() };
                let mut packet = vec![];
                let limits = ReplyLimits::default();
                let mut writer = ReplyWriter::begin(&mut packet, header.batch, 0, limits);
                writer.value(&mut packet, &reply.value());
                writer.finish(&mut packet);
                socket.send_to(&packet, client).expect("it is sent");
                continue;
            };
            assert_eq!(token, TOKEN);
            answers.reply(packet).expect("a packet of operations");
            packets += 1;
            if packets % 5 != 0 {
                for _ in 0..2 {
                    socket.send_to(answers.replies(), client).expect("it is sent");
                }
            }
        }
    }

    fn outcome(script: &Script, span: Span) -> Outcome {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = socket.local_addr().expect("an address");
        let target = Target::Udp(address);
        let plan = Plan { target: &target, connections: 3, pipeline: 1, span, compares: false };
        thread::scope(|scope| {
            scope.spawn(|| serve(&socket));
            let outcome = run(script, &plan);
            UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
                .and_then(|end| end.send_to(&[], address))
                .expect("it ends");
            outcome.expect("losses are no errors")
        })
    }

    #[test]
    fn what_is_lost_is_counted_and_stored_again() {
        let script = Script::fill(CONTENTS, 0..500, 64);
        let stored = outcome(&script, Span::Once);
        assert_eq!(stored.measured, 500);
        assert!(stored.lost > 0 && stored.requests == 500 + stored.lost, "{stored:?}");

        let recipe =
            Recipe { workload: Workload::B, spread: Spread::Uniform, pipeline: 64, seed: 1 };
        let script = Script::mixed(CONTENTS, &recipe);
        let mixed = outcome(&script, Span::Requests(400));
        assert!(mixed.lost > 0 && mixed.measured + mixed.lost == mixed.requests, "{mixed:?}");
    }
}
