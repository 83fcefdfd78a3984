// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The scheduled form of a handler: the same operations, each with the stage of a pipeline in which
//! it runs. It is what the RTL back end prints and what its clock-by-clock interpreter ([`run()`])
//! executes; the control-flow form never carries cycles.
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

/// The scheduled form of one element's handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    /// The element type whose handler it is.
    pub element: ElementId,
    /// Least clocks from one firing to the next, at least 1.
    pub initiation_interval: u32,
    /// Every value, by [`ValueId`].
    pub values: Vec<Value>,
    /// State that is carried from firing to firing besides the element's own.
    pub registers: Vec<Register>,
    /// Ports of the element's memories.
    pub memory_ports: Vec<MemoryPort>,
    /// Hazards that are forwarded.
    pub forwards: Vec<Forward>,
    /// Slots of the FIFO behind each output port.
    pub fifo_slots: Vec<u32>,
    /// Operations in the order of the stages, and of the program within each.
    pub steps: Vec<Step>,
    /// Which inputs the next firing waits for; all where absent. It is admitted only after the
    /// stage of this value.
    pub next_mask: Option<ValueId>,
}

/// A register that lives from firing to firing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// Its name.
    pub name: String,
    /// What it holds after reset; its width is the register's.
    pub reset: Bits,
}

/// What a memory port can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Either, one per clock.
    ReadWrite,
}

/// A port of a memory: one access per clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryPort {
    /// Its name.
    pub name: String,
    /// The memory, a state object of the element.
    pub object: ObjectId,
    /// What it can do.
    pub access: Access,
    /// Clocks from a read to its data; 0 for registers.
    pub latency: u32,
}

/// The registers that stand in for writes that a read came too early for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forward {
    /// The memory.
    pub object: ObjectId,
    /// The stage in which the pipeline compares and chooses.
    pub stage: u32,
    /// Where the last write went.
    pub address: usize,
    /// What it wrote.
    pub value: usize,
    /// Whether there was one; 1 bit.
    pub valid: usize,
}

/// What a step does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// An operation; not a call, nor one on tables, packets or oracles.
    Op(Op),
    /// Reads the register of that index.
    Get(usize),
    /// Writes the register of that index.
    Set(usize, ValueId),
}

/// One operation in its stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// When it runs, counted from admission.
    pub stage: u32,
    /// 1 bit: whether it runs; always where absent.
    pub predicate: Option<ValueId>,
    /// The memory port it goes through, an index, for a load or store of memory.
    pub port: Option<usize>,
    /// What it defines.
    pub result: Option<ValueId>,
    /// What it does.
    pub action: Action,
    /// Where it was written.
    pub loc: Loc,
}

/// Why a pipeline is wrong, or did something wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// It breaks a rule that needs no run to see.
    #[error("step {step}: {message}")]
    Step {
        /// Which step.
        step: usize,
        /// What is wrong with it.
        message: String,
    },
    /// Something besides its steps is wrong.
    #[error("{0}")]
    Shape(String),
    /// Two accesses to a memory port in one clock.
    #[error("clock {clock}: two accesses through memory port {port}")]
    Conflict {
        /// When.
        clock: u64,
        /// Where.
        port: String,
    },
    /// A firing saw another value than one firing after the other would have.
    #[error("clock {clock}: {object}[{index}]: {what}")]
    Hazard {
        /// When it was found.
        clock: u64,
        /// In which memory.
        object: String,
        /// In which of its elements.
        index: u64,
        /// What went wrong.
        what: &'static str,
    },
    /// The clocks allowed were not enough.
    #[error("it did not end within {0} clocks")]
    Unfinished(u64),
}

impl Pipeline {
    /// How many stages it has.
    pub fn stages(&self) -> u32 {
        self.steps.iter().map(|step| step.stage + 1).max().unwrap_or(1)
    }

    /// The first stage in which `value` can be used; none if no step defines it.
    pub fn available_at(&self, value: ValueId) -> Option<u32> {
        let step = self.steps.iter().find(|step| step.result == Some(value))?;
        let latency = step.port.and_then(|port| self.memory_ports.get(port));
        Some(step.stage + latency.map_or(0, |port| port.latency))
    }

    /// The values that a step uses, its predicate included.
    pub(crate) fn operands(step: &Step) -> Vec<ValueId> {
        let mut operands: Vec<ValueId> = step.predicate.into_iter().collect();
        match &step.action {
            Action::Op(op) => op.for_each_operand(|value| operands.push(value)),
            Action::Get(_) => {}
            Action::Set(_, value) => operands.push(*value),
        }
        operands
    }

    /// The stage in which items are put to an output port; none where none is.
    pub(crate) fn put_stage(&self, output: usize) -> Option<u32> {
        let is_put = |step: &&Step| match step.action {
            Action::Op(Op::Put { port, .. }) => port.index() == output,
            _ => false,
        };
        self.steps.iter().find(is_put).map(|step| step.stage)
    }

    /// Clocks between admissions that the loop-carried mask allows.
    pub(crate) fn interval(&self) -> u32 {
        let mask = self.next_mask.and_then(|mask| self.available_at(mask));
        self.initiation_interval.max(mask.map_or(1, |stage| stage + 1))
    }
}
