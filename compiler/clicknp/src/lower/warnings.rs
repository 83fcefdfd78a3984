// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Warnings that need types, constants or the blocks of a function; see [`crate::lints`].

use super::body::{Body, Returns, Role};
use super::names::Binding;
use super::values::Value;
use crate::ast::{BinaryOperator, Expr, ExprKind, Loop, Statement, StatementKind};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::Type;
use freeport_ir::analysis::TURN_LIMIT;
use freeport_ir::{BlockId, Op, Term};

/// Possible warnings of a body, valid only if control reaches the code.
#[derive(Default)]
pub struct Doubts {
    /// Blocks that reach the end of a function with a result: its name and location.
    endings: Vec<(BlockId, String, Span)>,
    /// Blocks that end a firing without waiting for any port.
    waits: Vec<(BlockId, Span)>,
}

impl<'a> Body<'_, 'a> {
    /// Warns about an operator whose right operand is a number that makes it meaningless.
    pub(super) fn warn_of_operator(
        &mut self,
        op: BinaryOperator,
        left: &Value,
        right: &Value,
        written: &Expr,
        span: Span,
    ) {
        let (Some(count), Some(int)) = (right.as_constant(), left.ty.as_integer()) else { return };
        if !self.is_written(written) {
            return;
        }
        match op {
            BinaryOperator::Div | BinaryOperator::Rem if !count.truth() => {
                let (what, label) = match op {
                    BinaryOperator::Div => ("a division by 0", "this is 0"),
                    _ => ("the remainder of a division by 0", "this is the left side"),
                };
                self.report(
                    Diagnostic::warning("W0613", span, what)
                        .label(label)
                        .help("divide by another number"),
                );
            }
            BinaryOperator::Shl | BinaryOperator::Shr => {
                let side = super::constants::Operand { ty: int, bit_field: left.bit_field };
                let int = side.promoted();
                let by = count.bits.saturating_u64();
                if by < u64::from(int.width) {
                    return;
                }
                let message = format!("a shift by {by} of a number of {} bits", int.width);
                let label = match op == BinaryOperator::Shr && int.is_signed {
                    true => "only the sign is left",
                    false => "this is 0",
                };
                self.report(
                    Diagnostic::warning("W0612", span, message)
                        .label(label)
                        .help("make the left side wide enough first, such as `(ulong)1 << 33`"),
                );
            }
            _ => {}
        }
    }

    /// Warns about the operators of an evaluated constant.
    pub(super) fn warn_of_constant(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Binary(op, left, right) => {
                self.warn_of_constant(left);
                self.warn_of_constant(right);
                let sides = (self.try_constant(left), self.try_constant(right));
                if let (Some(left), Some(value)) = sides {
                    let (left, value) = (Value::known(left), Value::known(value));
                    self.warn_of_operator(*op, &left, &value, right, expr.span);
                }
            }
            ExprKind::Unary(_, of) | ExprKind::Cast(_, of) => self.warn_of_constant(of),
            _ => {}
        }
    }

    /// Returns whether a number is literal in the text, not a template parameter or an iterator.
    fn is_written(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Number(..) => true,
            ExprKind::Unary(_, of) | ExprKind::Cast(_, of) => self.is_written(of),
            ExprKind::Binary(_, left, right) => self.is_written(left) && self.is_written(right),
            ExprKind::Name(name, _) => {
                let is_local = self.scopes.iter().any(|scope| scope.contains_key(name));
                !is_local && matches!(self.lowering.global(name), Some(Binding::Constant(_)))
            }
            _ => false,
        }
    }

    /// Warns about a loop whose counter never makes the condition false, unless it is left
    /// otherwise.
    pub(super) fn warn_of_endless(&mut self, one: &Loop) {
        if leaves(&one.body) {
            return;
        }
        let Some(cond) = &one.cond else { return };
        self.report(
            Diagnostic::warning("W0606", cond.span, "this loop never ends")
                .label("true for every value that the counter takes")
                .help("use a wider type for the counter, or an `int` to count down to 0"),
        );
    }

    /// Warns about a loop with too many iterations; returns its iterations multiplied by those of
    /// the enclosing loops, if all are certain to run.
    pub(super) fn warn_of_rounds(&mut self, one: &Loop, rounds: Option<u64>) -> u64 {
        let around = self.rounds_around;
        let Some(rounds) = rounds.filter(|_| !leaves(&one.body)) else { return 1 };
        let all = around.saturating_mul(rounds);
        if all > TURN_LIMIT && around <= TURN_LIMIT {
            let message = format!("these loops iterate {all} times in a firing");
            self.report(
                Diagnostic::warning("W0615", one.span, message)
                    .label(format!("the watchdog ends a firing after {TURN_LIMIT}"))
                    .help("spread the work over several firings, with the counters in `.state`"),
            );
        }
        all
    }

    /// Lowers code that may not run in every iteration of the enclosing loops.
    pub(super) fn perhaps<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.rounds_around, 1);
        let result = lower(self);
        self.rounds_around = around;
        result
    }

    /// Records that this block, if reachable, reaches the end of a function with a result.
    pub(super) fn doubt_ending(&mut self, name: &str, ty: &Type, span: Span) {
        if *ty != Type::Void && !self.builder.is_ended() {
            let block = self.builder.block();
            self.doubts.endings.push((block, name.to_string(), span));
        }
    }

    /// Records that a firing ends here without waiting for any port.
    pub(super) fn doubt_mask(&mut self, value: &Value, span: Span) {
        let is_zero = value.as_constant().is_some_and(|constant| !constant.truth());
        if is_zero && !self.builder.is_ended() {
            self.doubts.waits.push((self.builder.block(), span));
        }
    }

    /// Reports the recorded warnings whose code is reachable.
    pub(super) fn settle_doubts(&mut self) {
        let doubts = std::mem::take(&mut self.doubts);
        if doubts.endings.is_empty() && doubts.waits.is_empty() {
            return;
        }
        let is_reached = self.reached();
        for (block, name, span) in doubts.endings {
            if is_reached[block.index()] {
                let message = format!("the end of `{name}` is reached without a `return`");
                self.report(
                    Diagnostic::warning("W0610", span, message)
                        .label("its value is 0 then")
                        .help("end it with `return value;`, or make it `void`"),
                );
            }
        }
        let is_handler = self.role == Role::Handler;
        if !is_handler || !matches!(self.returns, Returns::Mask(inputs) if inputs > 0) {
            return;
        }
        let blocks = self.builder.function().blocks.iter().enumerate();
        let mut ends = blocks.filter(|(at, block)| {
            is_reached[*at] && matches!(block.term, Term::Done { .. } | Term::Suspend { .. })
        });
        let waits = |at: usize| doubts.waits.iter().find(|(block, _)| block.index() == at);
        let is_always = ends.all(|(at, _)| waits(at).is_some());
        let reached = doubts.waits.iter().rev().find(|(block, _)| is_reached[block.index()]);
        if let (true, Some((_, span))) = (is_always, reached) {
            self.report(
                Diagnostic::warning("W0604", *span, "this handler waits for no port")
                    .label("the input ports that the next firing waits for: none")
                    .help("remove the `return`, or write `return;`, to wait for all of them"),
            );
        }
    }

    /// Returns, by block, whether control can reach it. Untaken sides of constant conditions are
    /// excluded.
    fn reached(&self) -> Vec<bool> {
        let function = self.builder.function();
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        let mut known = std::collections::HashMap::new();
        for inst in insts {
            if let (Some(result), Op::Const(bits)) = (inst.result, &inst.op) {
                known.insert(result, !bits.is_zero());
            }
        }
        let mut is_reached = vec![false; function.blocks.len()];
        let mut waiting = vec![freeport_ir::Function::ENTRY];
        while let Some(block) = waiting.pop() {
            if std::mem::replace(&mut is_reached[block.index()], true) {
                continue;
            }
            match &function.blocks[block.index()].term {
                Term::Branch { cond, if_true, if_false } => match known.get(cond) {
                    Some(true) => waiting.push(if_true.block),
                    Some(false) => waiting.push(if_false.block),
                    None => waiting.extend([if_true.block, if_false.block]),
                },
                term => waiting.extend(term.targets().into_iter().map(|target| target.block)),
            }
        }
        is_reached
    }
}

/// Returns whether a statement may leave the loop whose body it is, or end an iteration early.
fn leaves(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Break | StatementKind::Continue | StatementKind::Return(_) => true,
        StatementKind::Block(block) | StatementKind::Async(block) => {
            block.statements.iter().any(leaves)
        }
        StatementKind::If(_, then, otherwise) => {
            leaves(then) || otherwise.as_ref().is_some_and(|it| leaves(it))
        }
        StatementKind::Loop(one) => leaves(&one.body),
        StatementKind::Switch(_, arms) => arms.iter().flat_map(|arm| &arm.statements).any(leaves),
        _ => false,
    }
}
