// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Links self-contained programs: a function, followed by all functions that it calls, directly or
//! indirectly.

use super::code::{Code, Debug, Unlinked};
use super::{Error, Function, Line, Program, ProgramKind};
use std::collections::HashMap;

/// Maximum number of slots of a program, as in the kernel.
const MAX_SLOTS: usize = 1_000_000;
/// Characters of a source line that are kept.
const MAX_LINE_LETTERS: usize = 512;

/// Links the function `entry` with the functions that it needs. If one of them has a fault, the
/// program has that fault and no instructions.
///
/// # Errors
/// The program becomes too long.
pub(super) fn link(code: &Code, debug: &Debug, entry: usize) -> Result<Program, Error> {
    let first = &code.functions[entry];
    let mut program = Program {
        name: first.name.clone(),
        section: first.section.clone(),
        kind: ProgramKind::of_section(&first.section),
        ..Program::default()
    };
    let (mut starts, mut order, mut next) = (HashMap::from([(entry, 0)]), vec![entry], 0);
    let mut slots = first.slots.len();
    while let Some(&number) = order.get(next) {
        let function = &code.functions[number];
        if let Some(fault) = &function.fault {
            let Program { name, section, kind, .. } = program;
            let refusal = Some(fault.clone());
            return Ok(Program { name, section, kind, refusal, ..Program::default() });
        }
        append(&mut program, function, debug);
        for &(_, callee) in &function.references {
            starts.entry(callee).or_insert_with(|| {
                order.push(callee);
                let start = slots;
                slots += code.functions[callee].slots.len();
                start
            });
        }
        if slots > MAX_SLOTS {
            let reason = format!("program `{}` has over {MAX_SLOTS} slots", first.name);
            return Err(Error::in_section(&first.section, reason));
        }
        next += 1;
    }
    for number in order {
        for &(slot, callee) in &code.functions[number].references {
            let slot = starts[&number] + slot;
            // Both are below the limit.
            program.instructions[slot].immediate =
                (starts[&callee] as i64 - slot as i64 - 1) as i32;
        }
    }
    Ok(program)
}

/// Appends the slots of a function with their line information.
fn append(program: &mut Program, function: &Unlinked, debug: &Debug) {
    let start = program.instructions.len();
    program.functions.push(Function { name: function.name.clone(), slot: start });
    program.instructions.extend(&function.slots);
    let Some(btf) = &debug.btf else { return };
    let lines = debug.extension.lines(&function.section);
    let end = function.start + function.slots.len();
    let begin = lines.partition_point(|line| line.slot < function.start);
    for line in lines[begin..].iter().take_while(|line| line.slot < end) {
        let slot = start + line.slot - function.start;
        if program.lines.last().is_some_and(|last| last.slot == slot) {
            continue;
        }
        let text = btf.text(line.text).trim().chars().take(MAX_LINE_LETTERS).collect();
        let file = btf.text(line.file).into_owned();
        program.lines.push(Line { slot, file, line: line.line, column: line.column, text });
    }
}
