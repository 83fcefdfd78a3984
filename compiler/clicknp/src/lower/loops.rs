// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loops. Each has a header block that tests the condition, and a bound (ClickNP 4.8).

use super::Lowered;
use super::body::{Body, Control};
use super::constants::Constant;
use super::places::Place;
use super::values::Value;
use crate::ast::{BinaryOperator, Expr, ExprKind, Loop, LoopKind, Pragma, PragmaKind};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::Type;
use freeport_ir::{BinaryOp, CompareOp, LoopInfo, Probe, Unroll};

/// Requests of the pragmas before a loop.
struct Wishes {
    bound: Option<u64>,
    unroll: Unroll,
    independent: bool,
}

impl<'a> Body<'_, 'a> {
    pub(super) fn repeat(&mut self, one: &'a Loop) -> Lowered<()> {
        let wishes = self.wishes(&one.pragmas)?;
        self.scoped(|body| {
            if let LoopKind::For { init: Some(init), .. } = &one.kind {
                body.statement(init)?;
            }
            let is_never = one.cond.as_ref().and_then(|cond| body.try_constant(cond));
            if is_never.is_some_and(|cond| !cond.truth()) && !matches!(one.kind, LoopKind::DoWhile)
            {
                return Ok(());
            }
            let found = body.bound_of(one);
            if found.is_endless && (wishes.bound.is_some() || found.bound.is_some()) {
                body.warn_of_endless(one);
            }
            let bound = match (wishes.bound, found.bound) {
                (Some(bound), _) => bound,
                (None, Some(bound)) => bound,
                (None, None) => return Err(body.unbounded(one, found.is_endless)),
            };
            let Wishes { unroll, independent, .. } = wishes;
            let info = LoopInfo { bound, unroll, independent, is_watched: false };
            let before = body.iterators.clone();
            if let Some((name, most)) = found.iterator {
                body.iterators.insert(name, most);
            }
            let around = body.rounds_around;
            body.rounds_around = body.warn_of_rounds(one, found.rounds);
            let outcome = body.rounds(one, info);
            body.rounds_around = around;
            body.iterators = before;
            outcome
        })
    }

    fn rounds(&mut self, one: &'a Loop, info: LoopInfo) -> Lowered<()> {
        let [header, inside, next, exit] = [(); 4].map(|()| self.builder.new_block());
        // `do` tests at its end, and a condition of several blocks cannot be in the header, which
        // enters the loop by one edge: a flag carries the result there.
        let is_do = matches!(one.kind, LoopKind::DoWhile);
        let is_branching = one.cond.as_ref().is_some_and(|cond| self.branches(cond));
        let again = (is_do || is_branching).then(|| self.new_temporary(&Type::Bool, one.span));
        if let Some(again) = &again {
            let first = match &one.cond {
                Some(cond) if !is_do => self.condition(cond)?,
                _ => Value::known(Constant::flag(true)),
            };
            let first = self.converted(&first, &Type::Bool);
            self.store(again, &first, one.span)?;
        }
        self.at(one.span);
        self.builder.jump(header);
        self.builder.set_loop(header, info);
        self.builder.switch_to(header);
        let cond = match (&again, &one.cond) {
            (Some(again), _) => Some(self.load(again, one.span)?),
            (None, Some(cond)) => Some(self.condition(cond)?),
            (None, None) => None,
        };
        self.at(one.span);
        let cond = match cond {
            Some(cond) => self.truth(&cond),
            None => self.builder.number(1, 1),
        };
        self.builder.branch(cond, inside, exit);
        self.builder.switch_to(inside);
        self.control.push(Control { exit, next: Some(next), is_switch: false });
        let mut outcome = self.scoped(|body| body.statement(&one.body));
        self.control.pop();
        self.builder.jump(next);
        self.builder.switch_to(next);
        if let LoopKind::For { step: Some(step), .. } = &one.kind {
            outcome = outcome.and(self.operand(step).map(|_| ()));
        }
        if let (Some(again), Some(cond)) = (&again, &one.cond) {
            let cond = self.condition(cond)?;
            let cond = self.converted(&cond, &Type::Bool);
            self.store(again, &cond, one.span)?;
        }
        self.builder.jump(header);
        self.builder.switch_to(exit);
        outcome
    }

    fn wishes(&mut self, pragmas: &'a [Pragma]) -> Lowered<Wishes> {
        let mut wishes = Wishes { bound: None, unroll: Unroll::Auto, independent: false };
        for pragma in pragmas {
            match &pragma.kind {
                PragmaKind::Unroll(None) => wishes.unroll = Unroll::Full,
                PragmaKind::Unroll(Some(factor)) => {
                    wishes.unroll = match self.constant_u64(factor)? {
                        0 | 1 => Unroll::Flatten,
                        by => Unroll::By(u32::try_from(by).unwrap_or(u32::MAX)),
                    };
                }
                PragmaKind::Flatten => wishes.unroll = Unroll::Flatten,
                PragmaKind::Bound(bound) => wishes.bound = Some(self.constant_u64(bound)?),
                PragmaKind::Ivdep => wishes.independent = true,
                PragmaKind::Breakpoint(name) => {
                    self.at(pragma.span);
                    let line = self.builder.loc.line;
                    let name = name.clone().unwrap_or_else(|| format!("line {line}"));
                    self.probe(Probe::Breakpoint(name), vec![]);
                }
            }
        }
        Ok(wishes)
    }

    fn unbounded(&mut self, one: &Loop, is_endless: bool) -> super::Reported {
        let usual = "write `#pragma bound N` before it, or count with `for` to a constant";
        let (label, help) = match one.kind {
            _ if is_endless => (
                "the condition is true for every value that the counter takes",
                "use a wider type for the counter, or an `int` to count down to 0",
            ),
            LoopKind::For { .. } => {
                ("the number of iterations cannot be derived from the program", usual)
            }
            _ => ("this kind of loop has a bound only by a pragma", usual),
        };
        let error = Diagnostic::error("E0301", one.span, "a loop without a bound");
        self.report(error.label(label).help(help))
    }

    /// Sets elements `from..to` of an array to 0 in a loop.
    pub(super) fn clear_by_loop(
        &mut self,
        array: &Place,
        item: &Type,
        from: u64,
        to: u64,
        span: Span,
    ) -> Lowered<()> {
        self.at(span);
        let at = self.new_temporary(&Type::uint(64), span);
        let start = self.offset(from);
        self.store(&at, &Value::computed(at.ty.clone(), start), span)?;
        let [header, inside, exit] = [(); 3].map(|()| self.builder.new_block());
        self.builder.jump(header);
        let bound = to - from;
        let info = LoopInfo { bound, unroll: Unroll::Auto, independent: true, is_watched: false };
        self.builder.set_loop(header, info);
        self.builder.switch_to(header);
        let now = self.load(&at, span)?;
        let id = self.materialise(&now);
        let end = self.offset(to);
        let more = self.builder.compare(CompareOp::ULt, id, end);
        self.builder.branch(more, inside, exit);
        self.builder.switch_to(inside);
        let element = self.advanced(&array.part(0, item), &now, span)?;
        let zero = self.zero(item);
        self.store(&element, &zero, span)?;
        let one = self.offset(1);
        let next = self.builder.binary(BinaryOp::Add, id, one);
        self.store(&at, &Value::computed(at.ty.clone(), next), span)?;
        self.builder.jump(header);
        self.builder.switch_to(exit);
        Ok(())
    }

    /// Returns whether evaluating a condition takes more than one block.
    fn branches(&mut self, cond: &Expr) -> bool {
        match &cond.kind {
            _ if self.is_harmless(cond) => false,
            ExprKind::Binary(BinaryOperator::And | BinaryOperator::Or, ..) => true,
            ExprKind::Conditional(..) | ExprKind::Call(..) | ExprKind::MethodCall(..) => true,
            ExprKind::Binary(_, left, right) | ExprKind::Comma(left, right) => {
                self.branches(left) || self.branches(right)
            }
            ExprKind::Assign(_, left, right) | ExprKind::Index(left, right) => {
                self.branches(left) || self.branches(right)
            }
            ExprKind::Unary(_, of) | ExprKind::Cast(_, of) | ExprKind::Slice(of, ..) => {
                self.branches(of)
            }
            ExprKind::Member { of, .. } => self.branches(of),
            _ => false,
        }
    }
}
