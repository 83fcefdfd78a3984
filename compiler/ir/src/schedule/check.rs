// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Static checks of a pipeline: types, stages, ports, carried registers.

use super::{Access, Action, MemoryPort, Pipeline, ScheduleError, Step};
use crate::typing::{mask_bits, result_of};
use crate::{Element, Object, ObjectRef, Op, PortId, Program, Space, Type, ValueId};

/// Checks a pipeline of an element of a verified program.
///
/// # Errors
/// The first rule it violates.
pub fn check(program: &Program, pipeline: &Pipeline) -> Result<(), ScheduleError> {
    let shape = |message: &str| ScheduleError::Shape(message.to_owned());
    let element = program.elements.get(pipeline.element.index());
    let element = element.ok_or_else(|| shape("there is no such element"))?;
    if pipeline.initiation_interval == 0 {
        return Err(shape("the interval is 0 clocks"));
    }
    if pipeline.fifo_slots.len() != element.outputs.len() || pipeline.fifo_slots.contains(&0) {
        return Err(shape("every output has a FIFO with at least one slot"));
    }
    for port in &pipeline.memory_ports {
        if element.state.get(port.object.index()).is_none() {
            return Err(shape("a memory port of no memory"));
        }
    }
    check_forwards(pipeline, element)?;
    let mut checker = Checker { program, pipeline, element, step: 0 };
    for at in 0..pipeline.steps.len() {
        checker.step = at;
        checker.check(&pipeline.steps[at])?;
    }
    if let Some(mask) = pipeline.next_mask {
        let ty = pipeline.values.get(mask.index()).map(|value| value.ty);
        let is_known = pipeline.available_at(mask).is_some_and(|at| at < pipeline.stages());
        if ty != Some(Type::Bits(mask_bits(element))) || !is_known {
            return Err(shape("the next mask has one bit for each input"));
        }
    }
    Ok(())
}

fn check_forwards(pipeline: &Pipeline, element: &Element) -> Result<(), ScheduleError> {
    for forward in &pipeline.forwards {
        let width = |at: usize| pipeline.registers.get(at).map(|each| each.reset.width());
        let object = element.state.get(forward.object.index());
        let is_whole = object.is_some()
            && width(forward.address).is_some()
            && width(forward.value) == object.map(|object| object.elem_bits)
            && width(forward.valid) == Some(1);
        if !is_whole {
            let message = "a forward has a memory and registers for address, value and valid";
            return Err(ScheduleError::Shape(message.to_owned()));
        }
    }
    Ok(())
}

struct Checker<'p> {
    program: &'p Program,
    pipeline: &'p Pipeline,
    element: &'p Element,
    step: usize,
}

impl Checker<'_> {
    fn require(&self, holds: bool, message: &str) -> Result<(), ScheduleError> {
        if holds {
            return Ok(());
        }
        Err(ScheduleError::Step { step: self.step, message: message.to_owned() })
    }

    fn ty(&self, value: ValueId) -> Option<Type> {
        Some(self.pipeline.values.get(value.index())?.ty)
    }

    fn check(&self, step: &Step) -> Result<(), ScheduleError> {
        let earlier = &self.pipeline.steps[..self.step];
        let in_order = earlier.last().is_none_or(|before| before.stage <= step.stage);
        self.require(in_order, "steps are in the order of their stages")?;
        for operand in Pipeline::operands(step) {
            let is_defined = earlier.iter().any(|before| before.result == Some(operand));
            self.require(is_defined, "it uses a value that no step before it defines")?;
            let is_bits = self.ty(operand).is_some_and(|ty| ty.bits().is_some());
            self.require(is_bits, "a pipeline holds bit vectors only")?;
            let exists = self.pipeline.available_at(operand).is_some_and(|at| at <= step.stage);
            self.require(exists, "it uses a value before the stage in which it is there")?;
        }
        if let Some(predicate) = step.predicate {
            let is_bit = self.ty(predicate) == Some(Type::Bits(1));
            self.require(is_bit, "a predicate has one bit")?;
        }
        if let Some(result) = step.result {
            let is_new = earlier.iter().all(|before| before.result != Some(result));
            self.require(is_new, "it defines a value a second time")?;
            let is_right = self.result_type(step) == self.ty(result) && self.ty(result).is_some();
            self.require(is_right, "its result has another type")?;
        }
        match &step.action {
            Action::Op(op) => self.check_op(step, op),
            Action::Get(register) => self.check_register(*register),
            Action::Set(register, value) => {
                self.check_register(*register)?;
                let width = Type::Bits(self.pipeline.registers[*register].reset.width());
                self.require(self.ty(*value) == Some(width), "the register has another width")
            }
        }
    }

    fn result_type(&self, step: &Step) -> Option<Type> {
        match &step.action {
            Action::Op(op) => {
                result_of(op, self.program, Some(self.element), |value| self.ty(value)).ty()
            }
            Action::Get(at) => {
                let register = self.pipeline.registers.get(*at)?;
                Some(Type::Bits(register.reset.width()))
            }
            Action::Set(..) => None,
        }
    }

    fn check_op(&self, step: &Step, op: &Op) -> Result<(), ScheduleError> {
        match op {
            Op::Handle(_) | Op::NullRef(_) | Op::RefIsValid(_) | Op::RefOffset { .. } => {
                self.require(false, "a pipeline holds bit vectors only")
            }
            op if op.is_pure() => Ok(()),
            Op::Load { object, lo, width, .. } => {
                self.check_access(step, *object, Access::Read, *lo, *width)
            }
            Op::Store { object, lo, value, .. } => {
                let width = self.ty(*value).and_then(Type::bits).unwrap_or(0);
                self.check_access(step, *object, Access::Write, *lo, width)
            }
            Op::ReadyMask => self.require(step.stage == 0, "inputs are read in stage 0"),
            Op::Ready(port) | Op::Peek(port) | Op::Take(port) => {
                let is_known = port.index() < self.element.inputs.len();
                self.require(is_known, "it names no input port")?;
                self.require(step.stage == 0, "inputs are read in stage 0")
            }
            Op::Put { port, value } => self.check_put(step, *port, *value),
            _ => self.require(false, "a pipeline cannot do this operation"),
        }
    }

    fn check_put(&self, step: &Step, port: PortId, value: ValueId) -> Result<(), ScheduleError> {
        let declared = self.element.outputs.get(port.index());
        let item = declared.map(|port| port.item.value_type());
        self.require(item.is_some(), "it names no output port")?;
        self.require(item == self.ty(value), "the port has items of another type")?;
        let stage = self.pipeline.put_stage(port.index());
        self.require(stage == Some(step.stage), "all puts to a port share a stage")
    }

    fn check_access(
        &self,
        step: &Step,
        object: ObjectRef,
        access: Access,
        lo: u32,
        width: u32,
    ) -> Result<(), ScheduleError> {
        let ObjectRef::State(id) = object else {
            return self.require(false, "a pipeline has no objects of its own but registers");
        };
        let found: Option<&Object> = self.element.state.get(id.index());
        let fits = found.is_some_and(|object| {
            u64::from(lo) + u64::from(width) <= u64::from(object.elem_bits) && width > 0
        });
        self.require(fits, "the bits are not all within an element of the object")?;
        let mut forwards = self.pipeline.forwards.iter().filter(|forward| forward.object == id);
        let is_in_time = forwards.all(|forward| step.stage <= forward.stage);
        self.require(access != Access::Read || is_in_time, "it reads after the forwarding stage")?;
        let is_register = found.is_some_and(|object| object.space == Space::Register);
        let Some(port) = step.port else {
            return self.require(is_register, "an access to memory uses a port");
        };
        let port: Option<&MemoryPort> = self.pipeline.memory_ports.get(port);
        let is_right = port.is_some_and(|port| {
            port.object == id && (port.access == access || port.access == Access::ReadWrite)
        });
        self.require(is_right, "that port is for something else")
    }

    /// Checks that a register carries its value over exactly one firing: the next firing reads the
    /// value that this one writes, and this one has read before it is overwritten.
    fn check_register(&self, register: usize) -> Result<(), ScheduleError> {
        let is_known = register < self.pipeline.registers.len();
        self.require(is_known, "it names no register")?;
        let stages = |is_wanted: &dyn Fn(&Action) -> bool| {
            let steps = self.pipeline.steps.iter().filter(|step| is_wanted(&step.action));
            steps.map(|step| step.stage).collect::<Vec<_>>()
        };
        let reads = stages(&|action| *action == Action::Get(register));
        let writes = stages(&|action| matches!(action, Action::Set(at, _) if *at == register));
        for write in &writes {
            self.require(*write == writes[0], "all writes of a register share a stage")?;
            for read in &reads {
                let is_carried = read <= write && write - read < self.pipeline.interval();
                self.require(is_carried, "the register is written too late for the next firing")?;
            }
        }
        Ok(())
    }
}
