// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server on a free port, and clients of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader, Version, Writer};
use freeport_kv_server::{Bind, Options, Server};

/// A server with a number of workers, on a free port.
pub fn server(workers: usize) -> Server {
    server_with(Options { workers, ..Options::default() })
}

/// A server with options, on a free port.
pub fn server_with(options: Options) -> Server {
    let address = "127.0.0.1:0".parse().expect("it is an address");
    let options = Options { resp: vec![Bind::Tcp(address)], ..options };
    Server::start(options).expect("a free port is listened on")
}

/// A client.
pub struct Client {
    pub stream: TcpStream,
    reader: ValueReader,
    rest: Vec<u8>,
}

impl Client {
    /// Connects to a server.
    pub fn new(server: &Server) -> Self {
        Self::connect(server.addresses()[0])
    }

    /// Connects to an address.
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("it is TCP");
        Self { stream, reader: ValueReader::new(ValueLimits::default()), rest: vec![] }
    }

    /// Sends a command whose arguments are separated by single spaces.
    pub fn send(&mut self, line: &str) {
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.send_arguments(&arguments);
    }

    /// Sends a command.
    pub fn send_arguments(&mut self, arguments: &[&[u8]]) {
        self.stream.write_all(&request(arguments)).expect("the server reads");
    }

    /// The next reply.
    pub fn reply(&mut self) -> Value {
        let mut part = [0; 4096];
        loop {
            match self.reader.read(&self.rest).expect("the server speaks RESP") {
                ValueProgress::Complete { value, bytes } => {
                    self.rest.drain(..bytes);
                    return value;
                }
                ValueProgress::Incomplete { .. } => self.rest.clear(),
            }
            let length = self.stream.read(&mut part).expect("the server replies");
            assert_ne!(length, 0, "the server closed the connection");
            self.rest.extend_from_slice(&part[..length]);
        }
    }

    /// Sends a command, and returns its reply as text without line ends.
    pub fn call(&mut self, line: &str) -> String {
        self.send(line);
        self.text()
    }

    /// The next reply as `redis-cli` shows it, in one line.
    pub fn text(&mut self) -> String {
        self.reply().to_string().replace('\n', " ")
    }
}

/// The bytes of a command.
pub fn request(arguments: &[&[u8]]) -> Vec<u8> {
    let mut request = vec![];
    let mut writer = Writer::new(&mut request, Version::Two);
    writer.array(arguments.len());
    arguments.iter().for_each(|argument| writer.bulk(argument));
    request
}
