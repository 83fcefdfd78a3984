// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a pipeline clock by clock.

use super::hazard::{Forwarded, Range, Turn, Watch, hazard};
use super::{Action, Pipeline, ScheduleError, Step, check};
use crate::interp::eval_pure;
use crate::interp::memory::ObjectMemory;
use crate::typing::mask_bits;
use crate::{Bits, Element, ObjectRef, Op, Program, ValueId};
use std::collections::VecDeque;

/// Environment of a pipeline.
pub struct RunOptions<'o> {
    /// Maximum number of clocks until everything has left.
    pub clock_limit: u64,
    /// Returns whether the reader of an output takes an item in a clock; both are counted from 0.
    pub reads_output: &'o mut dyn FnMut(u64, usize) -> bool,
}

/// Results of a pipeline run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// By output port: every item, in order.
    pub outputs: Vec<Vec<Bits>>,
    /// By state object and element: final contents.
    pub state: Vec<Vec<Bits>>,
    /// Number of firings admitted.
    pub firings: u64,
    /// Clocks from the first until the last item has left.
    pub clocks: u64,
    /// Number of loads and stores out of range.
    pub out_of_range: u64,
    /// Number of takes and peeks of a port that was not ready.
    pub empty_reads: u64,
}

/// Feeds `inputs` (by port) to a pipeline until it is empty.
///
/// # Errors
/// A pipeline that [`check()`] rejects; two accesses to a memory port in one clock; a hazard that
/// is not forwarded; a run that does not end within the clock limit.
pub fn run(
    program: &Program,
    pipeline: &Pipeline,
    inputs: Vec<Vec<Bits>>,
    options: RunOptions,
) -> Result<Run, ScheduleError> {
    check(program, pipeline)?;
    let element = program.element(pipeline.element);
    let mut machine = Machine::new(pipeline, element, inputs)?;
    while !machine.is_empty() {
        if machine.clock == options.clock_limit {
            return Err(ScheduleError::Unfinished(options.clock_limit));
        }
        machine.clock(options.reads_output)?;
    }
    Ok(machine.finish())
}

/// A firing in the pipeline.
struct Firing {
    number: u64,
    admitted: u64,
    values: Vec<Option<Bits>>,
    /// By input port: the item present at admission.
    items: Vec<Option<Bits>>,
}

/// Writes of a clock, which become visible in the next one.
#[derive(Default)]
struct Writes {
    memory: Vec<MemoryWrite>,
    registers: Vec<(usize, Bits)>,
    takes: Vec<usize>,
    /// By output: the last item put in this clock.
    puts: Vec<Option<Bits>>,
}

struct MemoryWrite {
    turn: Turn,
    object: usize,
    range: Range,
    value: Bits,
    mask: Option<Bits>,
}

struct Machine<'p> {
    pipeline: &'p Pipeline,
    element: &'p Element,
    inputs: Vec<VecDeque<Bits>>,
    fifos: Vec<VecDeque<Bits>>,
    reserved: Vec<u32>,
    memories: Vec<ObjectMemory>,
    watches: Vec<Watch>,
    registers: Vec<Bits>,
    in_flight: VecDeque<Firing>,
    last_admitted: Option<u64>,
    mask: Bits,
    clock: u64,
    done: Run,
}

impl<'p> Machine<'p> {
    fn new(
        pipeline: &'p Pipeline,
        element: &'p Element,
        inputs: Vec<Vec<Bits>>,
    ) -> Result<Self, ScheduleError> {
        let fits = inputs.len() == element.inputs.len()
            && inputs.iter().zip(&element.inputs).all(|(items, port)| {
                let width = port.item.value_type().bits();
                items.iter().all(|item| Some(item.width()) == width)
            });
        if !fits || inputs.is_empty() {
            let message = "one list of items for each input, and at least one input";
            return Err(ScheduleError::Shape(message.to_owned()));
        }
        let memories = element.state.iter().map(ObjectMemory::new).collect::<Option<Vec<_>>>();
        let too_large = || ScheduleError::Shape("its state is too large to run".to_owned());
        let has_forward = |at: usize| pipeline.forwards.iter().any(|it| it.object.index() == at);
        Ok(Self {
            pipeline,
            element,
            inputs: inputs.into_iter().map(VecDeque::from).collect(),
            fifos: element.outputs.iter().map(|_| VecDeque::new()).collect(),
            reserved: vec![0; element.outputs.len()],
            memories: memories.ok_or_else(too_large)?,
            watches: (0..element.state.len()).map(|at| Watch::new(has_forward(at))).collect(),
            registers: pipeline.registers.iter().map(|each| each.reset.clone()).collect(),
            in_flight: VecDeque::new(),
            last_admitted: None,
            mask: Bits::ones(mask_bits(element)),
            clock: 0,
            done: Run { outputs: vec![vec![]; element.outputs.len()], ..Run::default() },
        })
    }

    fn is_empty(&self) -> bool {
        self.in_flight.is_empty() && self.fifos.iter().all(VecDeque::is_empty) && !self.is_wanted()
    }

    /// Returns whether the inputs satisfy the mask of the next firing.
    fn is_wanted(&self) -> bool {
        let mut masked = (0..self.inputs.len()).filter(|at| self.mask.bit(*at as u32));
        if self.mask.is_zero() {
            return true;
        }
        match self.element.await_all {
            true => masked.all(|at| !self.inputs[at].is_empty()),
            false => masked.any(|at| !self.inputs[at].is_empty()),
        }
    }

    fn clock(
        &mut self,
        reads_output: &mut dyn FnMut(u64, usize) -> bool,
    ) -> Result<(), ScheduleError> {
        for (at, fifo) in self.fifos.iter_mut().enumerate() {
            if reads_output(self.clock, at) {
                self.done.outputs[at].extend(fifo.pop_front());
            }
        }
        self.admit();
        let puts = vec![None; self.fifos.len()];
        let mut writes = Writes { puts, ..Writes::default() };
        let mut in_flight = std::mem::take(&mut self.in_flight);
        let mut used = vec![false; self.pipeline.memory_ports.len()];
        for firing in &mut in_flight {
            self.stage(firing, &mut writes, &mut used)?;
            self.forward(firing)?;
        }
        self.in_flight = in_flight;
        self.commit(writes)?;
        self.clock += 1;
        Ok(())
    }

    fn admit(&mut self) {
        let interval = u64::from(self.pipeline.interval());
        let is_time = self.last_admitted.is_none_or(|last| last + interval <= self.clock);
        let mut slots = self.fifos.iter().zip(&self.reserved).zip(&self.pipeline.fifo_slots);
        let has_room = slots.all(|((fifo, reserved), most)| {
            fifo.len() as u64 + u64::from(*reserved) < u64::from(*most)
        });
        if !is_time || !has_room || !self.is_wanted() {
            return;
        }
        for (at, reserved) in self.reserved.iter_mut().enumerate() {
            *reserved += u32::from(self.pipeline.put_stage(at).is_some());
        }
        let items = self.inputs.iter().enumerate();
        let items = items.map(|(at, items)| match self.mask.bit(at as u32) {
            true => items.front().cloned(),
            false => None,
        });
        self.in_flight.push_back(Firing {
            number: self.done.firings,
            admitted: self.clock,
            values: vec![None; self.pipeline.values.len()],
            items: items.collect(),
        });
        self.done.firings += 1;
        self.last_admitted = Some(self.clock);
    }

    /// Checks the forwarding registers for a firing in this clock.
    fn forward(&mut self, firing: &Firing) -> Result<(), ScheduleError> {
        let stage = self.clock - firing.admitted;
        for each in &self.pipeline.forwards {
            if u64::from(each.stage) == stage {
                let registers = Forwarded {
                    address: &self.registers[each.address],
                    value: &self.registers[each.value],
                    is_valid: !self.registers[each.valid].is_zero(),
                };
                let (clock, at) = (self.clock, each.object.index());
                let name = &self.element.state[at].name;
                let found = self.watches[at].forward(firing.number, &registers);
                found.map_err(|found| hazard(clock, name, found))?;
            }
        }
        Ok(())
    }

    fn stage(
        &mut self,
        firing: &mut Firing,
        writes: &mut Writes,
        used: &mut [bool],
    ) -> Result<(), ScheduleError> {
        let stage = self.clock - firing.admitted;
        let pipeline = self.pipeline;
        for (at, step) in pipeline.steps.iter().enumerate() {
            if u64::from(step.stage) != stage {
                continue;
            }
            let runs = step.predicate.is_none_or(|value| !firing.bits(value).is_zero());
            let result = match runs {
                true => {
                    self.occupy(step, used)?;
                    self.step((firing.number, at), step, firing, writes)?
                }
                false => None,
            };
            if let Some(value) = step.result {
                let width = pipeline.values[value.index()].ty.bits().unwrap_or(1);
                firing.values[value.index()] = result.or_else(|| Some(Bits::zero(width)));
            }
        }
        let mask = pipeline
            .next_mask
            .filter(|mask| pipeline.available_at(*mask).is_some_and(|at| u64::from(at) == stage));
        if let Some(mask) = mask {
            self.mask = firing.bits(mask).clone();
        }
        Ok(())
    }

    fn occupy(&self, step: &Step, used: &mut [bool]) -> Result<(), ScheduleError> {
        match step.port {
            Some(port) if std::mem::replace(&mut used[port], true) => {
                let port = self.pipeline.memory_ports[port].name.clone();
                Err(ScheduleError::Conflict { clock: self.clock, port })
            }
            _ => Ok(()),
        }
    }

    fn step(
        &mut self,
        turn: Turn,
        step: &Step,
        firing: &mut Firing,
        writes: &mut Writes,
    ) -> Result<Option<Bits>, ScheduleError> {
        let op = match &step.action {
            Action::Get(register) => return Ok(Some(self.registers[*register].clone())),
            Action::Set(register, value) => {
                writes.registers.push((*register, firing.bits(*value).clone()));
                return Ok(None);
            }
            Action::Op(op) => op,
        };
        match op {
            Op::Load { object, index, lo, width } => {
                let (lo, width) = (*lo, *width);
                let range = Range { index: firing.bits(*index).saturating_u64(), lo, width };
                self.load(turn, *object, range).map(Some)
            }
            Op::Store { object, index, lo, value, mask } => {
                let value = firing.bits(*value).clone();
                let (index, width) = (firing.bits(*index).saturating_u64(), value.width());
                let mask = mask.map(|mask| firing.bits(mask).clone());
                let (range, object) = (Range { index, lo: *lo, width }, state_index(*object));
                writes.memory.push(MemoryWrite { turn, object, range, value, mask });
                Ok(None)
            }
            Op::ReadyMask => {
                let ready = firing.items.iter().map(|item| Bits::from_bool(item.is_some()));
                Ok(Some(Bits::concat(&ready.collect::<Vec<_>>())))
            }
            Op::Ready(port) => Ok(Some(Bits::from_bool(firing.items[port.index()].is_some()))),
            Op::Peek(port) => {
                let item = firing.items[port.index()].clone();
                self.done.empty_reads += u64::from(item.is_none());
                Ok(item)
            }
            Op::Take(port) => {
                let item = firing.items[port.index()].take();
                self.done.empty_reads += u64::from(item.is_none());
                writes.takes.extend(item.is_some().then_some(port.index()));
                Ok(item)
            }
            Op::Put { port, value } => {
                writes.puts[port.index()] = Some(firing.bits(*value).clone());
                Ok(None)
            }
            op => Ok(eval_pure(op, |value| firing.bits(value))),
        }
    }

    fn load(&mut self, turn: Turn, object: ObjectRef, range: Range) -> Result<Bits, ScheduleError> {
        let at = state_index(object);
        let Some(data) = self.memories[at].load(range.index, range.lo, range.width) else {
            self.done.out_of_range += 1;
            return Ok(Bits::zero(range.width));
        };
        let found = self.watches[at].read(turn, self.clock, range, data.clone());
        found.map_err(|found| hazard(self.clock, &self.element.state[at].name, found))?;
        Ok(data)
    }

    fn commit(&mut self, writes: Writes) -> Result<(), ScheduleError> {
        for write in writes.memory {
            let MemoryWrite { turn, object, range, value, mask } = write;
            let memory = &mut self.memories[object];
            if !memory.store(range.index, range.lo, &value, mask.as_ref()) {
                self.done.out_of_range += 1;
                continue;
            }
            let known = mask.is_none().then_some(value);
            let found = self.watches[object].write(turn, self.clock, range, known);
            found.map_err(|found| hazard(self.clock, &self.element.state[object].name, found))?;
        }
        for (register, value) in writes.registers {
            self.registers[register] = value;
        }
        for port in writes.takes {
            self.inputs[port].pop_front();
        }
        for firing in &self.in_flight {
            for (output, reserved) in self.reserved.iter_mut().enumerate() {
                let stage = self.pipeline.put_stage(output).map(u64::from);
                *reserved -= u32::from(stage == Some(self.clock - firing.admitted));
            }
        }
        for (fifo, item) in self.fifos.iter_mut().zip(writes.puts) {
            fifo.extend(item);
        }
        let stages = u64::from(self.pipeline.stages());
        let clock = self.clock;
        self.in_flight.retain(|firing| clock + 1 - firing.admitted < stages);
        let oldest = clock.saturating_sub(stages);
        self.watches.iter_mut().for_each(|watch| watch.forget_before(oldest));
        Ok(())
    }

    fn finish(mut self) -> Run {
        self.done.clocks = self.clock;
        let depth = |memory: &ObjectMemory| 0..memory.depth();
        self.done.state = self
            .memories
            .iter()
            .map(|memory| depth(memory).filter_map(|at| memory.element(at)).collect())
            .collect();
        self.done
    }
}

impl Firing {
    fn bits(&self, value: ValueId) -> &Bits {
        let bits = self.values[value.index()].as_ref();
        bits.expect("the check found a step before this one that defines it")
    }
}

fn state_index(object: ObjectRef) -> usize {
    match object {
        ObjectRef::State(at) => at.index(),
        ObjectRef::Local(_) => unreachable!("the check lets no local object pass"),
    }
}
