// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Opening ports: interfaces are looked up, memory is laid out for all of them, sockets are created
//! and bound, and each interface gets its program.
//!
//! The driver's features are known only when a socket is bound. So everything is tried in the best
//! way first; if that is refused, it is undone and tried in the next best way.

use super::XdpPort;
use super::error::{advising, of_program, opening};
use super::interface::Interface;
use super::memory::Memory;
use super::options::{MOST_RING_FRAMES, XdpMode, XdpOptions};
use super::program::Entry;
use super::receive::{ReceiveQueue, ReceiveRoom, XdpReceiver};
use super::socket::{RingSizes, Rings, Socket};
use super::transmit::{TransmitParts, XdpTransmitter};
use crate::namespace::Namespace;
use crate::port::{HEADROOM, MAX_FRAME, PortError};
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An Ethernet header with two VLAN tags: bytes of a frame beyond the MTU.
const LINK_BYTES: usize = 14 + 2 * 4;
const SMALL_CHUNK_BYTES: usize = 2_048;
const LARGE_CHUNK_BYTES: usize = 4_096;
/// Slots for joined frames if frames fit a chunk: some may have arrived before a change of the MTU.
const FEW_SLOTS: usize = 16;
/// Slots for joined frames if frames do not fit a chunk.
const MANY_SLOTS: usize = 512;
/// Minimum ring size; fewer frames make no batch.
const LEAST_RING_FRAMES: u32 = 64;
/// Maximum time to wait for a queue that is in use.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// Mode in which sockets are bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    is_zero_copy: bool,
    has_fragments: bool,
}

/// Modes from the best to the one that every driver and kernel supports.
const WAYS: [Way; 4] = [
    Way { is_zero_copy: true, has_fragments: true },
    Way { is_zero_copy: true, has_fragments: false },
    Way { is_zero_copy: false, has_fragments: true },
    Way { is_zero_copy: false, has_fragments: false },
];

/// A port that is to be opened.
struct Plan<'o> {
    options: &'o XdpOptions,
    namespace: Namespace,
    interface: Interface,
    queues: Vec<u32>,
    ring_frames: u32,
    receive: ReceiveRoom,
    /// Chunks of the transmitter.
    transmit: Range<usize>,
}

/// All ports to be opened together, and their memory.
struct Layout<'o> {
    plans: Vec<Plan<'o>>,
    chunk_bytes: usize,
    chunks: usize,
    /// Whether every frame that the interfaces may carry fits a chunk.
    fits_a_chunk: bool,
}

/// Reason why ports were not opened in one mode.
enum Refusal {
    /// Another mode may work.
    OfTheWay(PortError),
    /// It may work later.
    Busy(PortError),
    Final(PortError),
}

pub(super) fn open_all(options: &[XdpOptions]) -> Result<Vec<XdpPort>, PortError> {
    let layout = Layout::of(options)?;
    let begin = Instant::now();
    let mut ways = WAYS.iter().filter(|way| !way.is_zero_copy || way.suits(&layout)).peekable();
    while let Some(way) = ways.peek() {
        match layout.open(**way) {
            Ok(ports) => return Ok(ports),
            Err(Refusal::Busy(_)) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(Refusal::OfTheWay(error)) => {
                ways.next();
                if ways.peek().is_none() {
                    return Err(error);
                }
            }
            Err(Refusal::Busy(error) | Refusal::Final(error)) => return Err(error),
        }
    }
    Ok(vec![])
}

impl Way {
    /// Returns whether this mode is possible: without fragments only if all frames fit a chunk.
    fn suits(self, layout: &Layout<'_>) -> bool {
        self.has_fragments || layout.fits_a_chunk
    }

    fn flags(self) -> u16 {
        let copy = if self.is_zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
        let fragments = if self.has_fragments { libc::XDP_USE_SG } else { 0 };
        libc::XDP_USE_NEED_WAKEUP | copy | fragments
    }
}

impl<'o> Layout<'o> {
    fn of(options: &'o [XdpOptions]) -> Result<Self, PortError> {
        let mut plans = options.iter().map(Plan::of).collect::<Result<Vec<_>, _>>()?;
        refuse_repetition(&plans)?;
        let longest = plans.iter().map(|plan| plan.interface.mtu + LINK_BYTES).max().unwrap_or(0);
        let chunk_bytes = match longest + HEADROOM {
            all if all <= SMALL_CHUNK_BYTES => SMALL_CHUNK_BYTES,
            _ => LARGE_CHUNK_BYTES,
        };
        let fits_a_chunk = longest + HEADROOM <= chunk_bytes;
        let slots = if fits_a_chunk { FEW_SLOTS } else { MANY_SLOTS };
        let mut chunks = 0;
        for plan in &mut plans {
            let ring_frames = plan.ring_frames as usize;
            // One ring of frames waits for this process while another is with the kernel, lent or
            // in flight.
            plan.receive = ReceiveRoom { first: chunks, of_queue: 2 * ring_frames, slots };
            chunks += plan.receive.chunks(plan.queues.len(), chunk_bytes);
            plan.transmit = chunks..chunks + ring_frames;
            chunks = plan.transmit.end;
        }
        Ok(Self { plans, chunk_bytes, chunks, fits_a_chunk })
    }

    fn open(&self, way: Way) -> Result<Vec<XdpPort>, Refusal> {
        let Some(first) = self.plans.first() else { return Ok(vec![]) };
        let memory = Memory::new(self.chunks, self.chunk_bytes).map_err(|source| {
            Refusal::Final(opening(&first.name(), "there is no memory for frames", source))
        })?;
        let memory = Arc::new(memory);
        let mut sockets: Vec<Vec<Opened>> = vec![];
        for plan in &self.plans {
            sockets.push(vec![]);
            for at in 0..plan.queues.len() {
                let sharing = sockets.iter().flatten().next().map(|it| &*it.socket);
                let opened = plan.inside(|| plan.open_socket(at, way, &memory, sharing))?;
                sockets.last_mut().expect("one was just pushed").push(opened);
            }
        }
        let mut entries = BTreeMap::new();
        let mut ports = vec![];
        for (plan, sockets) in self.plans.iter().zip(sockets) {
            let entry = match entries.entry(plan.place()) {
                btree_map::Entry::Occupied(entry) => Arc::clone(entry.get()),
                btree_map::Entry::Vacant(vacant) => {
                    let queues = plan.queues.iter().map(|queue| queue + 1).max().unwrap_or(1);
                    let queues = queues.max(plan.interface.queues);
                    let entry = plan.inside(|| plan.open_entry(queues, way))?;
                    Arc::clone(vacant.insert(Arc::new(entry)))
                }
            };
            ports.push(self.port(plan, way, sockets, entry, &memory)?);
        }
        Ok(ports)
    }

    /// Assembles a port, and makes its interface send frames to it.
    fn port(
        &self,
        plan: &Plan<'_>,
        way: Way,
        sockets: Vec<Opened>,
        entry: Arc<Entry>,
        memory: &Arc<Memory>,
    ) -> Result<XdpPort, Refusal> {
        let name = plan.name();
        let failed = |action: &'static str, source| Refusal::Final(opening(&name, action, source));
        let mut sending = None;
        let mut queues = vec![];
        for (Opened { socket, rings }, number) in sockets.into_iter().zip(&plan.queues) {
            entry
                .join(*number, socket.as_fd())
                .map_err(|error| refusal(of_program(&name, error)))?;
            if let Some(ring) = rings.transmit {
                sending = Some((Arc::clone(&socket), ring, rings.completion));
            }
            let Some(ring) = rings.receive else { continue };
            queues.push(ReceiveQueue {
                number: *number,
                socket,
                ring,
                fill: rings.fill,
                joining: None,
            });
        }
        let (socket, ring, completion) = sending.expect("the first queue has a ring to send by");
        let is_zero_copy = socket.is_zero_copy();
        let is_zero_copy =
            is_zero_copy.map_err(|source| failed("its mode cannot be read", source))?;
        let largest = if way.has_fragments { MAX_FRAME } else { self.chunk_bytes };
        let mode = XdpMode {
            port: plan.options.to_string(),
            place: entry.mode(),
            is_zero_copy,
            queues: plan.queues.clone(),
            has_fragments: way.has_fragments,
            chunk_bytes: self.chunk_bytes,
            sharing_ports: self.plans.len(),
        };
        let transmitter = XdpTransmitter::new(TransmitParts {
            name: name.clone(),
            ring,
            completion,
            most_outstanding: plan.ring_frames,
            most_bytes: largest.min(plan.interface.mtu + LINK_BYTES),
            chunks: plan.transmit.clone(),
            is_zero_copy,
            socket,
            entry: is_zero_copy.then(|| Arc::clone(&entry)),
            memory: Arc::clone(memory),
        });
        let receiver =
            XdpReceiver::new(name.clone(), queues, plan.receive, entry, Arc::clone(memory));
        let receiver = receiver.map_err(|source| failed("it cannot be waited for", source))?;
        Ok(XdpPort { receiver, transmitter, mode })
    }
}

/// A bound socket.
struct Opened {
    socket: Arc<Socket>,
    rings: Rings,
}

impl<'o> Plan<'o> {
    /// Looks the interface up. The position of its chunks is not known yet.
    fn of(options: &'o XdpOptions) -> Result<Self, PortError> {
        let name = options.to_string();
        let namespace = match &options.namespace {
            Some(namespace) => Namespace::named(namespace),
            None => Namespace::current(),
        };
        let namespace = namespace
            .map_err(|source| opening(&name, "its network namespace cannot be opened", source))?;
        let interface = namespace.with(|| Interface::find(&options.interface));
        let interface = interface.and_then(|found| found);
        let interface = interface.map_err(|source| opening(&name, "it cannot be found", source))?;
        let queues = match options.queue {
            Some(queue) if queue >= interface.queues => {
                let advice = format!("it has queues 0 to {}", interface.queues - 1);
                let source = std::io::ErrorKind::NotFound.into();
                return Err(advising(&name, "there is no such queue", source, advice));
            }
            Some(queue) => vec![queue],
            None => (0..interface.queues).collect(),
        };
        let ring_frames = options.ring_frames.clamp(LEAST_RING_FRAMES, MOST_RING_FRAMES);
        let receive = ReceiveRoom { first: 0, of_queue: 0, slots: 0 };
        let ring_frames = ring_frames.next_power_of_two();
        Ok(Self { options, namespace, interface, queues, ring_frames, receive, transmit: 0..0 })
    }

    fn name(&self) -> String {
        self.options.to_string()
    }

    /// Identifies the interface among all that are opened.
    fn place(&self) -> (Option<&'o str>, u32) {
        (self.options.namespace.as_deref(), self.interface.number)
    }

    fn inside<T>(&self, work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
        let result = self.namespace.with(work);
        result.unwrap_or_else(|source| {
            let action = "its network namespace cannot be entered";
            Err(Refusal::Final(opening(&self.name(), action, source)))
        })
    }

    /// Opens a socket on the port's queue `at`. The first socket of all registers the memory.
    fn open_socket(
        &self,
        at: usize,
        way: Way,
        memory: &Memory,
        sharing: Option<&Socket>,
    ) -> Result<Opened, Refusal> {
        let failed = |action: &'static str, source| refusal(opening(&self.name(), action, source));
        let socket =
            Socket::new().map_err(|source| failed("no AF_XDP socket can be opened", source))?;
        if sharing.is_none() {
            let registered = socket.register(memory);
            registered.map_err(|source| failed("its memory cannot be registered", source))?;
        }
        let sizes = RingSizes {
            receive: self.ring_frames,
            fill: (self.receive.of_queue as u32).next_power_of_two(),
            transmit: if at == 0 { self.ring_frames } else { 0 },
            completion: self.ring_frames,
        };
        let rings = socket.make_rings(sizes);
        let rings = rings.map_err(|source| failed("its rings cannot be created", source))?;
        let queue = self.queues[at];
        let flags = if sharing.is_some() { libc::XDP_SHARED_UMEM } else { way.flags() };
        let bound = socket.bind(self.interface.number, queue, flags, sharing);
        bound.map_err(|source| failed("a socket cannot be bound to a queue", source))?;
        Ok(Opened { socket: Arc::new(socket), rings })
    }

    fn open_entry(&self, queues: u32, way: Way) -> Result<Entry, Refusal> {
        let entry = Entry::open(self.interface.number, queues, !way.is_zero_copy);
        entry.map_err(|error| refusal(of_program(&self.name(), error)))
    }
}

/// Refuses a queue that is named twice, because a queue has only one socket.
fn refuse_repetition(plans: &[Plan<'_>]) -> Result<(), PortError> {
    let mut seen = BTreeSet::new();
    for plan in plans {
        for queue in &plan.queues {
            if !seen.insert((plan.place(), *queue)) {
                let advice =
                    format!("queue {queue} is in two ports: name it once, and use both halves");
                let source = std::io::ErrorKind::InvalidInput.into();
                return Err(advising(&plan.name(), "it is asked for twice", source, advice));
            }
        }
    }
    Ok(())
}

fn refusal(error: PortError) -> Refusal {
    let code = match &error {
        PortError::Interface { source, .. } => source.raw_os_error(),
        _ => None,
    };
    match code {
        Some(libc::EBUSY | libc::EEXIST) => Refusal::Busy(error),
        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE) => Refusal::OfTheWay(error),
        _ => Refusal::Final(error),
    }
}
