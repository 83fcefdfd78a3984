// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports on network interfaces, by AF_XDP sockets: frames pass between the interface's driver and
//! this process without the kernel's network stack.
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
//! A port has a receiving and a transmitting half, which may be used by different threads. All
//! ports that are opened together share one memory, so a frame that came in by one is sent by
//! another from where it lies (`memory` tells how its chunk comes back). A port of several queues
//! has a socket on each, and sends by the first.
//!
//! A short program on the interface hands frames to the sockets (`program`). It goes with the
//! process, however that ends; then frames go to the network stack again.
//!
//! What the driver can do decides how it works, and [`XdpMode`] tells it: the program in the driver
//! or behind it; the memory read and written by the card, or frames copied by the kernel.

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
    /// Opens a port by itself.
    ///
    /// # Errors
    /// As for [`open_all`](Self::open_all).
    pub fn open(options: &XdpOptions) -> Result<Self, PortError> {
        let mut ports = Self::open_all(std::slice::from_ref(options))?;
        Ok(ports.pop().expect("as many ports as were asked for"))
    }

    /// Opens ports that share their memory, in the order of `options`: all those that one worker
    /// has. An interface, or a queue of it, can be named once only; both directions of it are in
    /// its one port.
    ///
    /// A queue whose earlier user has just ended is waited for, for up to two seconds.
    ///
    /// # Errors
    /// What keeps a port from being opened, with the interface and what to do: no such interface,
    /// queue or namespace; no right; a program or socket of somebody else on it; no memory.
    pub fn open_all(options: &[XdpOptions]) -> Result<Vec<Self>, PortError> {
        open::open_all(options)
    }

    /// How it works.
    pub fn mode(&self) -> &XdpMode {
        &self.mode
    }

    /// Its halves. Either may be dropped: without the receiving half, what comes in goes to the
    /// network stack.
    pub fn split(self) -> (XdpReceiver, XdpTransmitter) {
        (self.receiver, self.transmitter)
    }
}
