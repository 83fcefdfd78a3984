// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interpreter as a target.

use crate::{Arrival, Departure, Error, Executor, Hosted};
use freeport_ebpf::interpreter::{Environment, Machine, Observer, Outcome, Packet};
use freeport_ebpf::object::Object;

/// An object in the interpreter.
pub type Interpreter = Hosted<Steps>;

/// Executor that runs programs in the interpreter.
pub struct Steps;

impl Executor for Steps {
    fn refusal(&self, machine: &Machine, program: usize) -> Option<String> {
        let refused = machine.refused(program);
        let reasons: Vec<_> = refused.iter().map(ToString::to_string).collect();
        (!reasons.is_empty()).then(|| reasons.join("\n"))
    }

    fn run(
        &mut self,
        machine: &mut Machine,
        program: usize,
        packet: &mut Packet,
    ) -> Result<Outcome, Error> {
        Ok(machine.run(program, packet))
    }
}

impl Interpreter {
    /// Loads an object with its maps, and all its programs that can run here, into an environment.
    ///
    /// # Errors
    /// The object is malformed or unsupported.
    pub fn load(object: &Object, environment: Environment) -> Result<Self, Error> {
        Self::with_executor(object, Steps, environment)
    }

    /// Runs a program on a packet, as [`Target::run`](crate::Target::run) does, and calls an
    /// observer for each instruction.
    ///
    /// # Errors
    /// As [`Target::run`](crate::Target::run).
    pub fn run_observed(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Departure, Error> {
        let mut departure = Departure::default();
        self.run_with(program, arrival, &mut departure, |_, machine, number, packet| {
            Ok(machine.run_observed(number, packet, observer))
        })?;
        Ok(departure)
    }
}
