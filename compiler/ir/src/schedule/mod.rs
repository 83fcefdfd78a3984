// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The scheduled form of a handler: the same operations, each assigned to a stage of a pipeline.
//! The RTL back end prints this form and its clock-by-clock interpreter ([`run()`]) executes it;
//! the control-flow form never carries cycles.
//!
//! The machine it describes:
//! 1. A firing is admitted at most every `initiation_interval` clocks, when an input it waits for
//!    has an item and every output FIFO has a free slot, which it reserves. It sees the inputs of
//!    that clock, so they are read in stage 0.
//! 2. Stages run freely: in clock `c + s` the firing admitted in clock `c` runs stage `s`. Nothing
//!    stalls. An operation whose predicate is 0 has no effect, and its result is 0.
//! 3. All reads of a clock see the memories and registers as they were before it; all writes become
//!    visible in the next. A memory port takes one access per clock.
//! 4. An item that is put enters the output's FIFO at the end of the clock. A slot that was not
//!    used is free again after the stage that would have put.
//!
//! A firing that reads a memory before an older one has written it would see an old value. Such a
//! memory needs a [`Forward`]: registers that hold the address and the value of the last write
//! (`buf_addr` and `buf_val` of ClickNP 4.4, with the valid bit that it leaves out). The write
//! itself is not delayed, so that a snapshot of the memory needs no flush.

mod check;
mod hazard;
mod run;

pub use crate::text::{parse_pipeline, print_pipeline};
pub use check::check;
pub use run::{Run, RunOptions, run};

use crate::{Bits, ElementId, Loc, ObjectId, Op, Value, ValueId};

/// Scheduled form of one element's handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    /// Element type that the handler belongs to.
    pub element: ElementId,
    /// Minimum clocks from one firing to the next, at least 1.
    pub initiation_interval: u32,
    /// Values, indexed by [`ValueId`].
    pub values: Vec<Value>,
    /// State carried from firing to firing besides the element's own.
    pub registers: Vec<Register>,
    /// Ports of the element's memories.
    pub memory_ports: Vec<MemoryPort>,
    /// Forwarded hazards.
    pub forwards: Vec<Forward>,
    /// Slots of the FIFO at each output port.
    pub fifo_slots: Vec<u32>,
    /// Operations in the order of the stages, and in program order within each.
    pub steps: Vec<Step>,
    /// Inputs that the next firing waits for; all if absent. The next firing is admitted only after
    /// the stage of this value.
    pub next_mask: Option<ValueId>,
}

/// A register that is kept from firing to firing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// Name of the register.
    pub name: String,
    /// Value after reset, in the register's width.
    pub reset: Bits,
}

/// Kinds of access of a memory port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Reads or writes, one per clock.
    ReadWrite,
}

/// A port of a memory: one access per clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryPort {
    /// Name of the port.
    pub name: String,
    /// The memory, a state object of the element.
    pub object: ObjectId,
    /// Kinds of access.
    pub access: Access,
    /// Clocks from a read to its data; 0 for registers.
    pub latency: u32,
}

/// Registers that supply a written value to a read that happened too early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forward {
    /// The memory.
    pub object: ObjectId,
    /// Stage in which the pipeline compares the address and selects the value.
    pub stage: u32,
    /// Register with the address of the last write.
    pub address: usize,
    /// Register with the value of the last write.
    pub value: usize,
    /// Register that holds whether there was a write; 1 bit.
    pub valid: usize,
}

/// Action of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// An operation; not a call, nor one on tables, packets or oracles.
    Op(Op),
    /// Reads the register of this index.
    Get(usize),
    /// Writes the register of this index.
    Set(usize, ValueId),
}

/// One operation in its stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Stage, counted from admission.
    pub stage: u32,
    /// Condition for running, 1 bit; always runs if absent.
    pub predicate: Option<ValueId>,
    /// Index of the memory port used, for a load or store of memory.
    pub port: Option<usize>,
    /// Value it defines.
    pub result: Option<ValueId>,
    /// Action of the step.
    pub action: Action,
    /// Source location.
    pub loc: Loc,
}

/// An error in a pipeline or in its execution.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A step violates a rule that is checked statically.
    #[error("step {step}: {message}")]
    Step {
        /// Index of the step.
        step: usize,
        /// The violation.
        message: String,
    },
    /// The pipeline, apart from its steps, violates a rule.
    #[error("{0}")]
    Shape(String),
    /// Two accesses to a memory port in one clock.
    #[error("clock {clock}: two accesses through memory port {port}")]
    Conflict {
        /// Clock of the conflict.
        clock: u64,
        /// Name of the memory port.
        port: String,
    },
    /// A firing saw a value that differs from sequential execution.
    #[error("clock {clock}: {object}[{index}]: {what}")]
    Hazard {
        /// Clock at which it was detected.
        clock: u64,
        /// Name of the memory.
        object: String,
        /// Index of the element.
        index: u64,
        /// Kind of hazard.
        what: &'static str,
    },
    /// The run did not end within this number of clocks.
    #[error("it did not end within {0} clocks")]
    Unfinished(u64),
}

impl Pipeline {
    /// Returns the number of stages.
    pub fn stages(&self) -> u32 {
        self.steps.iter().map(|step| step.stage + 1).max().unwrap_or(1)
    }

    /// Returns the first stage in which `value` can be used; `None` if no step defines it.
    pub fn available_at(&self, value: ValueId) -> Option<u32> {
        let step = self.steps.iter().find(|step| step.result == Some(value))?;
        let latency = step.port.and_then(|port| self.memory_ports.get(port));
        Some(step.stage + latency.map_or(0, |port| port.latency))
    }

    /// Returns the values that a step uses, including its predicate.
    pub(crate) fn operands(step: &Step) -> Vec<ValueId> {
        let mut operands: Vec<ValueId> = step.predicate.into_iter().collect();
        match &step.action {
            Action::Op(op) => op.for_each_operand(|value| operands.push(value)),
            Action::Get(_) => {}
            Action::Set(_, value) => operands.push(*value),
        }
        operands
    }

    /// Returns the stage in which items are put to an output port; `None` if none are.
    pub(crate) fn put_stage(&self, output: usize) -> Option<u32> {
        let is_put = |step: &&Step| match step.action {
            Action::Op(Op::Put { port, .. }) => port.index() == output,
            _ => false,
        };
        self.steps.iter().find(is_put).map(|step| step.stage)
    }

    /// Returns the clocks between admissions that the loop-carried mask allows.
    pub(crate) fn interval(&self) -> u32 {
        let mask = self.next_mask.and_then(|mask| self.available_at(mask));
        self.initiation_interval.max(mask.map_or(1, |stage| stage + 1))
    }
}
