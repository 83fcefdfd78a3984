// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server on a free port, and clients of it.

use std::io::{self, ErrorKind, Read, Write};
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

/// A client over a stream, which is one of TCP unless it is encrypted.
pub struct Client<S = TcpStream> {
    pub stream: S,
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
        Self::try_connect(address).expect("the server listens")
    }

    /// Connects to a server that may end.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(freeport_testbed::wait::PATIENCE))?;
        Ok(Self::over(stream))
    }
}

impl<S: Read + Write> Client<S> {
    /// A client over a connected stream.
    pub fn over(stream: S) -> Self {
        Self { stream, reader: ValueReader::new(ValueLimits::default()), rest: vec![] }
    }

    /// Sends a command whose arguments are separated by single spaces. `_` is an empty argument.
    pub fn send(&mut self, line: &str) {
        let argument = |word| if word == "_" { "" } else { word };
        let arguments: Vec<&[u8]> = line.split(' ').map(|word| argument(word).as_bytes()).collect();
        self.send_arguments(&arguments);
    }

    /// Sends a command.
    pub fn send_arguments(&mut self, arguments: &[&[u8]]) {
        self.stream.write_all(&request(arguments)).expect("the server reads");
    }

    /// The next reply.
    pub fn reply(&mut self) -> Value {
        self.receive().expect("the server replies").0
    }

    /// The next reply of a server that may end.
    pub fn try_reply(&mut self) -> io::Result<Value> {
        self.receive().map(|(value, _)| value)
    }

    /// The bytes of the next reply, as text.
    pub fn raw(&mut self) -> String {
        String::from_utf8_lossy(&self.receive().expect("the server replies").1).into_owned()
    }

    fn receive(&mut self) -> io::Result<(Value, Vec<u8>)> {
        let (mut part, mut raw) = ([0; 4096], vec![]);
        loop {
            match self.reader.read(&self.rest).expect("the server speaks RESP") {
                ValueProgress::Complete { value, bytes } => {
                    raw.extend(self.rest.drain(..bytes));
                    return Ok((value, raw));
                }
                ValueProgress::Incomplete { .. } => raw.append(&mut self.rest),
            }
            let length = self.stream.read(&mut part)?;
            if length == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.rest.extend_from_slice(&part[..length]);
        }
    }

    /// Sends a command, and returns the bytes of its reply.
    pub fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.raw()
    }

    /// The bytes of the reply to a command are these.
    #[track_caller]
    pub fn check(&mut self, line: &str, expected: &str) {
        let reply = self.ask(line);
        assert_eq!(reply, expected, "{line}");
    }

    /// The server has closed the connection, or does it now.
    pub fn is_closed(&mut self) -> bool {
        let mut part = [0; 4096];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::ConnectionReset,
            }
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

/// Executes the commands that its arguments describe, and returns all replies. Errors are returned
/// as strings, because `EVAL` replies with an error only as a whole.
const SCRIPT: &str = "
    local at, replies = 1, {}
    while ARGV[at] do
        local count = tonumber(ARGV[at])
        local reply = redis.pcall(unpack(ARGV, at + 1, at + count))
        if type(reply) == 'table' and reply.err then reply = reply.err end
        replies[#replies + 1] = reply
        at = at + count + 1
    end
    return replies";

/// An `EVAL` that names keys, executes commands, and replies with all their replies.
pub fn script(keys: &[&String], commands: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let mut words = ["EVAL", SCRIPT].map(str::to_owned).to_vec();
    words.push(keys.len().to_string());
    words.extend(keys.iter().map(|key| (*key).clone()));
    for command in commands {
        words.push(command.len().to_string());
        words.extend(command);
    }
    words
}
