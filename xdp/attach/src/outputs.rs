// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports of a wire, and the queues of packets that wait to leave by them.

use crate::Error;
use crate::counters::{Counters, Drop};
use freeport_port::{FrameQueue, Receive, Transmit};
use freeport_runtime::server::Waiting;

/// Packets that wait for a port, at most; further packets are dropped and counted.
const QUEUE_MAX: usize = 1_024;

/// A port to be connected to a wire.
pub struct Port {
    /// Name as the user wrote it.
    pub name: String,
    /// Device number by which programs know the port.
    pub ifindex: u32,
    /// Source of packets from the network.
    pub receive: Box<dyn Receive>,
    /// Sink of packets to the network; none for a port that only receives.
    pub transmit: Option<Box<dyn Transmit>>,
    /// Host side: destination of passed packets, and source of packets that the host sends.
    pub host: Option<Host>,
}

/// The host side of a port.
pub struct Host {
    /// Source of packets that the host sends.
    pub receive: Box<dyn Receive>,
    /// Sink of packets to the host.
    pub transmit: Box<dyn Transmit>,
}

/// The transmit side of a port with its queue.
struct Output {
    transmit: Box<dyn Transmit>,
    queue: FrameQueue,
}

/// Output queues by port, to the network and to the host.
pub struct Outputs {
    ways: Vec<[Option<Output>; 2]>,
}

/// Side of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The network.
    Network,
    /// The host.
    Host,
}

impl Outputs {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self { ways: vec![] }
    }

    /// Adds the outputs of the next port.
    pub fn add(&mut self, network: Option<Box<dyn Transmit>>, host: Option<Box<dyn Transmit>>) {
        let output = |transmit| Output { transmit, queue: FrameQueue::default() };
        self.ways.push([network, host].map(|transmit| transmit.map(output)));
    }

    /// Queues a packet of ingress port `from` for a port, or drops and counts it there.
    pub fn put(
        &mut self,
        counters: &mut Counters,
        from: usize,
        (port, side): (usize, Side),
        bytes: &[u8],
    ) {
        let why = match &mut self.ways[port][side as usize] {
            None if side == Side::Host => Drop::NoHost,
            None => Drop::NoWayOut,
            Some(output) if output.queue.waiting() >= QUEUE_MAX => match side {
                Side::Network => Drop::NetworkFull,
                Side::Host => Drop::HostFull,
            },
            Some(output) => match output.queue.push(bytes, bytes.len(), 0) {
                Ok(()) => return,
                Err(_) => Drop::Outsized,
            },
        };
        counters.drop(from, why);
    }

    /// Returns how many more packets the queue of this side of a port accepts.
    pub fn room(&self, port: usize, side: Side) -> usize {
        let output = self.ways[port][side as usize].as_ref();
        output.map_or(0, |output| QUEUE_MAX.saturating_sub(output.queue.waiting()))
    }

    /// Hands queued packets to the ports, as far as they accept them. Returns whether any was
    /// accepted.
    ///
    /// # Errors
    /// A port failed.
    pub fn send(&mut self, counters: &mut Counters, names: &[String]) -> Result<bool, Error> {
        let mut is_moved = false;
        for ((ways, counted), name) in self.ways.iter_mut().zip(&mut counters.ports).zip(names) {
            let [network, host] = ways;
            let counts = [&mut counted.sent, &mut counted.to_host];
            for (output, count) in [network, host].into_iter().zip(counts) {
                let Some(output) = output else { continue };
                let sent = output.queue.send_to(&mut *output.transmit);
                let sent = sent.map_err(|source| Error::Port { port: name.clone(), source })?;
                count.packets += sent.frames as u64;
                count.bytes += sent.bytes;
                is_moved |= sent.frames > 0;
            }
        }
        Ok(is_moved)
    }

    /// Flushes packets that the ports have buffered.
    ///
    /// # Errors
    /// A port failed.
    pub fn flush(&mut self, names: &[String]) -> Result<(), Error> {
        for (ways, name) in self.ways.iter_mut().zip(names) {
            for output in ways.iter_mut().flatten() {
                let flushed = output.transmit.flush();
                flushed.map_err(|source| Error::Port { port: name.clone(), source })?;
            }
        }
        Ok(())
    }

    /// Returns the number of queued packets.
    pub fn waiting(&self) -> usize {
        self.ways.iter().flatten().flatten().map(|output| output.queue.waiting()).sum()
    }

    /// Returns the number of packets that the port accepted and could not send.
    pub fn lost(&self, port: usize) -> u64 {
        self.ways[port].iter().flatten().map(|output| output.transmit.lost()).sum()
    }

    /// Registers each port with queued packets, to wake when it accepts packets again.
    pub fn wait_in<'w>(&'w self, waiting: &mut Waiting<'w>) {
        let full = self.ways.iter().flatten().flatten().filter(|it| it.queue.waiting() > 0);
        full.for_each(|output| waiting.for_room(output.transmit.readiness()));
    }
}
