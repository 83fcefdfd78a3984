// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assigns numbers and types to the values of parsed functions, once all functions are known.

use super::ParseError;
use super::body::RawFunction;
use super::cursor::Cursor;
use super::parse::Targets;
use crate::typing::result_of;
use crate::{Function, Op, Program, Term, Type, Value, ValueId};

type Result<T> = std::result::Result<T, Box<ParseError>>;

/// Completes the program. `targets` are the functions and methods that calls refer to, by
/// provisional index.
pub(super) fn resolve(
    cursor: &Cursor,
    mut program: Program,
    mut raw: Vec<RawFunction>,
    targets: &Targets,
) -> Result<Program> {
    for each in &mut raw {
        let numbers = numbers(cursor, each)?;
        renumber(&mut each.function, &numbers, targets);
        number_values(each, &numbers);
        // Types depend on the results of callees, so bodies follow in a second round.
        let mut header =
            Function::new(each.function.name.clone(), each.function.owner, each.function.loc);
        header.result = each.function.result;
        program.functions.push(header);
    }
    for (at, each) in raw.iter_mut().enumerate() {
        infer_types(cursor, &program, each)?;
        size_cases(cursor, each)?;
        std::mem::swap(&mut program.functions[at], &mut each.function);
    }
    Ok(program)
}

/// Returns the number of each value by its provisional index: the written one, otherwise one more
/// than that of the previously defined value.
pub(super) fn numbers(cursor: &Cursor, raw: &RawFunction) -> Result<Vec<u32>> {
    if let Some(missing) = raw.names.iter().find(|value| !value.is_defined) {
        return Err(cursor.error_at(missing.at, "this value is defined nowhere"));
    }
    let mut numbers = vec![0; raw.names.len()];
    let mut is_taken = vec![false; raw.names.len()];
    let mut next = 0u32;
    for at in &raw.definitions {
        let value = &raw.names[*at];
        let number = value.name.number.unwrap_or(next);
        match is_taken.get_mut(number as usize) {
            Some(taken) if !*taken => *taken = true,
            Some(_) => return Err(cursor.error_at(value.at, "another value has that number")),
            None => {
                let most = numbers.len() - 1;
                let message = format!("values are numbered without gaps, here from 0 to {most}");
                return Err(cursor.error_at(value.at, message));
            }
        }
        numbers[*at] = number;
        next = number.wrapping_add(1);
    }
    Ok(numbers)
}

pub(super) fn renumber(function: &mut Function, numbers: &[u32], targets: &Targets) {
    let map = |value: ValueId| ValueId(numbers[value.index()]);
    for block in &mut function.blocks {
        block.params.iter_mut().for_each(|value| *value = map(*value));
        for inst in &mut block.insts {
            inst.result = inst.result.map(map);
            inst.op.map_operands(map);
            match &mut inst.op {
                Op::Call { function, .. } => *function = targets.functions[function.index()],
                Op::CallMethod { instance, method, .. } => {
                    (*instance, *method) = targets.methods[instance.index()];
                }
                _ => {}
            }
        }
        block.term.map_operands(map);
    }
}

/// Fills in the values; those without a written type have none yet, and stay in `raw.names`.
pub(super) fn number_values(raw: &mut RawFunction, numbers: &[u32]) {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|at| numbers[*at]);
    let mut names: Vec<_> = std::mem::take(&mut raw.names).into_iter().map(Some).collect();
    raw.names = order.into_iter().filter_map(|at| names[at].take()).collect();
}

pub(super) fn infer_types(cursor: &Cursor, program: &Program, raw: &mut RawFunction) -> Result<()> {
    let owner = raw.function.owner.and_then(|owner| program.elements.get(owner.index()));
    let mut types: Vec<Option<Type>> = raw.names.iter().map(|value| value.ty).collect();
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for inst in raw.function.blocks.iter().flat_map(|block| &block.insts) {
            let Some(result) = inst.result else { continue };
            if types[result.index()].is_none() {
                let ty = result_of(&inst.op, program, owner, |value| types[value.index()]).ty();
                has_changed |= ty.is_some();
                types[result.index()] = ty;
            }
        }
    }
    for (value, ty) in raw.names.iter().zip(types) {
        let Some(ty) = ty else {
            let message = "the type of this value does not follow from its operation";
            return Err(cursor.error_at(value.at, message));
        };
        raw.function.values.push(Value { ty, name: value.name.name.clone() });
    }
    Ok(())
}

/// Gives switch cases without a width the width of the value they are compared with.
fn size_cases(cursor: &Cursor, raw: &mut RawFunction) -> Result<()> {
    for (block, case, at) in &raw.unsized_cases {
        let Term::Switch { value, cases, .. } = &mut raw.function.blocks[*block].term else {
            continue;
        };
        let Some(width) = raw.function.values[value.index()].ty.bits() else {
            return Err(cursor.error_at(*at, "only a bit vector is compared with a constant"));
        };
        let bits = &mut cases[*case].0;
        if bits.resize(width).resize(bits.width().max(width))
            != bits.resize(bits.width().max(width))
        {
            return Err(cursor.error_at(*at, format!("this does not fit {width} bits")));
        }
        *bits = bits.resize(width);
    }
    Ok(())
}
