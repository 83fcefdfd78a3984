// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who runs a program on packets outside the kernel.

use crate::Error;
use freeport_ebpf::interpreter::Abort;
use freeport_xdp::{Arrival, Departure, Target};
use std::ops::RangeInclusive;

/// Runs a program on packets, of which it may have several at a time.
pub trait Engine {
    /// What its figures are told of: whether they are simulated, for example.
    fn name(&self) -> &'static str;

    /// Lengths of packets that it takes.
    fn lengths(&self) -> RangeInclusive<usize>;

    /// How many more packets it takes now.
    fn room(&self) -> usize;

    /// Gives it a packet, of a length that it takes.
    ///
    /// # Errors
    /// What keeps it from going on.
    fn offer(&mut self, arrival: &Arrival<'_>) -> Result<(), Error>;

    /// Works for a moment on what it has; says whether there was anything to do.
    ///
    /// # Errors
    /// What keeps it from going on.
    fn work(&mut self) -> Result<bool, Error>;

    /// Takes a packet that it is done with, in place of another; says whether there was one.
    ///
    /// # Errors
    /// What keeps it from going on.
    fn take(&mut self, ran: &mut Ran) -> Result<bool, Error>;

    /// Packets that it is not done with.
    fn at_work(&self) -> usize;

    /// The target with its maps.
    fn target_mut(&mut self) -> &mut dyn Target;

    /// Has to be called when somebody has changed a map.
    fn maps_changed(&mut self);

    /// What it has counted, each with its name.
    ///
    /// # Errors
    /// If it does not say.
    fn figures(&mut self) -> Result<Vec<(&'static str, u64)>, Error>;
}

/// A packet with what became of it.
#[derive(Debug, Default)]
pub struct Ran {
    /// The device by which it came.
    pub ingress_ifindex: u32,
    /// The packet and the verdict.
    pub departure: Departure,
    /// Where it goes, if it was redirected.
    pub way: Option<Way>,
    /// Why the program was ended before its exit, if it was.
    pub stop: Option<Stop>,
}

/// Where a packet is redirected to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// To the device of that number.
    Device(u32),
    /// To all of these.
    Devices(Vec<u32>),
    /// To the machine itself, by another of its processors.
    Host,
    /// To a socket that nobody has here.
    Socket,
    /// To an entry of a map that is not there any more.
    Nowhere,
}

/// Why a program was ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// At an instruction.
    At(Abort),
    /// By the card, for the reason with that number.
    Card(u32),
}
