// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the scheduled form of a handler.

use super::body::Body;
use super::cursor::Result;
use super::parse::Parser;
use super::{ParseError, resolve};
use crate::schedule::{Access, Action, Forward, MemoryPort, Pipeline, Register, Step};
use crate::{Block, ElementId, Inst, ObjectId, Program, Term, Type, ValueId};

/// Parses the text form of a pipeline of an element of `program`.
///
/// # Errors
/// The first error, with its position in the text.
pub fn parse_pipeline(program: &Program, text: &str) -> std::result::Result<Pipeline, ParseError> {
    let mut parser = Parser::new(text, program.clone())?;
    parser.pipeline().map_err(|error| *error)
}

impl Parser<'_> {
    fn pipeline(&mut self) -> Result<Pipeline> {
        let at = self.cursor.index();
        self.cursor.keyword("pipeline")?;
        let names = self.program.elements.iter().map(|element| element.name.clone()).collect();
        let element = ElementId(self.named(names, "element")?);
        let outputs = self.owner_element(Some(element)).map_or(0, |element| element.outputs.len());
        self.cursor.keyword("interval")?;
        let mut pipeline = Pipeline {
            element,
            initiation_interval: self.cursor.number_u32()?,
            values: vec![],
            registers: vec![],
            memory_ports: vec![],
            forwards: vec![],
            fifo_slots: vec![1; outputs],
            steps: vec![],
            next_mask: None,
        };
        self.cursor.sign("{")?;
        while self.declaration(&mut pipeline)? {
            self.cursor.skip_separators();
        }
        let mut body = Body::new(String::new(), Some(element), at);
        while self.cursor.take_word("stage") {
            let stage = self.cursor.number_u32()?;
            self.cursor.sign(":")?;
            self.cursor.skip_separators();
            while self.cursor.word().is_none_or(|word| word != "stage" && word != "next") {
                if self.cursor.is_sign("}") {
                    break;
                }
                let step = self.step(&pipeline, &mut body, stage)?;
                pipeline.steps.push(step);
                self.cursor.skip_separators();
            }
        }
        if self.cursor.take_word("next") {
            pipeline.next_mask = Some(self.value(&mut body)?);
        }
        self.cursor.sign("}")?;
        if !self.cursor.is_at_end() {
            return Err(self.cursor.expected("the end"));
        }
        self.resolve_pipeline(pipeline, body)
    }

    /// Parses one declaration; returns whether there was one.
    fn declaration(&mut self, pipeline: &mut Pipeline) -> Result<bool> {
        if self.cursor.take_word("register") {
            let name = self.cursor.name("the register's name")?;
            self.cursor.sign("=")?;
            let reset = self.cursor.literal(None)?;
            pipeline.registers.push(Register { name, reset });
        } else if self.cursor.take_word("port") {
            let port = self.memory_port(pipeline.element)?;
            pipeline.memory_ports.push(port);
        } else if self.cursor.take_word("forward") {
            let object = self.state_object(pipeline.element)?;
            self.cursor.keyword("stage")?;
            let stage = self.cursor.number_u32()?;
            self.cursor.keyword("address")?;
            let address = self.register(pipeline)?;
            self.cursor.keyword("value")?;
            let value = self.register(pipeline)?;
            self.cursor.keyword("valid")?;
            let valid = self.register(pipeline)?;
            pipeline.forwards.push(Forward { object, stage, address, value, valid });
        } else if self.cursor.take_word("fifo") {
            let element = self.owner_element(Some(pipeline.element));
            let outputs = element.map_or(&[][..], |element| &element.outputs);
            let names = outputs.iter().map(|port| port.name.clone()).collect();
            let at = self.cursor.index();
            let output = self.named(names, "output port")? as usize;
            let slots = self.cursor.number_u32()?;
            match pipeline.fifo_slots.get_mut(output) {
                Some(place) => *place = slots,
                None => return Err(self.cursor.error_at(at, "no output port has that number")),
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn memory_port(&mut self, element: ElementId) -> Result<MemoryPort> {
        let name = self.cursor.name("the port's name")?;
        self.cursor.sign(":")?;
        let access = match self.cursor.word() {
            Some("read") => Access::Read,
            Some("write") => Access::Write,
            Some("read_write") => Access::ReadWrite,
            _ => return Err(self.cursor.expected("`read`, `write` or `read_write`")),
        };
        self.cursor.next();
        let object = self.state_object(element)?;
        self.cursor.keyword("latency")?;
        Ok(MemoryPort { name, object, access, latency: self.cursor.number_u32()? })
    }

    fn state_object(&mut self, element: ElementId) -> Result<ObjectId> {
        let state = self.owner_element(Some(element)).map_or(&[][..], |element| &element.state);
        let names = state.iter().map(|object| object.name.clone()).collect();
        self.named(names, "object").map(ObjectId)
    }

    fn register(&mut self, pipeline: &Pipeline) -> Result<usize> {
        let names = pipeline.registers.iter().map(|each| each.name.clone()).collect();
        Ok(self.named(names, "register")? as usize)
    }

    fn step(&mut self, pipeline: &Pipeline, body: &mut Body, stage: u32) -> Result<Step> {
        let mut result = None;
        if matches!(self.cursor.peek(), super::lex::Kind::Value(_)) {
            let value = self.define(body)?;
            if self.cursor.take_sign(":") {
                body.raw.names[value.index()].ty = Some(self.ty(body.owner)?);
            }
            self.cursor.sign("=")?;
            result = Some(value);
        }
        let action = if self.cursor.take_word("get") {
            let register = self.register(pipeline)?;
            if let (Some(value), Some(known)) = (result, pipeline.registers.get(register)) {
                let ty = &mut body.raw.names[value.index()].ty;
                *ty = ty.or(Some(Type::Bits(known.reset.width())));
            }
            Action::Get(register)
        } else if self.cursor.take_word("set") {
            let register = self.register(pipeline)?;
            self.cursor.sign(",")?;
            Action::Set(register, self.value(body)?)
        } else {
            Action::Op(self.op(body)?)
        };
        let mut port = None;
        if self.cursor.take_word("via") {
            let names = pipeline.memory_ports.iter().map(|port| port.name.clone()).collect();
            port = Some(self.named(names, "memory port")? as usize);
        }
        let predicate = match self.cursor.take_word("if") {
            true => Some(self.value(body)?),
            false => None,
        };
        Ok(Step { stage, predicate, port, result, action, loc: self.cursor.loc() })
    }

    /// Assigns numbers and types to values, as in a function of one block.
    fn resolve_pipeline(&self, mut pipeline: Pipeline, mut body: Body) -> Result<Pipeline> {
        let numbers = resolve::numbers(&self.cursor, &body.raw)?;
        let map = |value: ValueId| ValueId(numbers[value.index()]);
        let mut block = Block::new(Term::Return { value: None });
        for step in &mut pipeline.steps {
            step.result = step.result.map(map);
            step.predicate = step.predicate.map(map);
            match &mut step.action {
                Action::Op(op) => {
                    op.map_operands(map);
                    block.insts.push(Inst { result: step.result, op: op.clone(), loc: step.loc });
                }
                Action::Get(_) => {}
                Action::Set(_, value) => *value = map(*value),
            }
        }
        pipeline.next_mask = pipeline.next_mask.map(map);
        body.raw.function.blocks.push(block);
        resolve::number_values(&mut body.raw, &numbers);
        resolve::infer_types(&self.cursor, &self.program, &mut body.raw)?;
        pipeline.values = body.raw.function.values;
        Ok(pipeline)
    }
}
