// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Targets in user space that finish a packet before they take the next: the interpreter, the model
//! of the small processor, and compiled code.

use crate::devices::Devices;
use crate::{Engine, Error, Ran, Stop};
use freeport_ebpf::object::Object;
use freeport_port::BATCH;
use freeport_xdp::{Arrival, InUserSpace, Target};
use std::ops::RangeInclusive;

/// A program of an object that runs in user space.
pub struct OneByOne<T> {
    name: &'static str,
    target: T,
    program: String,
    devices: Devices,
    ran: Ran,
    is_done: bool,
    packets: u64,
    instructions: u64,
}

impl<T: InUserSpace> OneByOne<T> {
    /// Creates the engine for a program of a loaded object; `name` labels its figures.
    ///
    /// # Errors
    /// The object has no such program, or the program cannot run on the target.
    pub fn new(
        name: &'static str,
        object: &Object,
        target: T,
        program: &str,
    ) -> Result<Self, Error> {
        target.takes(program)?;
        Ok(Self {
            name,
            target,
            program: program.to_owned(),
            devices: Devices::of(object),
            ran: Ran::default(),
            is_done: false,
            packets: 0,
            instructions: 0,
        })
    }
}

impl<T: InUserSpace> Engine for OneByOne<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn lengths(&self) -> RangeInclusive<usize> {
        1..=T::LENGTH_MAX
    }

    fn room(&self) -> usize {
        BATCH
    }

    fn offer(&mut self, arrival: &Arrival<'_>) -> Result<(), Error> {
        self.target.run_into(&self.program, arrival, &mut self.ran.departure)?;
        self.packets += 1;
        self.ran.ingress_ifindex = arrival.ingress_ifindex;
        (self.ran.way, self.ran.stop) = (None, None);
        let (mut redirect, mut aborted) = (None, None);
        if let Some(outcome) = self.target.last() {
            self.instructions += outcome.instructions;
            (redirect, aborted) = (outcome.redirect, outcome.aborted.clone());
        }
        if let Some(redirect) = redirect {
            let way = self.devices.way(redirect, arrival.ingress_ifindex, &mut self.target)?;
            self.ran.way = Some(way);
        }
        self.ran.stop = aborted.map(Stop::At);
        self.is_done = true;
        Ok(())
    }

    fn work(&mut self) -> Result<bool, Error> {
        Ok(false)
    }

    fn take(&mut self, ran: &mut Ran) -> Result<bool, Error> {
        if self.is_done {
            std::mem::swap(ran, &mut self.ran);
        }
        Ok(std::mem::take(&mut self.is_done))
    }

    fn at_work(&self) -> usize {
        usize::from(self.is_done)
    }

    fn target_mut(&mut self) -> &mut dyn Target {
        &mut self.target
    }

    fn maps_changed(&mut self) {
        self.devices.forget();
    }

    fn figures(&mut self) -> Result<Vec<(&'static str, u64)>, Error> {
        let mut figures = vec![("packets run", self.packets)];
        // Compiled code does not count instructions.
        if self.instructions > 0 {
            figures.push(("instructions executed", self.instructions));
        }
        Ok(figures)
    }
}
