// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single assignment (ClickNP 4.10): firing-lifetime objects become values.
//!
//! A local whose every access has a constant index in range is split into its elements. Each
//! element is a variable; a whole struct is one wide value. Loads become extracts, stores become
//! inserts, and blocks where paths meet get parameters. An accumulator in memory, written in every
//! copy of an unrolled loop, becomes a chain of values that no longer serialises.

use super::construct::{Current, Summary, Variables, construct};
use super::edit::{
    Replacements, constants, inst, remove_redundant_params, remove_unreachable_blocks,
    remove_unused_locals,
};
use super::{Changes, Options};
use crate::{
    Addressing, BinaryOp, Bits, Function, Inst, Loc, Object, ObjectRef, Op, Program, Space, Type,
    UnaryOp, Value, ValueId,
};
use std::collections::HashMap;

/// Maximum elements of one local that become values.
const MAX_CELLS: usize = 256;
/// Widest variable, in bits; wider locals stay objects.
const MAX_BITS: u64 = 4096;

pub(super) fn run(program: &mut Program, _: &Options, changes: &mut Changes) {
    for function in &mut program.functions {
        if function.locals.is_empty() {
            continue;
        }
        remove_unreachable_blocks(function);
        let constants = constants(function);
        let mut cells = find_cells(function, &constants);
        changes.count("variables", cells.values.len() as u64);
        if !cells.values.is_empty() {
            construct(function, &mut cells);
            let first = std::mem::take(&mut cells.first);
            function.block_mut(Function::ENTRY).insts.splice(0..0, first);
            cells.replacements.apply(function);
            remove_redundant_params(function);
        }
        changes.count("locals removed", remove_unused_locals(function));
    }
}

/// An access to bits of a variable.
struct Access {
    variable: usize,
    lo: u32,
}

struct Cells {
    /// Variable of each element of each local that is split.
    numbers: HashMap<(u32, u64), usize>,
    values: Vec<Value>,
    constants: Vec<Option<Bits>>,
    is_byte_addressed: Vec<bool>,
    replacements: Replacements,
    /// By variable: its initial value.
    initial: Vec<Bits>,
    /// Initial values as instructions, for the entry.
    first: Vec<Inst>,
}

fn find_cells(function: &Function, constants: &[Option<Bits>]) -> Cells {
    // A variable that the programmer put in memory stays there (ClickNP 2.7).
    let is_memory = |local: &Object| local.is_pinned && local.space != Space::Register;
    let mut indexes: Vec<Option<Vec<u64>>> =
        function.locals.iter().map(|local| (!is_memory(local)).then(Vec::new)).collect();
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if let Some((local, cell)) = cell_of(function, &inst.op, constants) {
            let known = &mut indexes[local];
            match cell {
                Some(cell) => {
                    if let Some(list) = known
                        && !list.contains(&cell)
                    {
                        list.push(cell);
                    }
                }
                None => *known = None,
            }
        }
    }
    let is_byte_addressed: Vec<bool> =
        function.locals.iter().map(|local| local.addressing == Addressing::Byte).collect();
    let mut cells = Cells {
        numbers: HashMap::new(),
        values: vec![],
        constants: constants.to_vec(),
        is_byte_addressed,
        replacements: Replacements::default(),
        initial: vec![],
        first: vec![],
    };
    for (at, list) in indexes.into_iter().enumerate() {
        let local = &function.locals[at];
        let bits = if cells.is_byte_addressed[at] {
            local.depth.saturating_mul(8)
        } else {
            u64::from(local.elem_bits)
        };
        let list = list.unwrap_or_default();
        if bits > MAX_BITS || list.len() > MAX_CELLS {
            continue;
        }
        for cell in list {
            let name = match local.depth {
                1 => local.name.clone(),
                _ if cells.is_byte_addressed[at] => local.name.clone(),
                _ => format!("{}[{cell}]", local.name),
            };
            cells.numbers.insert((at as u32, cell), cells.values.len());
            cells.values.push(Value { ty: Type::Bits(bits as u32), name: Some(name) });
            cells.initial.push(initial_bits(local, cell, bits as u32));
        }
    }
    cells
}

/// Returns the initial value of an element of a local.
fn initial_bits(local: &Object, cell: u64, width: u32) -> Bits {
    match local.addressing {
        Addressing::Element => {
            let cell = usize::try_from(cell).ok();
            cell.and_then(|cell| local.init.get(cell)).cloned().unwrap_or(Bits::zero(width))
        }
        Addressing::Byte => {
            let bytes: Vec<u8> = local.init.iter().map(|byte| byte.to_u64() as u8).collect();
            Bits::from_le_bytes(width, &bytes)
        }
    }
}

/// Returns the local that an operation accesses, and the element if that is a constant in range. A
/// local addressed by byte is one element.
fn cell_of(
    function: &Function,
    op: &Op,
    constants: &[Option<Bits>],
) -> Option<(usize, Option<u64>)> {
    let number = |value: ValueId| constants[value.index()].as_ref()?.checked_u64();
    let within = |local: usize, offset: ValueId, bytes: u64| {
        let end = number(offset)?.checked_add(bytes)?;
        (end <= function.locals[local].depth).then_some(0)
    };
    match op {
        Op::Load { object: ObjectRef::Local(local), index, .. }
        | Op::Store { object: ObjectRef::Local(local), index, .. } => {
            let depth = function.locals[local.index()].depth;
            Some((local.index(), number(*index).filter(|index| *index < depth)))
        }
        Op::LoadBytes { object: ObjectRef::Local(local), offset, bytes } => {
            let local = local.index();
            Some((local, within(local, *offset, u64::from(*bytes))))
        }
        Op::StoreBytes { object: ObjectRef::Local(local), offset, value } => {
            let local = local.index();
            let bytes = u64::from(function.width_of(*value) / 8);
            Some((local, within(local, *offset, bytes)))
        }
        _ => None,
    }
}

impl Cells {
    /// Returns the variable that an operation accesses, if any.
    fn access(&self, op: &Op) -> Option<Access> {
        let number = |value: ValueId| self.constants[value.index()].as_ref()?.checked_u64();
        let (local, at, lo) = match op {
            Op::Load { object: ObjectRef::Local(local), index, lo, .. }
            | Op::Store { object: ObjectRef::Local(local), index, lo, .. } => {
                (local, number(*index)?, *lo)
            }
            Op::LoadBytes { object: ObjectRef::Local(local), offset, .. }
            | Op::StoreBytes { object: ObjectRef::Local(local), offset, .. } => {
                debug_assert!(self.is_byte_addressed[local.index()]);
                (local, 0, u32::try_from(number(*offset)?.checked_mul(8)?).ok()?)
            }
            _ => return None,
        };
        Some(Access { variable: *self.numbers.get(&(local.0, at))?, lo })
    }

    fn width(&self, variable: usize) -> u32 {
        self.values[variable].ty.bits().expect("a variable is a bit vector")
    }

    /// Appends instructions that store `value` in the variable to `insts`, and returns the result.
    fn store(
        &self,
        function: &mut Function,
        insts: &mut Vec<Inst>,
        like: &Inst,
        access: &Access,
        current: &Current,
    ) -> ValueId {
        let (value, mask) = match like.op {
            Op::Store { value, mask, .. } => (self.replacements.resolve(value), mask),
            Op::StoreBytes { value, .. } => (self.replacements.resolve(value), None),
            _ => unreachable!("only stores come here"),
        };
        let mask = mask.map(|mask| self.replacements.resolve(mask));
        let (width, part) = (self.width(access.variable), function.width_of(value));
        let is_whole = access.lo == 0 && part == width;
        let mut push = |ty: u32, op: Op, name: Option<String>| {
            let result = function.add_value(Type::Bits(ty), name);
            insts.push(inst(Some(result), op, like));
            result
        };
        let old = || current[access.variable].expect("a store of a part reads the rest");
        let value = match mask {
            None => value,
            Some(mask) => {
                let before = match is_whole {
                    true => old(),
                    false => {
                        let (value, lo) = (old(), access.lo);
                        push(part, Op::Extract { value, lo, width: part }, None)
                    }
                };
                let others = push(part, Op::Unary(UnaryOp::Not, mask), None);
                let kept = push(part, Op::Binary(BinaryOp::And, before, others), None);
                let set = push(part, Op::Binary(BinaryOp::And, value, mask), None);
                push(part, Op::Binary(BinaryOp::Or, kept, set), None)
            }
        };
        if is_whole {
            return value;
        }
        let name = self.values[access.variable].name.clone();
        push(width, Op::Insert { value: old(), lo: access.lo, part: value }, name)
    }
}

impl Variables for Cells {
    fn describe(&self) -> &[Value] {
        &self.values
    }

    fn summarize(&self, function: &Function, block: usize) -> Summary {
        let mut summary = Summary::default();
        for inst in &function.blocks[block].insts {
            let Some(access) = self.access(&inst.op) else { continue };
            let is_whole = match &inst.op {
                Op::Store { value, mask: None, .. } | Op::StoreBytes { value, .. } => {
                    function.width_of(*value) == self.width(access.variable)
                }
                _ => false,
            };
            if !is_whole {
                summary.read(access.variable);
            }
            if matches!(inst.op, Op::Store { .. } | Op::StoreBytes { .. }) {
                summary.assign(access.variable);
            }
        }
        summary
    }

    fn initial(&mut self, function: &mut Function, variable: usize) -> ValueId {
        let Value { ty, name } = self.values[variable].clone();
        let op = Op::Const(self.initial[variable].clone());
        let result = function.add_value(ty, name);
        self.first.push(Inst { result: Some(result), op, loc: Loc::default() });
        result
    }

    fn rewrite(&mut self, function: &mut Function, block: usize, current: &mut Current) {
        let old = std::mem::take(&mut function.blocks[block].insts);
        let mut insts = Vec::with_capacity(old.len());
        for mut this in old {
            let Some(access) = self.access(&this.op) else {
                insts.push(this);
                continue;
            };
            if let Some(result) = this.result {
                let value = current[access.variable].expect("a variable starts with a value");
                let width = function.width_of(result);
                if access.lo == 0 && width == self.width(access.variable) {
                    self.replacements.insert(result, value);
                } else {
                    this.op = Op::Extract { value, lo: access.lo, width };
                    insts.push(this);
                }
            } else {
                let value = self.store(function, &mut insts, &this, &access, current);
                current[access.variable] = Some(value);
            }
        }
        function.blocks[block].insts = insts;
    }
}
