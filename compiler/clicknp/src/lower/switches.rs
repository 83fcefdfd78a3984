// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `switch`, with arms that fall through.

use super::Lowered;
use super::body::{Body, Control};
use super::values::Value;
use crate::ast::{Expr, SwitchArm};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::Type;
use freeport_ir::{Bits, BlockId, Target, Term};

impl<'a> Body<'_, 'a> {
    pub(super) fn switch(
        &mut self,
        value: &'a Expr,
        arms: &'a [SwitchArm],
        span: Span,
    ) -> Lowered<()> {
        let value = self.number(value)?;
        let promoted = super::constants::Operand {
            ty: value.ty.as_integer().unwrap_or(crate::types::INT),
            bit_field: value.bit_field,
        };
        let ty = Type::Int(promoted.promoted());
        let value = self.converted(&value, &ty);
        let exit = self.builder.new_block();
        let blocks: Vec<BlockId> = arms.iter().map(|_| self.builder.new_block()).collect();
        let (cases, default) = self.labels(arms, &blocks, &ty);
        let default = default.unwrap_or(exit);
        self.at(span);
        self.enter(&value, cases, default);
        let next = self.control.iter().rev().find_map(|control| control.next);
        self.control.push(Control { exit, next, is_switch: true });
        self.scoped(|body| {
            for (at, arm) in arms.iter().enumerate() {
                body.builder.switch_to(blocks[at]);
                body.perhaps(|body| body.statements(&arm.statements));
                body.leave_arm();
                body.builder.jump(blocks.get(at + 1).copied().unwrap_or(exit));
            }
        });
        self.control.pop();
        self.builder.switch_to(exit);
        Ok(())
    }

    fn enter(&mut self, value: &Value, cases: Vec<(Bits, BlockId)>, default: BlockId) {
        if let Some(constant) = value.as_constant() {
            let taken = cases.iter().find(|(bits, _)| *bits == constant.bits);
            self.builder.jump(taken.map_or(default, |(_, block)| *block));
            return;
        }
        let value = self.materialise(value);
        let cases = cases.into_iter().map(|(bits, block)| (bits, Target::to(block))).collect();
        self.builder.end(Term::Switch { value, cases, default: Target::to(default) });
    }

    /// Returns the target of each label, and of `default`.
    fn labels(
        &mut self,
        arms: &[SwitchArm],
        blocks: &[BlockId],
        ty: &Type,
    ) -> (Vec<(Bits, BlockId)>, Option<BlockId>) {
        let mut cases: Vec<(Bits, BlockId, Span)> = vec![];
        let mut default: Option<(BlockId, Span)> = None;
        for (arm, block) in arms.iter().zip(blocks) {
            for (label, span) in &arm.labels {
                let Some(label) = label else {
                    if let Some((_, before)) = default.replace((*block, *span)) {
                        self.duplicate_label(*span, before);
                    }
                    continue;
                };
                let Ok(constant) = self.constant(label) else { continue };
                let Some(constant) = constant.converted(ty) else { continue };
                let before = cases.iter().find(|(bits, ..)| *bits == constant.bits);
                match before.map(|(.., before)| *before) {
                    Some(before) => self.duplicate_label(*span, before),
                    None => cases.push((constant.bits, *block, *span)),
                }
            }
        }
        let cases = cases.into_iter().map(|(bits, block, _)| (bits, block)).collect();
        (cases, default.map(|(block, _)| block))
    }

    fn duplicate_label(&mut self, span: Span, before: Span) {
        self.report(
            Diagnostic::error("E0305", span, "this label occurs twice")
                .label("a switch has one target for each value")
                .note(before, "the first one")
                .help("remove one of them"),
        );
    }
}
