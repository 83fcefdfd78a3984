// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client that sends datagrams.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use freeport_kv_protocol::batch::{
    Header, Hello, HelloReply, Operation, PacketLimits, PacketWriter, ReplyReader, Status,
};
use freeport_testbed::wait::PATIENCE;

/// Reply to an operation: its status and value.
pub type Answer = (Status, Option<Vec<u8>>);

/// Time after which something is sent again that may have been lost.
const LOST: Duration = Duration::from_millis(200);

/// A client of a server.
pub struct Peer {
    pub socket: UdpSocket,
    pub token: Option<u64>,
    /// Number of the last packet.
    batch: u32,
}

/// Replies to a packet, or its error.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Replies to all operations, and the bytes of each datagram that they came in.
    Replies(Vec<Answer>, Vec<usize>),
    /// The error of the whole packet.
    Error(String),
}

impl Outcome {
    /// The replies.
    #[track_caller]
    pub fn replies(self) -> Vec<Answer> {
        match self {
            Self::Replies(replies, _) => replies,
            Self::Error(text) => panic!("{text}"),
        }
    }
}

impl Peer {
    /// A client that has not said hello.
    pub fn new(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        socket.connect(server).expect("the address can be reached");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time");
        Self { socket, token: None, batch: 0 }
    }

    /// A client with a session of the default user.
    pub fn connected(server: SocketAddr, database: u16) -> Self {
        let mut peer = Self::new(server);
        peer.hello(&Hello { database, ..Hello::default() }).expect("the hello is right");
        peer
    }

    /// Says hello, and takes its token.
    pub fn hello(&mut self, hello: &Hello<'_>) -> Result<HelloReply, Answer> {
        self.token = None;
        let value = hello.value();
        let operation = Operation::hello(hello.user, &value);
        let [(status, value)] = &self.run(&[operation]).replies()[..] else { panic!("one reply") };
        match (status, value) {
            (Status::Done, Some(value)) => {
                let reply = HelloReply::decode(value).expect("the reply to a hello");
                self.token = Some(reply.token);
                Ok(reply)
            }
            other => Err((*other.0, other.1.clone())),
        }
    }

    /// The packet of operations, with the token.
    pub fn packet(&mut self, operations: &[Operation<'_>]) -> Vec<u8> {
        self.batch += 1;
        let mut packet = vec![];
        let limits = PacketLimits { bytes: 65_507, ..PacketLimits::default() };
        let mut writer = PacketWriter::begin(&mut packet, limits, self.batch, self.token);
        for operation in operations {
            writer.push(&mut packet, operation).expect("it fits in a datagram");
        }
        writer.finish(&mut packet);
        packet
    }

    /// Sends operations once, and waits for all replies.
    pub fn run(&mut self, operations: &[Operation<'_>]) -> Outcome {
        let packet = self.packet(operations);
        self.exchange(&packet).expect("nothing is lost")
    }

    /// Sends operations that may be executed twice until all replies have come.
    pub fn insist(&mut self, operations: &[Operation<'_>]) -> Vec<Answer> {
        let packet = self.packet(operations);
        self.socket.set_read_timeout(Some(LOST)).expect("a time");
        let tries = PATIENCE.as_millis() / LOST.as_millis();
        let outcome = (0..tries).find_map(|_| self.exchange(&packet).ok());
        self.socket.set_read_timeout(Some(PATIENCE)).expect("a time");
        outcome.expect("some try succeeds").replies()
    }

    /// Sends a packet, and puts its replies together.
    fn exchange(&mut self, packet: &[u8]) -> io::Result<Outcome> {
        self.socket.send(packet)?;
        let request = Header::parse_request(packet, u32::MAX).expect("a header").expect("whole");
        let mut replies: Vec<Option<Answer>> = vec![None; request.count.into()];
        let (mut buffer, mut sizes) = (vec![0; 65_536], vec![]);
        while sizes.is_empty() || replies.contains(&None) {
            let length = self.socket.recv(&mut buffer)?;
            let datagram = &buffer[..length];
            let header = Header::parse_reply(datagram, u32::MAX).expect("a reply").expect("whole");
            assert_eq!(header.packet_bytes(), length);
            let payload = &datagram[header.bytes()..];
            // A reply that was sent twice, or that came late.
            if header.batch != request.batch {
                continue;
            }
            if header.is_error {
                return Ok(Outcome::Error(String::from_utf8_lossy(payload).into_owned()));
            }
            sizes.push(length);
            let places = &mut replies[header.first.into()..];
            for (place, reply) in places.iter_mut().zip(ReplyReader::new(payload, header.count)) {
                let reply = reply.expect("it is well formed");
                *place = Some((reply.status, reply.value.map(<[u8]>::to_vec)));
            }
        }
        Ok(Outcome::Replies(replies.into_iter().flatten().collect(), sizes))
    }
}

/// A value that was found, or that an operation returned.
pub fn value(bytes: impl AsRef<[u8]>) -> Answer {
    (Status::Done, Some(bytes.as_ref().to_vec()))
}

pub const DONE: Answer = (Status::Done, None);
pub const NOT_FOUND: Answer = (Status::NotFound, None);
