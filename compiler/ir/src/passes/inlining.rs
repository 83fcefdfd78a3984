// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Inlining: a call is replaced by the blocks of the callee (ClickNP 2.5).
//!
//! Calls with [`Latency::Inline`] are always inlined; others if the back end requests it, as those
//! for the CPU do, for which a slow path is ordinary code. The block of the call is split: the
//! callee's entry follows its first part, and a return becomes a jump to the second. The callee's
//! locals become the caller's; if the call can run more than once in a firing, they are reset
//! first.

use super::edit::copy_blocks;
use super::loop_bound::make_explicit;
use super::{Changes, Options};
use crate::analysis::ControlFlow;
use crate::{
    Addressing, BinaryOp, Bits, Block, BlockId, CompareOp, Function, FunctionId, Inst, Latency,
    Loc, LocalId, LoopInfo, Object, ObjectRef, Op, Program, Target, Term, Type, Unroll, ValueId,
};

/// Maximum elements of a local that are reset one by one; more take a loop.
const MAX_STORES: u64 = 16;

pub(super) fn run(program: &mut Program, options: &Options, changes: &mut Changes) {
    let wanted = |latency: Latency| latency == Latency::Inline || options.inline_every_call;
    let mut state = vec![Visit::Waiting; program.functions.len()];
    for at in 0..program.functions.len() {
        visit(program, FunctionId::new(at), &wanted, &mut state, changes);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Waiting,
    Open,
    Done,
}

/// Inlines into the callees first, so that copied code has no calls left to inline. A call to a
/// function that is being visited is recursion, and stays.
fn visit(
    program: &mut Program,
    id: FunctionId,
    wanted: &impl Fn(Latency) -> bool,
    state: &mut [Visit],
    changes: &mut Changes,
) {
    if state[id.index()] != Visit::Waiting {
        return;
    }
    state[id.index()] = Visit::Open;
    for callee in callees(program.function(id)) {
        visit(program, callee, wanted, state, changes);
    }
    let mut block = 0;
    while block < program.function(id).blocks.len() {
        match find_call(program.function(id), block, wanted, state) {
            None => block += 1,
            Some((at, callee)) => {
                let header = BlockId::new(block);
                let caller = &mut program.functions[id.index()];
                if !make_explicit(caller, header) {
                    changes.note(format!(
                        "{}: a call in the header of a loop that cannot be divided stays",
                        caller.name
                    ));
                    block += 1;
                    continue;
                }
                // The header may have got instructions in front.
                let at =
                    at + find_call(caller, block, wanted, state).map_or(0, |(new, _)| new - at);
                let body = program.function(callee).clone();
                expand(&mut program.functions[id.index()], block, at, &body);
                changes.count("calls inlined", 1);
            }
        }
    }
    state[id.index()] = Visit::Done;
}

fn callees(function: &Function) -> Vec<FunctionId> {
    let insts = function.blocks.iter().flat_map(|block| &block.insts);
    insts
        .filter_map(|inst| match &inst.op {
            Op::Call { function, .. } => Some(*function),
            _ => None,
        })
        .collect()
}

fn find_call(
    function: &Function,
    block: usize,
    wanted: &impl Fn(Latency) -> bool,
    state: &[Visit],
) -> Option<(usize, FunctionId)> {
    let insts = function.blocks[block].insts.iter().enumerate();
    insts
        .filter_map(|(at, inst)| match &inst.op {
            Op::Call { function, latency, .. }
                if wanted(*latency) && state[function.index()] == Visit::Done =>
            {
                Some((at, *function))
            }
            _ => None,
        })
        .next()
}

/// Replaces the call at instruction `at` of `block` by the body of `callee`.
fn expand(caller: &mut Function, block: usize, at: usize, callee: &Function) {
    let runs_again = can_reach_itself(caller, block);
    let (call, second) = divide(caller, block, at);
    let Op::Call { args, .. } = call.op else { unreachable!("the caller found a call here") };
    let first_local = caller.locals.len();
    caller.locals.extend(callee.locals.iter().cloned());
    let blocks: Vec<(BlockId, Block)> =
        callee.blocks.iter().cloned().enumerate().map(|(at, b)| (BlockId::new(at), b)).collect();
    let copied = copy_blocks(caller, &blocks, &callee.values);
    for (id, _) in &blocks {
        let copy = caller.block_mut(copied.block(*id));
        for inst in &mut copy.insts {
            if let Some(ObjectRef::Local(local)) = super::edit::object_of_mut(&mut inst.op) {
                *local = LocalId::new(first_local + local.index());
            }
        }
        if let Term::Return { value } = copy.term {
            let args = value.into_iter().filter(|_| call.result.is_some()).collect();
            copy.term = Term::Jump(Target { block: second, args });
        }
    }
    caller.block_mut(second).params.extend(call.result);
    let mut from = BlockId::new(block);
    if runs_again {
        for (at, local) in callee.locals.iter().enumerate() {
            from = set_back(caller, from, LocalId::new(first_local + at), local, call.loc);
        }
    }
    caller.block_mut(from).term = Term::Jump(Target { block: copied.block(Function::ENTRY), args });
}

/// Splits a block before instruction `at`, which is removed; the second part is a new block. The
/// first part has no terminator yet.
pub(super) fn divide(function: &mut Function, block: usize, at: usize) -> (Inst, BlockId) {
    let second = function.add_block(Term::Return { value: None });
    let first = &mut function.blocks[block];
    let rest = first.insts.split_off(at + 1);
    let this = first.insts.pop().expect("there is an instruction at that position");
    let term = std::mem::replace(&mut first.term, Term::Return { value: None });
    let term_loc = std::mem::replace(&mut first.term_loc, this.loc);
    let target = function.block_mut(second);
    target.insts = rest;
    target.term = term;
    target.term_loc = term_loc;
    (this, second)
}

fn can_reach_itself(function: &Function, block: usize) -> bool {
    let mut is_seen = vec![false; function.blocks.len()];
    let mut left = function.successors(block);
    while let Some(node) = left.pop() {
        if !std::mem::replace(&mut is_seen[node], true) {
            left.extend(function.successors(node));
        }
    }
    is_seen[block]
}

/// Appends stores that reset a local to its initial contents to `block`; returns the block where
/// control continues.
fn set_back(
    function: &mut Function,
    block: BlockId,
    local: LocalId,
    object: &Object,
    loc: Loc,
) -> BlockId {
    let object_ref = ObjectRef::Local(local);
    if object.addressing == Addressing::Element && object.depth <= MAX_STORES {
        for index in 0..object.depth {
            let zero = Bits::zero(object.elem_bits);
            let value = object.init.get(index as usize).cloned().unwrap_or(zero);
            let index = constant(function, block, Bits::from_u64(64, index), loc);
            let value = constant(function, block, value, loc);
            let op = Op::Store { object: object_ref, index, lo: 0, value, mask: None };
            function.block_mut(block).insts.push(Inst { result: None, op, loc });
        }
        return block;
    }
    // header(index): index < depth ? body : after; body: store 0; index + 1
    let index = function.add_value(Type::Bits(64), None);
    let [header, body, after] = [0; 3].map(|_| function.add_block(Term::Return { value: None }));
    let start = constant(function, block, Bits::zero(64), loc);
    function.block_mut(block).term = Term::Jump(Target { block: header, args: vec![start] });
    function.block_mut(header).params.push(index);
    let info = LoopInfo {
        bound: object.depth,
        unroll: Unroll::Flatten,
        independent: true,
        is_watched: false,
    };
    function.block_mut(header).loop_info = Some(info);
    let limit = constant(function, header, Bits::from_u64(64, object.depth), loc);
    let compare = Op::Compare(CompareOp::ULt, index, limit);
    let cond = append(function, header, compare, 1, loc);
    let (if_true, if_false) = (Target::to(body), Target::to(after));
    function.block_mut(header).term = Term::Branch { cond, if_true, if_false };
    let value = constant(function, body, Bits::zero(object.elem_bits), loc);
    let op = match object.addressing {
        Addressing::Element => Op::Store { object: object_ref, index, lo: 0, value, mask: None },
        Addressing::Byte => Op::StoreBytes { object: object_ref, offset: index, value },
    };
    function.block_mut(body).insts.push(Inst { result: None, op, loc });
    let one = constant(function, body, Bits::from_u64(64, 1), loc);
    let next = append(function, body, Op::Binary(BinaryOp::Add, index, one), 64, loc);
    function.block_mut(body).term = Term::Jump(Target { block: header, args: vec![next] });
    store_contents(function, after, object_ref, object, loc);
    after
}

/// Appends stores of the initial contents that are not 0.
fn store_contents(
    function: &mut Function,
    block: BlockId,
    object_ref: ObjectRef,
    object: &Object,
    loc: Loc,
) {
    for (index, bits) in object.init.iter().enumerate().filter(|(_, bits)| !bits.is_zero()) {
        let index = constant(function, block, Bits::from_u64(64, index as u64), loc);
        let value = constant(function, block, bits.clone(), loc);
        let op = match object.addressing {
            Addressing::Element => {
                Op::Store { object: object_ref, index, lo: 0, value, mask: None }
            }
            Addressing::Byte => Op::StoreBytes { object: object_ref, offset: index, value },
        };
        function.block_mut(block).insts.push(Inst { result: None, op, loc });
    }
}

fn constant(function: &mut Function, block: BlockId, bits: Bits, loc: Loc) -> ValueId {
    let width = bits.width();
    append(function, block, Op::Const(bits), width, loc)
}

fn append(function: &mut Function, block: BlockId, op: Op, width: u32, loc: Loc) -> ValueId {
    let result = function.add_value(Type::Bits(width), None);
    function.block_mut(block).insts.push(Inst { result: Some(result), op, loc });
    result
}
