// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of a node that its tasks use as well: connections to other places, and calls from them.

use super::Options;
use super::greeting::{Greeting, Met, Next};
use super::hello::Hello;
use super::peer::Peer;
use super::refusal::Refusal;
use super::stable::FabricStable;
use super::turns::{self, Turns};
use super::verbs::FabricMemory;
use crate::fault::Fault;
use crate::inbox::Inbox;
use crate::place::Place;
use crate::tasks::Tasks;
use freeport_fabric::Endpoint;
use freeport_fabric::shm::ShmEndpoint;
use futures::channel::oneshot;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Time after which an attempt to connect to a place that is gone fails: a task that tries again
/// and again does not keep others from running.
const GONE: Duration = Duration::from_millis(1);
/// Time between two attempts to connect to a place at which too many wait to be accepted. The
/// system does not report when there is room.
const RETRY: Duration = Duration::from_millis(1);

/// The shared part of a node.
pub struct Shared {
    pub(super) mine: Hello,
    pub(super) folder: PathBuf,
    pub(super) options: Options,
    pub(super) memory: FabricMemory,
    pub(super) stable: FabricStable,
    pub(super) tasks: Tasks,
    pub(super) turns: Rc<Turns>,
    pub(super) inbox: Inbox,
    pub(super) peers: RefCell<BTreeMap<Place, Connecting>>,
}

type Connected = Result<Rc<Peer<ShmEndpoint>>, Fault>;

/// A connection to a place.
pub enum Connecting {
    /// The handshake has not ended.
    Greeting(Dial),
    /// It can be used.
    Open(Rc<Peer<ShmEndpoint>>),
}

/// A handshake with a place, and the tasks that wait for it.
pub struct Dial {
    /// None while a step is taken.
    greeting: Option<Greeting>,
    end: Duration,
    waiting: Vec<oneshot::Sender<Connected>>,
}

impl Dial {
    /// Returns the socket, to wait until it is readable.
    pub fn stream(&self) -> Option<&UnixStream> {
        self.greeting.as_ref().map(Greeting::stream)
    }
}

impl Shared {
    /// Returns the connection to a place. Connects if there is none.
    ///
    /// # Errors
    /// The place is gone, or refuses.
    pub(super) async fn connection(&self, to: Place) -> Connected {
        self.turns.breathe().await;
        let end = turns::now().saturating_add(self.options.patience);
        let connected = loop {
            let begun = self.begin_connection(to);
            match begun {
                Ok(Begun::Open(peer)) => return Ok(peer),
                Ok(Begun::Wait(connected)) => {
                    break connected.await.unwrap_or(Err(Fault::Gone(to)));
                }
                Ok(Begun::Full) if turns::now() < end => self.turns.sleep(RETRY).await,
                Ok(Begun::Full) => break Err(Fault::Gone(to)),
                Err(refusal) => break Err(refusal.fault(to)),
            }
        };
        if connected.is_err() {
            self.turns.sleep(GONE).await;
        }
        connected
    }

    fn begin_connection(&self, to: Place) -> Result<Begun, Refusal> {
        let mut peers = self.peers.borrow_mut();
        match peers.get_mut(&to) {
            // Nothing was sent to an earlier life of the place: its present one is asked.
            Some(Connecting::Open(peer)) if peer.check_alive().is_ok() => {
                return Ok(Begun::Open(Rc::clone(peer)));
            }
            Some(Connecting::Greeting(dial)) => {
                let (sender, connected) = oneshot::channel();
                dial.waiting.push(sender);
                return Ok(Begun::Wait(connected));
            }
            _ => {}
        }
        let Some(stream) = connect(&self.folder.join(format!("{to}.sock")))? else {
            return Ok(Begun::Full);
        };
        let greeting = Some(Greeting::connect(stream, self.mine, to)?);
        let (sender, connected) = oneshot::channel();
        let end = turns::now().saturating_add(self.options.patience);
        let dial = Dial { greeting, end, waiting: vec![sender] };
        peers.insert(to, Connecting::Greeting(dial));
        Ok(Begun::Wait(connected))
    }

    /// Takes a step of the handshake with a place, whose socket is readable.
    pub(super) fn step(&self, with: Place) {
        let mut peers = self.peers.borrow_mut();
        let Some(Connecting::Greeting(dial)) = peers.get_mut(&with) else { return };
        let Some(greeting) = dial.greeting.take() else { return };
        let connected = match greeting.step(|endpoint| endpoint.export(&self.memory.region())) {
            Ok(Next::Wait(greeting)) => {
                dial.greeting = Some(greeting);
                return;
            }
            Ok(Next::Open(met)) => self.open(*met).map_err(|refusal| refusal.fault(with)),
            Err(refusal) => Err(refusal.fault(with)),
        };
        let waiting = std::mem::take(&mut dial.waiting);
        match &connected {
            Ok(peer) => peers.insert(with, Connecting::Open(Rc::clone(peer))),
            Err(_) => peers.remove(&with),
        };
        // A task that has ended does not wait any more.
        waiting.into_iter().for_each(|sender| drop(sender.send(connected.clone())));
    }

    fn open(&self, met: Met) -> Result<Rc<Peer<ShmEndpoint>>, Refusal> {
        let Met { hello, endpoint, wire, memory } = met;
        let memory = memory.ok_or(Refusal::Message("no memory"))?;
        let Hello { place, memory_bytes } = hello;
        let turns = Rc::clone(&self.turns);
        Ok(Rc::new(Peer::new((place, memory_bytes), endpoint, memory, wire, turns)))
    }

    /// Forgets connections that have ended, and handshakes that take too long.
    pub(super) fn forget(&self) {
        let now = turns::now();
        // Tasks that wait for a handshake find their channel closed.
        self.peers.borrow_mut().retain(|_, connecting| match connecting {
            Connecting::Greeting(dial) => now < dial.end,
            Connecting::Open(peer) => !peer.has_ended(),
        });
    }

    /// Returns the time at which the next handshake ends for lack of patience.
    pub(super) fn first_end(&self) -> Option<Duration> {
        let peers = self.peers.borrow();
        let ends = peers.values().filter_map(|connecting| match connecting {
            Connecting::Greeting(dial) => Some(dial.end),
            Connecting::Open(_) => None,
        });
        ends.min()
    }

    /// Returns the open connections.
    pub(super) fn open_peers(&self) -> Vec<Rc<Peer<ShmEndpoint>>> {
        let peers = self.peers.borrow();
        let open = peers.values().filter_map(|connecting| match connecting {
            Connecting::Open(peer) => Some(Rc::clone(peer)),
            Connecting::Greeting(_) => None,
        });
        open.collect()
    }
}

enum Begun {
    Open(Rc<Peer<ShmEndpoint>>),
    Wait(oneshot::Receiver<Connected>),
    /// Too many wait there to be accepted.
    Full,
}

/// Connects to a socket, and never waits. None means that too many wait there to be accepted: the
/// process has stopped, or has not had the time yet.
fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) => {}
        Err(Errno::AGAIN) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let stream = UnixStream::from(socket);
    // The steps of the handshake have a time limit instead.
    stream.set_nonblocking(false)?;
    Ok(Some(stream))
}
