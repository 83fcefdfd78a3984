// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Register promotion (ClickNP 2.7, 4.3): objects in on-chip memory that can be registers become
//! registers, which are read, computed with and written back in one cycle.
//!
//! A scalar always qualifies. An array qualifies if every access in every function has a constant
//! index and the array is no larger than the threshold. Objects placed by a qualifier (`register`,
//! `local`, `global`) are left alone.

use super::edit::{constants, object_of};
use super::{Changes, Options};
use crate::{Bits, ElementId, Function, Object, ObjectId, ObjectRef, Op, Program, Space, ValueId};

pub(super) fn run(program: &mut Program, options: &Options, changes: &mut Changes) {
    let is_steady: Vec<Steady> = program.functions.iter().map(Steady::of).collect();
    for (at, element) in program.elements.iter_mut().enumerate() {
        let owner = Some(ElementId::new(at));
        for (object, state) in element.state.iter_mut().enumerate() {
            let object = ObjectId::new(object);
            let functions = program.functions.iter().zip(&is_steady);
            let mut owned = functions.filter(|(function, _)| function.owner == owner);
            let is_steady = owned.all(|(_, steady)| !steady.moving_state.contains(&object));
            if can_be_register(state, is_steady, options) {
                state.space = Space::Register;
                changes.count("state objects", 1);
                changes.note(format!("{}: {} is kept in registers", element.name, state.name));
            }
        }
    }
    for (function, steady) in program.functions.iter_mut().zip(&is_steady) {
        for (at, local) in function.locals.iter_mut().enumerate() {
            if can_be_register(local, !steady.moving_locals.contains(&at), options) {
                local.space = Space::Register;
                changes.count("locals", 1);
            }
        }
    }
}

fn can_be_register(object: &Object, is_steady: bool, options: &Options) -> bool {
    let is_small = object.depth == 1 || is_steady && object.depth <= options.promote_limit;
    object.space == Space::Local && !object.is_pinned && is_small
}

/// Objects that a function accesses at an index that is not a constant.
struct Steady {
    moving_state: Vec<ObjectId>,
    moving_locals: Vec<usize>,
}

impl Steady {
    fn of(function: &Function) -> Self {
        let constants = constants(function);
        let mut found = Self { moving_state: vec![], moving_locals: vec![] };
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            if is_at_constant(&inst.op, &constants) {
                continue;
            }
            match object_of(&inst.op) {
                Some(ObjectRef::State(object)) => found.moving_state.push(object),
                Some(ObjectRef::Local(local)) => found.moving_locals.push(local.index()),
                None => {}
            }
        }
        found
    }
}

fn is_at_constant(op: &Op, constants: &[Option<Bits>]) -> bool {
    let is_constant = |value: &ValueId| constants[value.index()].is_some();
    match op {
        Op::Load { index, .. } | Op::Store { index, .. } => is_constant(index),
        Op::LoadBytes { offset, .. } | Op::StoreBytes { offset, .. } => is_constant(offset),
        _ => true,
    }
}
