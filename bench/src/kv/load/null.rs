// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that stores nothing and gives the same replies again and again: what the load generator
//! reaches with it is the limit of the generator and of the kernel's sockets.

use super::canned::{Answers, Canned};
use super::target::{Link, RING_BYTES, Target};
use crate::harness::machine::pin_to;
use crate::sockets::peer::epoll::Epoll;
use anyhow::{Context, Result, anyhow, ensure};
use freeport_fabric::shm;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::{JoinHandle, yield_now};

/// A running null server in a thread, which ends with this value.
pub struct Null {
    target: Target,
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
        let target = Target::local(listener.local_addr()?.port());
        Self::serve(Listener::Tcp(listener), target, canned, core)
    }

    /// Starts the server for connections over the fabric that begin at `path`.
    ///
    /// # Errors
    /// No socket.
    pub fn start_on_fabric(path: &Path, canned: Canned, core: Option<usize>) -> Result<Self> {
        let listener = UnixListener::bind(path).context("the null server")?;
        listener.set_nonblocking(true)?;
        Self::serve(Listener::Fabric(listener), Target::Fabric(path.into()), canned, core)
    }

    fn serve(
        listener: Listener,
        target: Target,
        canned: Canned,
        core: Option<usize>,
    ) -> Result<Self> {
        let (end, its_end) = UnixStream::pair()?;
        let work = move || {
            if let Some(core) = core {
                ensure!(pin_to(core), "the null server cannot be pinned to a core");
            }
            serve(canned, &listener, &its_end)
        };
        let thread = std::thread::Builder::new().name("null server".into()).spawn(work)?;
        Ok(Self { target, end: Some(end), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn target(&self) -> &Target {
        &self.target
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

/// Where clients come from.
enum Listener {
    Tcp(TcpListener),
    Fabric(UnixListener),
}

impl Listener {
    /// The next client, unless it is gone again.
    fn accept(&self) -> Option<Link> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().ok()?;
                // Accepted sockets do not inherit that the listener does not block.
                stream.set_nodelay(true).ok()?;
                Some(Link::Tcp(stream))
            }
            Self::Fabric(listener) => {
                let (stream, _) = listener.accept().ok()?;
                let options = shm::Options::with_capacity(RING_BYTES);
                let ring = shm::Connection::accept(stream, &options).ok()?;
                Some(Link::Fabric(Box::new(ring)))
            }
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(listener) => listener.as_raw_fd(),
            Self::Fabric(listener) => listener.as_raw_fd(),
        }
    }
}

/// A connection, and bytes of a request that is incomplete.
struct Client {
    link: Link,
    rest: usize,
    received: Vec<u8>,
}

/// Number of the listener, and of the socket whose end ends the server, among those waited for.
const LISTENER: usize = usize::MAX;
const END: usize = usize::MAX - 1;
const BUFFER_BYTES: usize = 64 << 10;
/// Polls of all rings in vain before others may use the core between two of them.
const POLLS_ALONE: u32 = 500;
/// Polls of all rings in vain before they are waited for.
const POLLS: u32 = POLLS_ALONE + 40;

fn serve(canned: Canned, listener: &Listener, end: &UnixStream) -> Result<u64> {
    let epoll = Epoll::new()?;
    epoll.add(listener, LISTENER)?;
    epoll.add(end, END)?;
    let is_polled = matches!(listener, Listener::Fabric(_));
    let mut answers = Answers::new(canned);
    let mut clients: Vec<Option<Client>> = vec![];
    let (mut count, mut idle) = (0, 0);
    loop {
        let mut served = 0;
        if is_polled {
            served =
                (0..clients.len()).map(|number| answer(&mut clients, number, &mut answers)).sum();
            idle = if served > 0 { 0 } else { idle + 1 };
            if idle >= POLLS_ALONE {
                yield_now();
            }
        }
        count += served;
        if is_polled && (idle < POLLS || !arm(&mut clients)) && !clients.is_empty() {
            continue;
        }
        for number in epoll.wait(-1)? {
            match number {
                END => return Ok(count),
                LISTENER => {
                    let Some(link) = listener.accept() else { continue };
                    epoll.add(&link, clients.len())?;
                    let received = vec![0; BUFFER_BYTES];
                    clients.push(Some(Client { link, rest: 0, received }));
                }
                _ if is_polled => {}
                _ => count += answer(&mut clients, number, &mut answers),
            }
        }
    }
}

/// Prepares all clients for a wait; returns whether none has sent anything.
fn arm(clients: &mut [Option<Client>]) -> bool {
    // One that is gone is noticed when it is read.
    clients.iter_mut().flatten().all(|client| client.link.arm(false).unwrap_or(false))
}

/// Answers what a client has sent; returns the number of requests. One that has closed is removed.
fn answer(clients: &mut [Option<Client>], number: usize, answers: &mut Answers) -> u64 {
    let Some(client) = &mut clients[number] else { return 0 };
    client.answer(answers).unwrap_or_else(|| {
        clients[number] = None;
        0
    })
}

impl Client {
    /// Answers what has arrived; returns the number of requests, or none if the client has closed.
    fn answer(&mut self, answers: &mut Answers) -> Option<u64> {
        if self.rest == self.received.len() {
            self.received.resize(2 * self.rest, 0);
        }
        let read = match self.link.receive(&mut self.received[self.rest..]) {
            Ok(0) => return None,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(0),
            Err(_) => return None,
        };
        let filled = self.rest + read;
        let (taken, count) = answers.reply(&self.received[..filled])?;
        self.received.copy_within(taken..filled, 0);
        self.rest = filled - taken;
        let mut replies = answers.replies();
        while !replies.is_empty() {
            match self.link.send(replies) {
                Ok(sent) => replies = &replies[sent..],
                // The client reads before it sends more.
                Err(error) if error.kind() == ErrorKind::WouldBlock => yield_now(),
                Err(_) => return None,
            }
        }
        Some(count)
    }
}
