// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports on network interfaces, by AF_XDP sockets: frames pass between the interface's driver and
//! this process, bypassing the kernel's network stack.
//!
//! ```no_run
//! use freeport_port::{XdpOptions, XdpPort};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ports: [XdpOptions; 2] = ["eth0".parse()?, "eth1/0@blue".parse()?];
//! let mut ports = XdpPort::open_all(&ports)?.into_iter();
//! let (mut from_eth0, mut to_eth0) = ports.next().expect("one for each").split();
//! # Ok(())
//! # }
//! ```
//!
//! A port has a receiving and a transmitting half, which different threads may use. All ports that
//! are opened together share one memory, so a frame received by one is sent by another from where
//! it lies (`memory` describes how its chunk is returned). A port of several queues has a socket on
//! each, and sends by the first.
//!
//! A short program on the interface passes frames to the sockets (`program`). It is removed when
//! the process ends, for any reason; then frames go to the network stack again.
//!
//! The mode depends on the driver's features, and [`XdpMode`] reports it: the program runs in the
//! driver or after it; the card reads and writes the memory itself, or the kernel copies frames.

mod error;
mod interface;
mod memory;
mod open;
mod options;
mod program;
mod receive;
mod ring;
mod socket;
#[cfg(test)]
mod tests;
mod transmit;
mod wait;

pub use options::{DEFAULT_RING_FRAMES, MOST_RING_FRAMES, XdpMode, XdpOptions, XdpOptionsError};
pub use receive::{XdpReceived, XdpReceiver};
pub use transmit::{XdpSent, XdpTransmitter};

use crate::port::PortError;

/// A port on an interface, with both of its halves.
#[derive(Debug)]
pub struct XdpPort {
    receiver: XdpReceiver,
    transmitter: XdpTransmitter,
    mode: XdpMode,
}

impl XdpPort {
    /// Opens a single port.
    ///
    /// # Errors
    /// The errors of [`open_all`](Self::open_all).
    pub fn open(options: &XdpOptions) -> Result<Self, PortError> {
        let mut ports = Self::open_all(std::slice::from_ref(options))?;
        Ok(ports.pop().expect("as many ports as were asked for"))
    }

    /// Opens ports that share their memory, in the order of `options`: all ports of one worker.
    /// Each interface, or queue of one, may be named only once; its port has both directions.
    ///
    /// If an earlier user of a queue has just ended, waits up to two seconds for the queue.
    ///
    /// # Errors
    /// A port cannot be opened; the error names the interface and what to do. Reasons are: no such
    /// interface, queue or namespace; no permission; a program or socket of another process on it;
    /// no memory.
    pub fn open_all(options: &[XdpOptions]) -> Result<Vec<Self>, PortError> {
        open::open_all(options)
    }

    /// Returns how the port works.
    pub fn mode(&self) -> &XdpMode {
        &self.mode
    }

    /// Returns the halves. Either may be dropped: without the receiving half, received frames go to
    /// the network stack.
    pub fn split(self) -> (XdpReceiver, XdpTransmitter) {
        (self.receiver, self.transmitter)
    }
}
