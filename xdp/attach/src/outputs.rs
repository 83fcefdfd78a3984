// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports of a wire, and what waits to leave by them.

use crate::Error;
use crate::counters::{Counters, Drop};
use freeport_port::{FrameQueue, Receive, Transmit};
use freeport_runtime::server::Waiting;

/// Packets that wait for a port; with more, the next ones are dropped and counted.
const QUEUE_MAX: usize = 1_024;

/// A port as it is joined to a wire.
pub struct Port {
    /// How it is spelled.
    pub name: String,
    /// The number by which programs know it.
    pub ifindex: u32,
    /// What comes from the network.
    pub receive: Box<dyn Receive>,
    /// What goes there, unless it only brings packets.
    pub transmit: Option<Box<dyn Transmit>>,
    /// Where passed packets go, and what is sent from there.
    pub host: Option<Host>,
}

/// The host side of a port.
pub struct Host {
    /// What the host sends.
    pub receive: Box<dyn Receive>,
    /// What it gets.
    pub transmit: Box<dyn Transmit>,
}

/// A port's way out, with what waits for it.
struct Output {
    transmit: Box<dyn Transmit>,
    queue: FrameQueue,
}

/// Where packets leave: by port, to the network and to the host.
pub struct Outputs {
    ways: Vec<[Option<Output>; 2]>,
}

/// Which side of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The wire.
    Network,
    /// The machine.
    Host,
}

impl Outputs {
    /// None yet.
    pub fn new() -> Self {
        Self { ways: vec![] }
    }

    /// Adds those of the next port.
    pub fn add(&mut self, network: Option<Box<dyn Transmit>>, host: Option<Box<dyn Transmit>>) {
        let output = |transmit| Output { transmit, queue: FrameQueue::default() };
        self.ways.push([network, host].map(|transmit| transmit.map(output)));
    }

    /// Has a packet leave by a port, or drops and counts it there. It came by port `from`.
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

    /// How many packets may still wait for that side of a port.
    pub fn room(&self, port: usize, side: Side) -> usize {
        let output = self.ways[port][side as usize].as_ref();
        output.map_or(0, |output| QUEUE_MAX.saturating_sub(output.queue.waiting()))
    }

    /// Hands what waits to the ports, as far as they take it; says whether any was taken.
    ///
    /// # Errors
    /// What went wrong at a port.
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

    /// Pushes out what ports still hold.
    ///
    /// # Errors
    /// What went wrong at a port.
    pub fn flush(&mut self, names: &[String]) -> Result<(), Error> {
        for (ways, name) in self.ways.iter_mut().zip(names) {
            for output in ways.iter_mut().flatten() {
                let flushed = output.transmit.flush();
                flushed.map_err(|source| Error::Port { port: name.clone(), source })?;
            }
        }
        Ok(())
    }

    /// Packets that wait.
    pub fn waiting(&self) -> usize {
        self.ways.iter().flatten().flatten().map(|output| output.queue.waiting()).sum()
    }

    /// Packets that ports took and could not send.
    pub fn lost(&self, port: usize) -> u64 {
        self.ways[port].iter().flatten().map(|output| output.transmit.lost()).sum()
    }

    /// Waits for room where something waits.
    pub fn wait_in<'w>(&'w self, waiting: &mut Waiting<'w>) {
        let full = self.ways.iter().flatten().flatten().filter(|it| it.queue.waiting() > 0);
        full.for_each(|output| waiting.for_room(output.transmit.readiness()));
    }
}
