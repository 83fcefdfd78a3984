// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replaces helpers by functions of the program: those that call its functions, and those that
//! parse strings byte by byte. Hardware without such helpers can then execute the program.
//!
//! The transformation is from eBPF to eBPF: a helper call becomes a call of a function that is
//! appended to the program, so slots, source lines and profiles stay valid. Callbacks become
//! ordinary calls. Results, including errors, equal those of `freeport_ebpf::helper_functions`.

use freeport_ebpf::analysis::graph::Called;
use freeport_ebpf::analysis::{Analysis, Graph, MapName, Type};
use freeport_ebpf::helper_functions::signature;
use freeport_ebpf::instruction::{
    Callee, Constant, Instruction, Operation, PSEUDO_CALL, PSEUDO_FUNCTION, assemble,
};
use freeport_ebpf::object::{Function, MapDefinition, MapKind, Object, Program};

/// Maximum number of active functions.
const FRAMES_MAX: usize = 8;

/// Returns the object with transformed programs.
pub fn with_local_helpers(object: &Object) -> Object {
    let mut object = object.clone();
    for program in &mut object.programs {
        if let Some(changed) = of_program(program, &object.maps) {
            *program = changed;
        }
    }
    object
}

/// Returns the program with functions in place of helpers, or `None` if there is nothing to do, or
/// if it cannot be done. A call with an unknown map or function is left unchanged.
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
    // A callback needs one more frame than the helper did.
    let graph = Graph::of(&program).ok()?;
    (frames(&graph) <= FRAMES_MAX).then_some(program)
}

/// Contents of a function that replaces a helper.
#[derive(PartialEq)]
struct Body {
    name: String,
    text: String,
    /// First slot of the function that it calls.
    callback: Option<usize>,
}

/// Returns the body that can replace a helper call.
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

/// Returns the code that parses a number, with `end` after it.
fn number(end: &str) -> String {
    format!("{}{end}", include_str!("local_helpers/strtol.bpf"))
}

/// Returns the code that iterates over an array, if the map is one.
fn for_each(slot: usize, analysis: &Analysis, maps: &[MapDefinition]) -> Option<String> {
    let Type::Map(MapName::Map(map)) = analysis.registers(slot)?[1].holds else { return None };
    let map = maps.get(map as usize)?;
    let entries = i32::try_from(map.max_entries).ok()?.to_string();
    let text = include_str!("local_helpers/for_each_of_array.bpf");
    let is_array = matches!(map.kind, MapKind::Array | MapKind::PerCpuArray);
    is_array.then(|| text.replace("MAX_ENTRIES", &entries))
}

/// A program during the transformation, with the functions appended so far.
struct Rewriting {
    program: Program,
    made: Vec<(Body, usize)>,
}

impl Rewriting {
    /// Replaces the call in a slot by one of a function with this body, which is appended if
    /// needed.
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

/// Returns the call of a function from a slot.
fn call(from: usize, to: usize) -> Instruction {
    let distance = to as i64 - from as i64 - 1;
    let distance = i32::try_from(distance).expect("programs have fewer slots than 2^31");
    Operation::Call(Callee::Local(distance)).encode().0
}

fn is_local_call(instruction: &Instruction) -> bool {
    instruction.opcode == 0x85 && instruction.source == PSEUDO_CALL
}

/// Removes references to functions that are no longer passed to any helper.
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

/// Returns the number of frames that the program and its callees need; if there are too many, at
/// least one more than the limit.
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
