// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of the batched protocol, as simple as it can be.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use freeport_fabric::shm::{Connection, Options as FabricOptions};
use freeport_fabric::wait::Waiting;
use freeport_kv_protocol::batch::{
    Header, Hello, HelloReply, Operation, PacketLimits, PacketWriter, ReplyReader, Status,
};
use freeport_kv_server::{Bind, Options, Server};
use freeport_testbed::wait::PATIENCE;
use tempfile::TempDir;

/// A server that listens for every protocol. Its folder has the socket.
pub struct Served {
    pub server: Server,
    folder: TempDir,
}

/// How a client reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Tcp,
    Fabric,
}

/// Both ways.
pub const WAYS: [Way; 2] = [Way::Tcp, Way::Fabric];

/// A server with a number of workers.
pub fn served(workers: usize) -> Served {
    served_with(Options { workers, ..Options::default() })
}

/// A server with options, on free ports.
pub fn served_with(options: Options) -> Served {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let address = || Bind::Tcp("127.0.0.1:0".parse().expect("it is an address"));
    let options = Options {
        resp: vec![address()],
        batch: vec![address(), Bind::Fabric(folder.path().join("fabric"))],
        ..options
    };
    let server = Server::start(options).expect("free ports are listened on");
    Served { server, folder }
}

impl Served {
    /// A stream of bytes to the server.
    pub fn stream(&self, way: Way) -> Stream {
        match way {
            Way::Tcp => Stream::tcp(self.server.addresses()[1]),
            Way::Fabric => Stream::fabric(&self.path()),
        }
    }

    /// The socket of the fabric.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("fabric")
    }

    /// A client of the batched protocol.
    pub fn client(&self, way: Way) -> BatchClient {
        BatchClient::over(self.stream(way))
    }

    /// A client of Redis.
    pub fn resp(&self) -> crate::client::Client {
        crate::client::Client::new(&self.server)
    }
}

/// A stream to the server.
pub enum Stream {
    Tcp(TcpStream),
    Fabric(Box<Connection>),
}

impl Stream {
    /// Connects to an address.
    pub fn tcp(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("a socket of TCP");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self::Tcp(stream)
    }

    /// Connects to a socket of the fabric.
    pub fn fabric(path: &Path) -> Self {
        let socket = UnixStream::connect(path).expect("it listens");
        let waiting = Waiting { timeout: Some(PATIENCE), ..Waiting::default() };
        let options = FabricOptions { waiting, ..FabricOptions::default() };
        let connection = Connection::connect(socket, &options).expect("it agrees");
        Self::Fabric(Box::new(connection))
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Fabric(stream) => Ok(Connection::read(stream, into)?),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Fabric(stream) => Ok(Connection::write(stream, bytes)?),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reply with a copy of its value.
pub type Replied = (Status, Option<Vec<u8>>);

/// A client of the batched protocol.
pub struct BatchClient {
    pub stream: Stream,
    rest: Vec<u8>,
    batch: u32,
}

impl BatchClient {
    /// A client over a stream.
    pub fn over(stream: Stream) -> Self {
        Self { stream, rest: vec![], batch: 0 }
    }

    /// Sends operations as a packet; returns its number.
    pub fn send(&mut self, operations: &[Operation<'_>]) -> u32 {
        self.batch += 1;
        self.stream.write_all(&packet(self.batch, operations)).expect("the server reads");
        self.batch
    }

    /// The header and the payload of the next packet.
    pub fn receive(&mut self) -> io::Result<(Header, Vec<u8>)> {
        let mut part = vec![0; 64 << 10];
        loop {
            let header = Header::parse_reply(&self.rest, u32::MAX).expect("a header of replies");
            if let Some(header) = header
                && self.rest.len() >= header.packet_bytes()
            {
                let packet: Vec<u8> = self.rest.drain(..header.packet_bytes()).collect();
                return Ok((header, packet[header.bytes()..].to_vec()));
            }
            let bytes = self.stream.read(&mut part)?;
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.rest.extend_from_slice(&part[..bytes]);
        }
    }

    /// The replies of the next packet, which has a number.
    pub fn replies(&mut self, batch: u32) -> Vec<Replied> {
        let (header, payload) = self.receive().expect("the server replies");
        assert!(!header.is_error, "{}", String::from_utf8_lossy(&payload));
        assert_eq!((header.batch, header.first), (batch, 0));
        let replies = ReplyReader::new(&payload, header.count).map(|reply| {
            let reply = reply.expect("it is well formed");
            (reply.status, reply.value.map(<[u8]>::to_vec))
        });
        replies.collect()
    }

    /// The text of the next packet, which is an error.
    pub fn error(&mut self) -> String {
        let (header, payload) = self.receive().expect("the server replies");
        assert!(header.is_error && header.count == 0);
        String::from_utf8(payload).expect("a text")
    }

    /// Executes operations.
    pub fn run(&mut self, operations: &[Operation<'_>]) -> Vec<Replied> {
        let batch = self.send(operations);
        self.replies(batch)
    }

    /// Executes one operation.
    pub fn one(&mut self, operation: Operation<'_>) -> Replied {
        self.run(&[operation]).pop().expect("there is a reply to each operation")
    }

    /// The value of a key.
    pub fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        match self.one(Operation::get(key)) {
            (Status::Done, value) => value,
            (Status::NotFound, None) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        assert_eq!(self.one(Operation::put(key, value)), (Status::Done, None));
    }

    /// Says hello; returns the status, with the reply or a text.
    pub fn hello(&mut self, hello: &Hello<'_>) -> Result<HelloReply, (Status, String)> {
        match self.one(Operation::hello(hello.user, &hello.value())) {
            (Status::Done, Some(value)) => Ok(HelloReply::decode(&value).expect("16 bytes")),
            (status, value) => {
                let text = value.unwrap_or_default();
                Err((status, String::from_utf8(text).expect("a text")))
            }
        }
    }

    /// The server has closed the connection, or does it now.
    pub fn is_closed(&mut self) -> bool {
        let mut part = [0; 4096];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => {
                    use io::ErrorKind::{BrokenPipe, ConnectionReset};
                    return [BrokenPipe, ConnectionReset].contains(&error.kind());
                }
            }
        }
    }
}

/// Operations as a packet.
pub fn packet(batch: u32, operations: &[Operation<'_>]) -> Vec<u8> {
    let limits = PacketLimits { bytes: u32::MAX as usize, operations: u16::MAX };
    let mut packet = vec![];
    let mut writer = PacketWriter::begin(&mut packet, limits, batch, None);
    for operation in operations {
        writer.push(&mut packet, operation).expect("it fits");
    }
    writer.finish(&mut packet);
    packet
}
