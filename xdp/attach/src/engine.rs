// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of everything that runs a program on packets outside the kernel.

use crate::Error;
use freeport_ebpf::interpreter::Abort;
use freeport_xdp::{Arrival, Departure, Target};
use std::ops::RangeInclusive;

/// Runs a program on packets, possibly on several at a time.
pub trait Engine {
    /// Returns the name under which its figures are reported, which says whether they are
    /// simulated.
    fn name(&self) -> &'static str;

    /// Returns the packet lengths that it accepts.
    fn lengths(&self) -> RangeInclusive<usize>;

    /// Returns the number of further packets that it accepts now.
    fn room(&self) -> usize;

    /// Offers a packet whose length is within [`Engine::lengths`].
    ///
    /// # Errors
    /// The engine has failed and cannot continue.
    fn offer(&mut self, arrival: &Arrival<'_>) -> Result<(), Error>;

    /// Works on its packets for a moment. Returns whether there was anything to do.
    ///
    /// # Errors
    /// The engine has failed and cannot continue.
    fn work(&mut self) -> Result<bool, Error>;

    /// Takes a finished packet and stores it in `ran`. Returns whether there was one.
    ///
    /// # Errors
    /// The engine has failed and cannot continue.
    fn take(&mut self, ran: &mut Ran) -> Result<bool, Error>;

    /// Returns the number of unfinished packets.
    fn at_work(&self) -> usize;

    /// Returns the target with its maps.
    fn target_mut(&mut self) -> &mut dyn Target;

    /// Must be called after a map was changed from outside the program.
    fn maps_changed(&mut self);

    /// Returns its counters, each with a name.
    ///
    /// # Errors
    /// The target cannot report them.
    fn figures(&mut self) -> Result<Vec<(&'static str, u64)>, Error>;
}

/// A finished packet with its outcome.
#[derive(Debug, Default)]
pub struct Ran {
    /// Number of the ingress device.
    pub ingress_ifindex: u32,
    /// The packet and the verdict.
    pub departure: Departure,
    /// Destination of the packet, if it was redirected.
    pub way: Option<Way>,
    /// Reason for which the program was aborted, if it was.
    pub stop: Option<Stop>,
}

/// Destination of a redirected packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// The device with this number.
    Device(u32),
    /// All of these devices.
    Devices(Vec<u32>),
    /// The host, by another of its processors.
    Host,
    /// A socket; none is supported here.
    Socket,
    /// A map entry that no longer exists.
    Nowhere,
}

/// Reason for which a program was aborted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Aborted at an instruction.
    At(Abort),
    /// Stopped by the card, with the number of the reason.
    Card(u32),
}
