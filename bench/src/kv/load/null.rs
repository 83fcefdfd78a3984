// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that stores nothing and gives the same replies again and again: what the load generator
//! reaches with it is the limit of the generator and of the kernel's sockets.

use super::script::Contents;
use crate::harness::machine::pin_to;
use crate::sockets::peer::epoll::Epoll;
use anyhow::{Context, Result, anyhow, ensure};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Requests of fixed lengths, and the reply to each kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Canned {
    /// Bytes of a request for a value, and of one that stores a value.
    pub request_bytes: [usize; 2],
    /// Place and value of the byte that tells them apart.
    pub mark: (usize, u8),
    /// Reply to a request for a value.
    pub value: Vec<u8>,
    /// Reply to a request that stores a value.
    pub stored: Vec<u8>,
}

impl Canned {
    /// Replies to requests for these contents, with a key and a value of `0`.
    pub fn new(contents: &Contents) -> Self {
        let Contents { wire, key_bytes, value_bytes, .. } = *contents;
        let (key, zeros) = (vec![b'0'; key_bytes], vec![b'0'; value_bytes]);
        let (mut read, mut write, mut value) = (vec![], vec![], vec![]);
        wire.read(&key, &mut read);
        wire.write(&key, &zeros, &mut write);
        wire.value(&key, &zeros, &mut value);
        let request_bytes = [read.len(), write.len()];
        Self { request_bytes, mark: wire.mark_of_writes(), value, stored: wire.stored().into() }
    }

    /// Appends the replies to all complete requests. Returns their bytes and their number.
    fn reply(&self, requests: &[u8], replies: &mut Vec<u8>) -> (usize, u64) {
        let (mut at, mut count) = (0, 0);
        let (place, byte) = self.mark;
        while let Some(mark) = requests.get(at + place) {
            let is_write = *mark == byte;
            let end = at + self.request_bytes[usize::from(is_write)];
            if end > requests.len() {
                break;
            }
            replies.extend_from_slice(if is_write { &self.stored } else { &self.value });
            (at, count) = (end, count + 1);
        }
        (at, count)
    }
}

/// A running null server in a thread, which ends with this value.
pub struct Null {
    port: u16,
    /// Closing this ends the thread.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<Result<u64>>>,
}

impl Null {
    /// Starts the server on a free port, and on `core` if one is given.
    ///
    /// # Errors
    /// No socket.
    pub fn start(canned: Canned, core: Option<usize>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the null server")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let (end, its_end) = UnixStream::pair()?;
        let work = move || {
            if let Some(core) = core {
                ensure!(pin_to(core), "the null server cannot be pinned to a core");
            }
            serve(&canned, &listener, &its_end)
        };
        let thread = std::thread::Builder::new().name("null server".into()).spawn(work)?;
        Ok(Self { port, end: Some(end), thread: Some(thread) })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it; returns the number of requests that it has answered.
    ///
    /// # Errors
    /// It could not listen or wait.
    pub fn end(mut self) -> Result<u64> {
        self.stop().context("it has ended before")?
    }

    fn stop(&mut self) -> Option<Result<u64>> {
        drop(self.end.take());
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|_| Err(anyhow!("the null server has panicked"))))
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        // An error is of no use without a result.
        let _ = self.stop();
    }
}

/// A connection, and bytes of a request that is incomplete.
struct Client {
    stream: TcpStream,
    rest: usize,
    received: Vec<u8>,
}

/// Number of the listener, and of the socket whose end ends the server, among those waited for.
const LISTENER: usize = usize::MAX;
const END: usize = usize::MAX - 1;
const BUFFER_BYTES: usize = 64 << 10;

fn serve(canned: &Canned, listener: &TcpListener, end: &UnixStream) -> Result<u64> {
    let epoll = Epoll::new()?;
    epoll.add(listener, LISTENER)?;
    epoll.add(end, END)?;
    let longest = canned.request_bytes[0].max(canned.request_bytes[1]);
    let mut clients: Vec<Option<Client>> = vec![];
    let (mut replies, mut count) = (vec![], 0);
    loop {
        for number in epoll.wait(-1)? {
            match number {
                END => return Ok(count),
                LISTENER => {
                    let Ok((stream, _)) = listener.accept() else { continue };
                    // Accepted sockets do not inherit that the listener does not block.
                    stream.set_nodelay(true)?;
                    epoll.add(&stream, clients.len())?;
                    let received = vec![0; BUFFER_BYTES + longest];
                    clients.push(Some(Client { stream, rest: 0, received }));
                }
                _ => {
                    let Some(client) = &mut clients[number] else { continue };
                    match client.answer(canned, &mut replies) {
                        Some(answered) => count += answered,
                        None => clients[number] = None,
                    }
                }
            }
        }
    }
}

impl Client {
    /// Answers what has arrived; returns the number of requests, or none if the client has closed.
    fn answer(&mut self, canned: &Canned, replies: &mut Vec<u8>) -> Option<u64> {
        let read = self.stream.read(&mut self.received[self.rest..]).ok()?;
        if read == 0 {
            return None;
        }
        let filled = self.rest + read;
        replies.clear();
        let (taken, count) = canned.reply(&self.received[..filled], replies);
        self.received.copy_within(taken..filled, 0);
        self.rest = filled - taken;
        self.stream.write_all(replies).ok()?;
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::Wire;
    use super::*;

    #[test]
    fn requests_in_pieces_are_answered_when_they_are_complete() {
        for wire in Wire::ALL {
            let contents = Contents { wire, key_bytes: 4, value_bytes: 9, pairs: 10 };
            let canned = Canned::new(&contents);
            let mut requests = vec![];
            wire.read(b"0001", &mut requests);
            let first = requests.len();
            wire.write(b"0002", b"123456789", &mut requests);
            for end in 0..=requests.len() {
                let mut replies = vec![];
                let (taken, count) = canned.reply(&requests[..end], &mut replies);
                let expected = match end {
                    _ if end < first => (0, 0),
                    _ if end < requests.len() => (first, 1),
                    _ => (requests.len(), 2),
                };
                assert_eq!((taken, count), expected);
            }
        }
    }
}
