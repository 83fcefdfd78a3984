// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The caller's side of a slow path: a request, a suspension, a response.

use super::{Link, Plan, slow_callee};
use crate::passes::inlining::divide;
use crate::passes::loop_bound::make_explicit;
use crate::{
    Bits, BlockId, Function, FunctionId, Inst, Loc, Op, Program, Target, Term, Type, ValueId,
};

/// Adapts the functions of the element to its new ports, and rewrites the calls of its handler.
pub(super) fn rewrite(program: &mut Program, plan: &Plan, link: Link) {
    let ports = link.response.0;
    for function in &mut program.functions {
        if function.owner == Some(plan.element) {
            widen_ready_masks(function, ports);
        }
    }
    let handler = program.element(plan.element).handler;
    let handler = &mut program.functions[handler.index()];
    widen_masks(handler, ports);
    let mut node = 0;
    while node < handler.blocks.len() {
        match find_call(handler, node, plan.callee) {
            None => node += 1,
            Some(_) => {
                // This may insert instructions before the call.
                make_explicit(handler, BlockId::new(node));
                let at = find_call(handler, node, plan.callee);
                replace_call(handler, node, at.expect("the call is still there"), plan, link);
            }
        }
    }
}

fn find_call(function: &Function, node: usize, callee: FunctionId) -> Option<usize> {
    function.blocks[node].insts.iter().position(|inst| slow_callee(&inst.op) == Some(callee))
}

/// Narrows results of the ready mask, which has one more bit now, for the existing code.
fn widen_ready_masks(function: &mut Function, ports: u32) {
    for node in 0..function.blocks.len() {
        for inst in std::mem::take(&mut function.blocks[node].insts) {
            let mut insts = vec![inst];
            if insts[0].op == Op::ReadyMask {
                let wide = function.add_value(Type::Bits(ports + 1), None);
                let (result, loc) = (insts[0].result, insts[0].loc);
                let op = Op::Extract { value: wide, lo: 0, width: ports };
                insts[0].result = Some(wide);
                insts.push(Inst { result, op, loc });
            }
            function.blocks[node].insts.extend(insts);
        }
    }
}

/// Extends masks at the ends of firings: they wait for the same ports, and not for the response.
fn widen_masks(function: &mut Function, ports: u32) {
    for node in 0..function.blocks.len() {
        let old = match function.blocks[node].term {
            Term::Done { mask } | Term::Suspend { mask, .. } => mask,
            _ => continue,
        };
        let op = match old {
            Some(mask) => Op::ZeroExtend(mask, ports + 1),
            None => Op::Const(Bits::ones(ports).resize(ports + 1)),
        };
        let loc = function.blocks[node].term_loc;
        let wide = append(function, node, op, ports + 1, loc);
        if let Term::Done { mask } | Term::Suspend { mask, .. } = &mut function.blocks[node].term {
            *mask = Some(wide);
        }
    }
}

fn replace_call(function: &mut Function, node: usize, at: usize, plan: &Plan, link: Link) {
    let (call, rest) = divide(function, node, at);
    let Op::Call { args, .. } = call.op else { unreachable!("a call was found here") };
    let loc = call.loc;
    let request = match args[..] {
        [] => append(function, node, Op::Const(Bits::zero(1)), 1, loc),
        _ => append(function, node, Op::Concat(args), plan.request_bits(), loc),
    };
    let put = Op::Put { port: link.request, value: request };
    function.blocks[node].insts.push(Inst { result: None, op: put, loc });
    let mask_bits = link.response.0 + 1;
    let only = Bits::zero(mask_bits).insert(link.response.0, &Bits::from_bool(true));
    let mask = Some(append(function, node, Op::Const(only), mask_bits, loc));
    let resumed = function.add_block(Term::Jump(Target::to(rest)));
    function.blocks[node].term = Term::Suspend { mask, resume: Target::to(resumed) };

    let resumed = resumed.index();
    function.blocks[resumed].term_loc = loc;
    let response = append(function, resumed, Op::Take(link.response), plan.response_bits(), loc);
    if let Some(code) = plan.trap {
        let top = Op::Extract { value: response, lo: plan.response_bits() - 1, width: 1 };
        let trapped = append(function, resumed, top, 1, loc);
        let trap = function.add_block(Term::Trap(code));
        function.blocks[resumed].term =
            Term::Branch { cond: trapped, if_true: Target::to(trap), if_false: Target::to(rest) };
    }
    if let (Some(result), Some(width)) = (call.result, plan.result) {
        let op = Op::Extract { value: response, lo: 0, width };
        let inst = Inst { result: Some(result), op, loc };
        function.block_mut(rest).insts.insert(0, inst);
    }
}

fn append(function: &mut Function, node: usize, op: Op, width: u32, loc: Loc) -> ValueId {
    let result = function.add_value(Type::Bits(width), None);
    function.blocks[node].insts.push(Inst { result: Some(result), op, loc });
    result
}
