// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Explicit loop bounds. The bound counts how often control enters the loop body from the header. A
//! pass that has to split the header would change the count, so it first turns the bound into a
//! counter and a branch to a trap.

use crate::analysis::{Dominators, Loops};
use crate::{
    BinaryOp, Bits, BlockId, CompareOp, Function, Inst, Loc, Op, Target, Term, TrapCode, Type,
};

/// Width of the counter: every bound fits.
const COUNTER_BITS: u32 = 64;

/// Makes `header` count its iterations and trap at its bound. The remaining bound is one more, and
/// so never reached. Does nothing if there is no bound or no loop. Returns false if it is
/// impossible: a header that ends with a suspension would trap before it.
pub(super) fn make_explicit(function: &mut Function, header: BlockId) -> bool {
    let Some(info) = function.block(header).loop_info else { return true };
    let loops = Loops::of(function, &Dominators::of(function));
    let found = loops.loops.iter().find(|each| each.header == header.index());
    let Some(found) = found else { return info.bound > 0 };
    if matches!(function.block(header).term, Term::Suspend { .. }) || header == Function::ENTRY {
        return false;
    }
    let loc = function.block(header).term_loc;
    let counter = function.add_value(Type::Bits(COUNTER_BITS), None);
    let [one, next] = [0; 2].map(|_| function.add_value(Type::Bits(COUNTER_BITS), None));
    let count = [
        number(one, 1, loc),
        Inst { result: Some(next), op: Op::Binary(BinaryOp::Add, counter, one), loc },
    ];
    let block = function.block_mut(header);
    block.params.push(counter);
    block.insts.splice(0..0, count);
    block.loop_info = Some(crate::LoopInfo { bound: info.bound.saturating_add(1), ..info });
    for node in 0..function.blocks.len() {
        let goes_here = |target: &&Target| target.block == header;
        if function.blocks[node].term.targets().iter().any(goes_here) {
            let arg = match found.body.binary_search(&node) {
                Ok(_) => next,
                Err(_) => {
                    let zero = function.add_value(Type::Bits(COUNTER_BITS), None);
                    function.blocks[node].insts.push(number(zero, 0, loc));
                    zero
                }
            };
            for target in function.blocks[node].term.targets_mut() {
                if target.block == header {
                    target.args.push(arg);
                }
            }
        }
    }
    check_edges(function, header, &found.body, (counter, info.bound));
    true
}

/// Inserts a check on every edge from `header` into `body`.
fn check_edges(
    function: &mut Function,
    header: BlockId,
    body: &[usize],
    (counter, bound): (crate::ValueId, u64),
) {
    let loc = function.block(header).term_loc;
    let trap = function.add_block(Term::Trap(TrapCode::LoopBound));
    let mut term = function.block(header).term.clone();
    for target in term.targets_mut() {
        if body.binary_search(&target.block.index()).is_err() {
            continue;
        }
        let limit = function.add_value(Type::Bits(COUNTER_BITS), None);
        let is_over = function.add_value(Type::Bits(1), None);
        let check = function.add_block(Term::Branch {
            cond: is_over,
            if_true: Target::to(trap),
            if_false: target.clone(),
        });
        let compare = Op::Compare(CompareOp::ULe, limit, counter);
        function.block_mut(check).insts =
            vec![number(limit, bound, loc), Inst { result: Some(is_over), op: compare, loc }];
        *target = Target::to(check);
    }
    function.block_mut(header).term = term;
}

fn number(result: crate::ValueId, value: u64, loc: Loc) -> Inst {
    Inst { result: Some(result), op: Op::Const(Bits::from_u64(COUNTER_BITS, value)), loc }
}
