// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor as `docs/internals/vliw.md` describes it: a [`Model`] executes images row by row,
//! with the memory, maps and helpers of the eBPF interpreter's machine.
//!
//! The model has no pipeline stages. Behaviour that depends on them is forbidden in images, and a
//! [strict](Mode::Strict) model detects violations, where real hardware would read stale values. A
//! violation is a [`Fault`] of the image, never an outcome.

mod fault;
mod hazard;
mod record;
mod row;
mod touched;

pub use fault::{Fault, Hazard};
pub use record::{Step, Stored, Way};

use crate::image::{Image, Row};
use crate::machine::{FIRST_OWN, PACKET};
use freeport_ebpf::helper_functions;
use freeport_ebpf::interpreter::{Engine, Execution, Machine, Outcome, Packet, REGISTERS, Reason};
use hazard::Pipeline;
use record::Record;
use row::{Call, Control, Found};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Content of undefined registers: neither an address nor a harmless number.
const ANYTHING: u64 = 0xdead_dead_dead_dead;

/// Strictness of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Executes rows without checks; forbidden behaviour has some defined meaning.
    Plain,
    /// Detects forbidden behaviour, and overwrites registers whose contents are undefined.
    #[default]
    Strict,
}

/// The processor with its images.
pub struct Model {
    images: Vec<Option<Image>>,
    mode: Mode,
    state: RefCell<State>,
    record: RefCell<Record>,
}

/// Outcome of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// As the interpreter reports it, except that its instructions are rows here.
    pub outcome: Outcome,
    /// Statistics of the run.
    pub statistics: Statistics,
}

/// Statistics of a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Number of executed rows.
    pub rows: u64,
    /// Number of executed operations, without those that a taken jump skipped.
    pub operations: u64,
    /// Number of taken jumps, including those that end the program.
    pub jumps: u64,
    /// Number of calls of helpers, by their numbers.
    pub helpers: BTreeMap<u32, u64>,
}

/// State that is kept between rows.
#[derive(Default)]
struct State {
    statistics: Statistics,
    pipeline: Pipeline,
    /// The current lane, which is reported if the program is aborted.
    lane: usize,
    /// Number of nested executions, one for each helper that calls a function.
    depth: usize,
    fault: Option<Fault>,
}

/// Reason for which a row is not completed.
enum Stop {
    /// The program is aborted.
    Abort(Reason),
    /// The image violates a rule.
    Hazard(Hazard),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Self::Abort(reason)
    }
}

impl From<Hazard> for Stop {
    fn from(hazard: Hazard) -> Self {
        Self::Hazard(hazard)
    }
}

impl Model {
    /// Creates a model of images, one for each program of an object that can be run.
    pub fn new(images: Vec<Option<Image>>, mode: Mode) -> Self {
        Self { images, mode, state: RefCell::default(), record: RefCell::default() }
    }

    /// Returns the image of a program, by its number in the object.
    pub fn image(&self, program: usize) -> Option<&Image> {
        self.images.get(program)?.as_ref()
    }

    /// Runs a program, by its number in the object, on a packet, with the maps of a machine that
    /// has loaded the same object.
    ///
    /// # Errors
    /// The violation of a rule by the image. Maps and packet then keep the state of that moment.
    pub fn run(
        &self,
        machine: &mut Machine,
        program: usize,
        packet: &mut Packet,
    ) -> Result<Run, Fault> {
        *self.state.borrow_mut() = State::default();
        let outcome = machine.run_on(self, program, packet);
        let mut state = self.state.borrow_mut();
        let statistics = std::mem::take(&mut state.statistics);
        match state.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(Run { outcome, statistics }),
        }
    }

    fn is_strict(&self) -> bool {
        self.mode == Mode::Strict
    }

    /// Executes the next row; returns register 0 if the execution ends with it.
    fn step(&self, execution: &mut Execution<'_, '_>) -> Result<Option<u64>, Stop> {
        let image = self.image(execution.program()).ok_or(Reason::NotRunnable)?;
        let at = execution.place();
        execution.set_place(at + 1);
        execution.spend()?;
        let row = image.rows.get(at).ok_or(Reason::PastTheEnd)?;
        execution.registers_mut()[usize::from(PACKET)] = execution.packet()[1];
        let found = {
            let state = &mut *self.state.borrow_mut();
            state.statistics.rows += 1;
            let found = Found::read(row, execution, &mut state.lane)?;
            if self.is_strict() {
                state.pipeline.check(at, row, &found, execution)?;
            }
            state.statistics.count(&found);
            found
        };
        let before = *execution.registers();
        for store in &found.stores {
            self.state.borrow_mut().lane = store.lane;
            execution.store(store.address, store.bytes, store.value)?;
        }
        found.write(execution);
        for call in &found.calls {
            if !self.call(execution, (at, row), call, &before)? {
                return Ok(None);
            }
            found.write_besides(execution, 0);
        }
        self.note(at, &found, execution);
        self.leave_row(execution, image, at, &found)
    }

    /// Calls a helper, where `before` has the registers before the row; returns whether the same
    /// program continues.
    fn call(
        &self,
        execution: &mut Execution<'_, '_>,
        place: (usize, &Row),
        call: &Call,
        before: &[u64; REGISTERS],
    ) -> Result<bool, Stop> {
        let (at, row) = place;
        self.state.borrow_mut().lane = call.lane;
        execution.registers_mut()[1..6].copy_from_slice(&call.arguments);
        let calls_function =
            helper_functions::signature(call.helper).is_some_and(|it| it.calls_function());
        if calls_function {
            self.state.borrow_mut().pipeline.clear();
        }
        let given = execution.call_helper(call.helper)?;
        let Some(value) = given else {
            // The rows of the next program do not overlap with this one's.
            self.state.borrow_mut().pipeline.clear();
            return Ok(false);
        };
        execution.registers_mut()[1..6].copy_from_slice(&before[1..6]);
        if calls_function {
            self.leave_anything(execution);
            self.state.borrow_mut().pipeline.note_registers(at, row);
        }
        execution.registers_mut()[0] = value;
        Ok(true)
    }

    /// Transfers control at the end of a row.
    fn leave_row(
        &self,
        execution: &mut Execution<'_, '_>,
        image: &Image,
        at: usize,
        found: &Found,
    ) -> Result<Option<u64>, Stop> {
        let next = match found.control {
            None => at + 1,
            Some((lane, control)) => {
                self.state.borrow_mut().lane = lane;
                match control {
                    Control::Row(row) => row,
                    Control::Function(row) => {
                        self.enter(execution, image, row, at)?;
                        return Ok(None);
                    }
                    Control::Verdict(_) if self.is_strict() && !image.is_program(at) => {
                        return Err(Hazard::Verdict.into());
                    }
                    Control::Verdict(verdict) => return Ok(self.leave(execution, verdict.into())),
                    Control::Exit(value) => return Ok(self.leave(execution, value)),
                }
            }
        };
        let stays = next < image.rows.len() && image.function_of(next) == image.function_of(at);
        if self.is_strict() && !stays {
            return Err(Hazard::Beyond { next }.into());
        }
        if next != at + 1 {
            // A taken jump to another row leaves time for all results of earlier rows.
            self.state.borrow_mut().pipeline.clear();
        }
        execution.set_place(next);
        Ok(None)
    }

    fn enter(
        &self,
        execution: &mut Execution<'_, '_>,
        image: &Image,
        row: usize,
        at: usize,
    ) -> Result<(), Stop> {
        if self.is_strict() && !image.begins_function(row) {
            return Err(Hazard::NotAFunction { row }.into());
        }
        execution.enter(row, at + 1)?;
        self.state.borrow_mut().pipeline.clear();
        self.forget_callers(execution);
        Ok(())
    }

    /// Leaves the current function; returns register 0 if the execution ends with it.
    fn leave(&self, execution: &mut Execution<'_, '_>, value: u64) -> Option<u64> {
        execution.registers_mut()[0] = value;
        self.state.borrow_mut().pipeline.clear();
        if execution.leave() {
            return Some(value);
        }
        self.leave_anything(execution);
        None
    }

    /// Makes all registers undefined at the entry of a function, except its arguments and frame
    /// pointer.
    fn forget_callers(&self, execution: &mut Execution<'_, '_>) {
        if self.is_strict() {
            let registers = execution.registers_mut();
            registers[0] = ANYTHING;
            registers[6..10].fill(ANYTHING);
            registers[usize::from(FIRST_OWN)..].fill(ANYTHING);
        }
    }

    /// Makes the registers undefined that a function does not preserve for its caller.
    fn leave_anything(&self, execution: &mut Execution<'_, '_>) {
        if self.is_strict() {
            let registers = execution.registers_mut();
            registers[1..6].fill(ANYTHING);
            registers[usize::from(FIRST_OWN)..].fill(ANYTHING);
        }
    }
}

impl Engine for Model {
    fn places(&self, program: usize) -> Option<usize> {
        self.image(program).map(|image| image.rows.len())
    }

    fn execute(&self, execution: &mut Execution<'_, '_>) -> Result<u64, Reason> {
        let depth = self.state.borrow().depth;
        self.state.borrow_mut().depth = depth + 1;
        if depth > 0 {
            self.forget_callers(execution);
        }
        let result = loop {
            match self.step(execution) {
                Ok(None) => {}
                Ok(Some(value)) => break Ok(value),
                Err(Stop::Abort(reason)) => break Err(reason),
                Err(Stop::Hazard(hazard)) => {
                    let row = execution.place().saturating_sub(1);
                    let fault = Fault { program: execution.program(), row, hazard };
                    let reason = Reason::Engine(fault.to_string());
                    self.state.borrow_mut().fault = Some(fault);
                    break Err(reason);
                }
            }
        };
        self.state.borrow_mut().depth = depth;
        result
    }

    fn slot(&self, program: usize, place: usize) -> usize {
        let row = self.image(program).and_then(|image| image.rows.get(place));
        let lane = self.state.borrow().lane;
        let slot =
            row.and_then(|row| row.lanes.get(lane)?.as_ref().or(row.slots().next()?.1.into()));
        slot.and_then(|slot| slot.origins.first().copied()).unwrap_or(0)
    }
}

impl Statistics {
    fn count(&mut self, found: &Found) {
        self.operations += found.operations;
        let jumps = matches!(found.control, Some((_, Control::Row(_) | Control::Verdict(_))));
        self.jumps += u64::from(jumps);
        for call in &found.calls {
            *self.helpers.entry(call.helper).or_default() += 1;
        }
    }
}

impl Image {
    /// Returns whether a row belongs to the program itself, and not to a called function.
    fn is_program(&self, row: usize) -> bool {
        self.functions.get(1).is_none_or(|second| row < second.row)
    }

    /// Returns whether a row is the first of a function.
    fn begins_function(&self, row: usize) -> bool {
        self.functions.iter().any(|function| function.row == row)
    }
}
