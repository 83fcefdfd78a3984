// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers as functions of the program: those that call its functions, and those that read texts
//! byte by byte. Hardware that has no such helpers executes programs that do the same without.
//!
//! It is eBPF before and after: a call of a helper becomes one of a function that is put behind the
//! program, so slots, source lines and profiles stay what they are. A function that is called back
//! is called as any other one then. What the helpers give, errors included, is as in
//! `freeport_ebpf::helper_functions`.

use freeport_ebpf::analysis::graph::Called;
use freeport_ebpf::analysis::{Analysis, Graph, MapName, Type};
use freeport_ebpf::helper_functions::signature;
use freeport_ebpf::instruction::{
    Callee, Constant, Instruction, Operation, PSEUDO_CALL, PSEUDO_FUNCTION, assemble,
};
use freeport_ebpf::object::{Function, MapDefinition, MapKind, Object, Program};

/// Functions that may be in progress at once.
const FRAMES_MAX: usize = 8;

/// The object with such programs.
pub fn with_local_helpers(object: &Object) -> Object {
    let mut object = object.clone();
    for program in &mut object.programs {
        if let Some(changed) = of_program(program, &object.maps) {
            *program = changed;
        }
    }
    object
}

/// The program with functions in place of helpers; none if there is nothing to do, or if it cannot
/// be done. A call whose map or function is not known stays what it is.
fn of_program(program: &Program, maps: &[MapDefinition]) -> Option<Program> {
    let analysis = Analysis::of(program, maps).ok()?;
    let mut rewriting = Rewriting { program: program.clone(), made: vec![] };
    for call in analysis.graph().calls() {
        let Called::Helper(helper) = call.callee else { continue };
        if let Some(body) = body(helper, call.slot, &analysis, maps) {
            rewriting.replace(call.slot, body);
        }
    }
    if rewriting.made.is_empty() {
        return None;
    }
    let mut program = rewriting.program;
    forget_functions(&mut program);
    // What calls back is a frame more than the helper needs.
    let graph = Graph::of(&program).ok()?;
    (frames(&graph) <= FRAMES_MAX).then_some(program)
}

/// What a function that takes a helper's place is made of.
#[derive(PartialEq)]
struct Body {
    name: String,
    text: String,
    /// The first slot of the function that it calls.
    callback: Option<usize>,
}

/// What can take the place of a helper's call.
fn body(helper: u32, slot: usize, analysis: &Analysis, maps: &[MapDefinition]) -> Option<Body> {
    let name = signature(helper)?.name;
    let (text, calls_back) = match name {
        "bpf_loop" => (include_str!("local_helpers/loop.bpf").to_owned(), true),
        "bpf_for_each_map_elem" => (for_each(slot, analysis, maps)?, true),
        "bpf_strncmp" => (include_str!("local_helpers/strncmp.bpf").to_owned(), false),
        "bpf_strtol" => (number(include_str!("local_helpers/signed.bpf")), false),
        "bpf_strtoul" => (number(include_str!("local_helpers/unsigned.bpf")), false),
        _ => return None,
    };
    let callback = match (calls_back, analysis.callbacks(slot)) {
        (false, _) => None,
        (true, [only]) => Some(*only),
        (true, _) => return None,
    };
    Some(Body { name: name.to_owned(), text, callback })
}

/// Reading a number, with what becomes of it.
fn number(end: &str) -> String {
    format!("{}{end}", include_str!("local_helpers/strtol.bpf"))
}

/// Walking over an array, if it is one.
fn for_each(slot: usize, analysis: &Analysis, maps: &[MapDefinition]) -> Option<String> {
    let Type::Map(MapName::Map(map)) = analysis.registers(slot)?[1].holds else { return None };
    let map = maps.get(map as usize)?;
    let entries = i32::try_from(map.max_entries).ok()?.to_string();
    let text = include_str!("local_helpers/for_each_of_array.bpf");
    let is_array = matches!(map.kind, MapKind::Array | MapKind::PerCpuArray);
    is_array.then(|| text.replace("MAX_ENTRIES", &entries))
}

/// A program that is being changed, and the functions that were put behind it.
struct Rewriting {
    program: Program,
    made: Vec<(Body, usize)>,
}

impl Rewriting {
    /// Has a slot call a function of this body, which is made if it is not there yet.
    fn replace(&mut self, slot: usize, body: Body) {
        let found = self.made.iter().find(|(known, _)| *known == body).map(|(_, start)| *start);
        let start = found.unwrap_or_else(|| self.make(body));
        self.program.instructions[slot] = call(slot, start);
    }

    fn make(&mut self, body: Body) -> usize {
        const PLACE: &str = "call the_function";
        let start = self.program.instructions.len();
        let text = body.text.replace(PLACE, "call pc + 0x0");
        let code = assemble(&text).expect("the texts are part of the compiler, and tested");
        for (at, instruction) in code.into_iter().enumerate() {
            let instruction = match (is_local_call(&instruction), body.callback) {
                (true, Some(callback)) => call(start + at, callback),
                _ => instruction,
            };
            self.program.instructions.push(instruction);
        }
        self.program.functions.push(Function { name: body.name.clone(), slot: start });
        self.made.push((body, start));
        start
    }
}

/// The call of a function from a slot.
fn call(from: usize, to: usize) -> Instruction {
    let distance = to as i64 - from as i64 - 1;
    let distance = i32::try_from(distance).expect("programs have fewer slots than 2^31");
    Operation::Call(Callee::Local(distance)).encode().0
}

fn is_local_call(instruction: &Instruction) -> bool {
    instruction.opcode == 0x85 && instruction.source == PSEUDO_CALL
}

/// Functions that nobody is given any more need nothing that stands for them.
fn forget_functions(program: &mut Program) {
    let Ok(graph) = Graph::of(program) else { return };
    if graph.calls().iter().any(|call| takes_function(call.callee)) {
        return;
    }
    let mut slot = 0;
    while let Some(&instruction) = program.instructions.get(slot) {
        let slots = 1 + usize::from(instruction.is_wide());
        if instruction.is_wide() && instruction.source == PSEUDO_FUNCTION {
            let (destination, constant) = (instruction.destination, Constant::Value(0));
            let (first, second) = Operation::LoadConstant { destination, constant }.encode();
            program.instructions[slot] = first;
            program.instructions.splice(slot + 1..slot + 2, second);
        }
        slot += slots;
    }
}

fn takes_function(callee: Called) -> bool {
    match callee {
        Called::Helper(helper) => signature(helper).is_none_or(|it| it.calls_function()),
        Called::Function(_) | Called::Program => false,
        Called::Kernel(_) => true,
    }
}

/// Frames that the program needs with all that it calls; if there are too many, at least one more
/// than there may be.
fn frames(graph: &Graph) -> usize {
    let mut frames = vec![1; graph.functions().len()];
    for _ in 0..FRAMES_MAX {
        for call in graph.calls() {
            let caller = graph.blocks()[graph.block_of(call.slot)].function;
            let inner = match call.callee {
                Called::Function(callee) => frames[callee],
                callee => usize::from(takes_function(callee)),
            };
            frames[caller] = frames[caller].max(1 + inner);
        }
    }
    frames[0]
}
