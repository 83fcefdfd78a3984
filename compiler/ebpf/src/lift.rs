// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifts XDP programs to packet programs of the shared representation, so that they run wherever
//! those run: as compiled code in user space, or as an element among others.
//!
//! The [`Analysis`] turns addresses into typed values. A packet pointer becomes an offset from the
//! packet's start, a stack pointer a place in an object of the firing, a pointer into a map value a
//! reference returned by a table, and a pointer into data a place in a variable. No address remains
//! a number, so nothing outside its own memory can be reached. Functions of the program are
//! inlined, loops stay loops with the kernel's limit of instructions as their bound, and maps
//! become tables with the same names.
//!
//! A program without a counterpart is [`NotLiftable`], with the instruction and the reason; it
//! still runs in the interpreter and in the kernel.

mod arithmetic;
mod bits;
mod block;
mod call;
mod checksum;
mod element;
mod flow;
mod held;
mod loops;
mod maps;
mod memory;
mod mixed;
mod packet;
mod ports;
mod redirect;
mod refusal;
#[cfg(test)]
mod tests;

pub use element::{INGRESS, QUEUE};
pub use maps::MapPlace;
pub use ports::Ports;
pub use refusal::NotLiftable;

use crate::analysis::Analysis;
use crate::object::{Object, Program};
use freeport_ir::{
    BlockId, Builder, Element, ElementId, Function, Loc, ObjectRef, Program as IrProgram, ValueId,
};
use std::collections::HashMap;

/// A program as an element of the shared representation.
#[derive(Clone, Debug)]
pub struct Lifted {
    /// The element with its handler; its graph is one instance between external endpoints.
    pub program: IrProgram,
    /// Counterpart of each map of the object.
    pub maps: Vec<Option<MapPlace>>,
}

/// Lifts a program of an object.
///
/// # Errors
/// The first instruction that has no counterpart.
pub fn lift(object: &Object, program: &Program, ports: &Ports) -> Result<Lifted, NotLiftable> {
    let analysis = Analysis::of(program, &object.maps)
        .map_err(|malformed| NotLiftable::at(malformed.slot, malformed.reason))?;
    if let Some(unknown) = analysis.given_up() {
        return Err(NotLiftable::at(unknown.slot, unknown.why.to_string()));
    }
    let (state, tables, maps) = maps::places(&object.maps);
    let files = files(program);
    let body = Lifter::new(program, &analysis, object, &maps, &files, ports).lift()?;
    let mut element = element::declare(&program.name, ports);
    element.state.extend(state);
    element.tables = tables;
    Ok(Lifted { program: assemble(program, files, element, body), maps })
}

fn assemble(program: &Program, files: Vec<String>, element: Element, body: Function) -> IrProgram {
    let graph = element::graph(&element);
    IrProgram {
        name: program.name.clone(),
        files,
        functions: vec![body],
        elements: vec![element],
        graph,
    }
}

/// Returns the source files of a program.
fn files(program: &Program) -> Vec<String> {
    let mut files: Vec<String> = vec![];
    for line in &program.lines {
        if !files.contains(&line.file) {
            files.push(line.file.clone());
        }
    }
    files
}

/// A program while it is lifted.
struct Lifter<'a> {
    program: &'a Program,
    analysis: &'a Analysis,
    object: &'a Object,
    maps: &'a [Option<MapPlace>],
    files: HashMap<&'a str, u32>,
    ports: &'a Ports,
    builder: Builder,
    /// Index of the current input; its packet.
    input: usize,
    packet: ValueId,
    /// All frames, one after the other.
    stack: ObjectRef,
    /// Maximum number of bytes of `stack` in use.
    stack_bytes: i64,
    /// Device to which the packet is redirected; 0 for none.
    target: ObjectRef,
    /// Distance by which the packet's start has moved.
    moved: ObjectRef,
    /// Block that continues with the program's verdict.
    epilogue: BlockId,
    /// Values that may be references to values of different maps.
    mixed: mixed::Mixed,
    /// Number of functions inlined so far.
    merged: usize,
    /// Slot of the instruction that is being lifted.
    slot: usize,
}

/// The only element.
const ELEMENT: ElementId = ElementId(0);

impl<'a> Lifter<'a> {
    fn new(
        program: &'a Program,
        analysis: &'a Analysis,
        object: &'a Object,
        maps: &'a [Option<MapPlace>],
        files: &'a [String],
        ports: &'a Ports,
    ) -> Self {
        let mut builder = Builder::new(Function::new(&program.name, Some(ELEMENT), Loc::default()));
        let objects = element::locals(builder.function_mut());
        let files = (0..).zip(files).map(|(at, file)| (file.as_str(), at)).collect();
        let [stack, target, moved] = objects.map(ObjectRef::Local);
        Self {
            program,
            analysis,
            object,
            maps,
            files,
            ports,
            builder,
            input: 0,
            packet: ValueId(0),
            stack,
            stack_bytes: 0,
            target,
            moved,
            epilogue: BlockId(0),
            mixed: mixed::Mixed::default(),
            merged: 0,
            slot: 0,
        }
    }

    /// Builds the handler: the program, once for each input.
    fn lift(mut self) -> Result<Function, NotLiftable> {
        let starts = ports::choose(&mut self.builder, self.ports.inputs().len());
        for (input, start) in starts.into_iter().enumerate() {
            self.builder.loc = Loc::default();
            self.builder.switch_to(start);
            self.input = input;
            (self.packet, self.epilogue) = ports::begin(&mut self.builder, input);
            self.merged = 0;
            self.program()?;
            self.mixed.check()?;
            self.builder.loc = Loc::default();
            ports::end(&mut self.builder, self.epilogue, self.packet, self.ports, input);
        }
        let mut function = self.builder.finish();
        function.locals[element::STACK.index()].depth = self.stack_bytes.max(8) as u64;
        Ok(function)
    }

    /// Sets the current instruction.
    fn go_to(&mut self, slot: usize) {
        self.slot = slot;
        let place = self.program.line(slot);
        self.builder.loc = place.map_or(Loc::default(), |line| Loc {
            file: freeport_ir::FileId(self.files[line.file.as_str()]),
            line: line.line,
            column: line.column,
        });
    }

    /// Refuses the current instruction.
    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T, NotLiftable> {
        Err(NotLiftable::at(self.slot, reason.into()))
    }
}
