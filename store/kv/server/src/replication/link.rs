// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The connection to a server whose log is wanted.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use freeport_kv_cluster::Address;
use freeport_kv_protocol::replication::FrameReader;
use freeport_kv_protocol::resp::{Version, Writer};

use super::options::ReplicationOptions;
use super::request::Request;

/// Longest time for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes of a reply's line at most.
const LINE_BYTES_MAX: usize = 4 << 10;

/// A connection on which the other server sends frames.
pub struct LinkStream {
    /// The socket, whose reads and writes fail after the time of the options.
    pub stream: TcpStream,
    /// Reads the frames.
    pub frames: FrameReader,
}

/// Connects to a server. Reads and writes fail after the time of the options.
///
/// # Errors
/// The server cannot be reached.
pub fn open(address: &Address, options: &ReplicationOptions) -> io::Result<TcpStream> {
    let stream = connect(address, options.timeout)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(options.timeout))?;
    stream.set_write_timeout(Some(options.timeout))?;
    Ok(stream)
}

/// Logs in to a server, and asks for its log. The server may take long: the caller keeps a handle
/// of the socket, by which others end this.
///
/// # Errors
/// The server refuses: with its own words. It is silent, or the connection has ended.
pub fn log_in(
    mut stream: TcpStream,
    options: &ReplicationOptions,
    request: &Request,
) -> io::Result<LinkStream> {
    if !options.password.is_empty() {
        let login = [&options.user[..], &options.password];
        let login = if options.user.is_empty() { &login[1..] } else { &login[..] };
        let words: Vec<&str> = ["AUTH"].into_iter().chain(login.iter().copied()).collect();
        ask(&mut stream, &words)?;
    }
    let words = request.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let received = ask(&mut stream, &words)?;
    Ok(LinkStream { stream, frames: FrameReader::new(&received) })
}

fn connect(address: &Address, timeout: Duration) -> io::Result<TcpStream> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let mut failure = missing();
    for address in (&address.host[..], address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout.min(CONNECT_MAX)) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Sends a command whose reply is one line; returns the bytes that have come behind it.
fn ask(stream: &mut TcpStream, words: &[&str]) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    let mut command = Writer::new(&mut bytes, Version::Two);
    command.array(words.len());
    words.iter().for_each(|word| command.bulk(word.as_bytes()));
    stream.write_all(&bytes)?;
    let mut received = vec![];
    let end = loop {
        if let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") {
            break end;
        }
        if received.len() > LINE_BYTES_MAX {
            return Err(io::Error::other("the reply is none of a key-value server"));
        }
        let mut part = [0; 512];
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => received.extend_from_slice(&part[..count]),
        }
    };
    match received[..end].split_first() {
        Some((b'+', _)) => Ok(received.split_off(end + 2)),
        Some((b'-', text)) => Err(io::Error::other(String::from_utf8_lossy(text).into_owned())),
        _ => Err(io::Error::other("the reply is none of a key-value server")),
    }
}
