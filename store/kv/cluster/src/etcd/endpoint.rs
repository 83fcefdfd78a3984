// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One member of an etcd cluster: its addresses, and idle connections to it.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread;
use std::time::Instant;

use super::http::{Head, Incoming, Timed, request};
use super::options::endpoint_text;

/// Idle connections that are kept. More calls at once than that are rare.
const MAXIMUM_IDLE: usize = 4;

/// A connection and what was read from it.
pub(super) type Connection = Incoming<Timed>;

/// One member of an etcd cluster.
pub(super) struct Endpoint {
    host: String,
    port: u16,
    resolution: Arc<Resolution>,
    idle: Mutex<Vec<Connection>>,
}

/// Addresses of a host. The system resolves names without a time limit, so a thread does it.
#[derive(Default)]
struct Resolution {
    /// The addresses that were found last.
    known: Mutex<Vec<SocketAddr>>,
    is_under_way: AtomicBool,
}

/// An answer of a member.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A call has failed.
pub(super) struct CallFailure {
    pub(super) error: io::Error,
    /// The member may have executed the request.
    pub(super) was_sent: bool,
}

impl Endpoint {
    pub(super) fn new((host, port): (String, u16)) -> Self {
        Self { host, port, resolution: Arc::default(), idle: Mutex::default() }
    }

    /// Host and port.
    pub(super) fn name(&self) -> String {
        endpoint_text(&(self.host.clone(), self.port))
    }

    /// The text of a request to this member.
    pub(super) fn request(&self, path: &str, token: Option<&str>, body: &[u8]) -> Vec<u8> {
        request(&self.name(), path, token, body)
    }

    /// Sends a request over a kept connection, or a new one if that was closed meanwhile. It may be
    /// executed twice.
    pub(super) fn call(&self, request: &[u8], deadline: Instant) -> Result<Answer, CallFailure> {
        // A statement of its own, so that the lock ends with it.
        let kept = self.idle().pop();
        if let Some(connection) = kept {
            match self.call_over(connection, request, deadline) {
                Err(failure) if failure.error.kind() != io::ErrorKind::TimedOut => {}
                result => return result,
            }
            // A member that has closed one connection was restarted, and has closed all.
            self.idle().clear();
        }
        self.call_once(request, deadline)
    }

    /// Sends a request over a new connection. It is executed at most once.
    pub(super) fn call_once(
        &self,
        request: &[u8],
        deadline: Instant,
    ) -> Result<Answer, CallFailure> {
        let connection = self.connect(deadline);
        let connection = connection.map_err(|error| CallFailure { error, was_sent: false })?;
        self.call_over(connection, request, deadline)
    }

    fn call_over(
        &self,
        mut connection: Connection,
        request: &[u8],
        deadline: Instant,
    ) -> Result<Answer, CallFailure> {
        let read = send(&mut connection, request, deadline).and_then(|head| {
            let body = connection.body(&head)?;
            Ok((head, body))
        });
        let (head, body) = read.map_err(|error| CallFailure { error, was_sent: true })?;
        let mut idle = self.idle();
        if head.is_kept && idle.len() < MAXIMUM_IDLE {
            idle.push(connection);
        }
        Ok(Answer { status: head.status, body })
    }

    /// Sends a request, and returns the connection with the head of the answer.
    pub(super) fn begin(
        &self,
        request: &[u8],
        deadline: Instant,
    ) -> io::Result<(Connection, Head)> {
        let mut connection = self.connect(deadline)?;
        let head = send(&mut connection, request, deadline)?;
        Ok((connection, head))
    }

    fn connect(&self, deadline: Instant) -> io::Result<Connection> {
        let mut failure = io::Error::other("the name has no address");
        let addresses = self.addresses(deadline)?;
        for (at, address) in addresses.iter().enumerate() {
            // An address that does not answer leaves time for the others.
            let left = deadline.saturating_duration_since(Instant::now());
            let part = Instant::now() + left / (addresses.len() - at) as u32;
            match Timed::connect(address, part) {
                Ok(stream) => return Ok(Incoming::new(stream)),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// The addresses of the host: the present ones if the system finds them in time, or the last.
    fn addresses(&self, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.host.parse() {
            return Ok(vec![SocketAddr::new(address, self.port)]);
        }
        let known = self.resolution.known();
        if !known.is_empty() {
            // Refreshed for later calls.
            self.resolution.clone().start(self.host.clone(), self.port);
            return Ok(known);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        match self.resolution.clone().start(self.host.clone(), self.port) {
            Some(done) => done.recv_timeout(left).unwrap_or_else(|_| Err(no_resolution())),
            None => Err(no_resolution()),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().expect("no holder of the lock panics")
    }
}

impl Resolution {
    fn known(&self) -> Vec<SocketAddr> {
        self.known.lock().expect("no holder of the lock panics").clone()
    }

    /// Begins to resolve a name, unless that is under way. The result arrives at the receiver.
    fn start(
        self: Arc<Self>,
        host: String,
        port: u16,
    ) -> Option<mpsc::Receiver<io::Result<Vec<SocketAddr>>>> {
        if self.is_under_way.swap(true, Ordering::AcqRel) {
            return None;
        }
        let (sender, receiver) = mpsc::channel();
        let resolution = self.clone();
        let resolve = move || {
            let found = (host.as_str(), port).to_socket_addrs();
            let found: io::Result<Vec<SocketAddr>> = found.map(Iterator::collect);
            if let Ok(addresses) = &found {
                let mut known = resolution.known.lock().expect("no holder of the lock panics");
                known.clone_from(addresses);
            }
            resolution.is_under_way.store(false, Ordering::Release);
            // The caller may have stopped waiting.
            let _ = sender.send(found);
        };
        if thread::Builder::new().name("resolver".to_owned()).spawn(resolve).is_err() {
            self.is_under_way.store(false, Ordering::Release);
        }
        Some(receiver)
    }
}

fn send(connection: &mut Connection, request: &[u8], deadline: Instant) -> io::Result<Head> {
    connection.source.set_deadline(deadline);
    connection.source.send(request)?;
    connection.head()
}

fn no_resolution() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "its name was not resolved in time")
}
