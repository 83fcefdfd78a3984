// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assignments: plain, compound, `++` and `--`, and of pointers.

use super::Lowered;
use super::body::Body;
use super::constants::Constant;
use super::expressions::Operand;
use super::places::Place;
use super::values::Value;
use crate::ast::{BinaryOperator, Expr, ExprKind};
use crate::source::Span;

impl<'a> Body<'_, 'a> {
    pub(super) fn assignment(
        &mut self,
        op: Option<BinaryOperator>,
        target: &'a Expr,
        value: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        if let ExprKind::Name(name, _) = &target.kind
            && let Some(super::names::Binding::Pointer(id)) = self.lookup(name)
        {
            return self.pointer_assignment(id, op, value, span);
        }
        if op.is_none() && self.is_harmless(target) {
            // The value comes first, so that no part of the target is computed while the value may
            // change it.
            let value_span = value.span;
            let value = self.value(value)?;
            let place = self.target(target)?;
            let value = self.convert(&value, &place.ty, value_span)?;
            self.store(&place, &value, span)?;
            return Ok(Operand::Value(stored(&place, value, self)));
        }
        let place = self.target(target)?;
        let value = match op {
            None => self.value(value)?,
            Some(op) => {
                let by = self.value(value)?;
                let before = self.load(&place, target.span)?;
                self.warn_of_operator(op, &before, &by, value, span);
                self.combined(op, &before, &by, span)?
            }
        };
        let value = self.convert(&value, &place.ty, span)?;
        self.store(&place, &value, span)?;
        Ok(Operand::Value(stored(&place, value, self)))
    }

    fn pointer_assignment(
        &mut self,
        id: super::pointers::PointerId,
        op: Option<BinaryOperator>,
        value: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        let place = match op {
            None => match self.decayed(value)? {
                Operand::Pointer(place) => place,
                _ => return Err(self.not_a_pointer(value.span)),
            },
            Some(op) => {
                let place = self.pointee(id, span)?;
                match self.pointer_sum(op, &place, value, span)? {
                    Operand::Pointer(place) => place,
                    _ => return Err(self.not_a_pointer(value.span)),
                }
            }
        };
        self.assign_pointer(id, &place, span)?;
        Ok(Operand::Pointer(self.pointee(id, span)?))
    }

    /// Lowers `++x`, `x++`, `--x` and `x--`.
    pub(super) fn step(
        &mut self,
        increment: bool,
        prefix: bool,
        target: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        let one = Value::known(Constant::of(crate::types::INT, 1));
        if let ExprKind::Name(name, _) = &target.kind
            && let Some(super::names::Binding::Pointer(id)) = self.lookup(name)
        {
            let before = self.pointee(id, span)?;
            let minus_one = Value::known(Constant::of(crate::types::INT, u64::MAX));
            let by = if increment { &one } else { &minus_one };
            let after = self.advanced(&before, by, span)?;
            self.assign_pointer(id, &after, span)?;
            return Ok(Operand::Pointer(if prefix { self.pointee(id, span)? } else { before }));
        }
        let op = if increment { BinaryOperator::Add } else { BinaryOperator::Sub };
        let place = self.target(target)?;
        let before = self.load(&place, span)?;
        let after = self.combined(op, &before, &one, span)?;
        let after = self.convert(&after, &place.ty, span)?;
        self.store(&place, &after, span)?;
        let result = if prefix { stored(&place, after, self) } else { before };
        Ok(Operand::Value(result))
    }
}

/// Returns the value of an assignment: the new contents of the target, truncated if it is a bit
/// field.
fn stored(place: &Place, value: Value, body: &mut Body<'_, '_>) -> Value {
    let Some(width) = place.bit_field else { return value };
    let id = body.materialise(&value);
    let cut = body.builder.resize(id, width, false);
    let id = body.builder.resize(cut, value.width(), value.is_signed());
    Value { bit_field: Some(width), ..Value::computed(value.ty, id) }
}
