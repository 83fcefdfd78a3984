// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operators without effects of their own: arithmetic, comparison, logic, and `?:`.

use super::Lowered;
use super::assigned;
use super::body::Body;
use super::constants::{Constant, Operand as Side, Operation, plan};
use super::expressions::Operand;
use super::places::{Base, Place};
use super::values::Value;
use crate::ast::{BinaryOperator, Expr, UnaryOperator};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{Type, conversions};
use freeport_ir::{BinaryOp, Op, Type as IrType, UnaryOp, ValueId};

impl<'a> Body<'_, 'a> {
    pub(super) fn binary(
        &mut self,
        op: BinaryOperator,
        left: &'a Expr,
        right: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        if matches!(op, BinaryOperator::And | BinaryOperator::Or) {
            return self.logic(op == BinaryOperator::And, left, right, span);
        }
        let first = self.decayed(left)?;
        if let Operand::Pointer(place) = first {
            let compares = matches!(op, BinaryOperator::Eq | BinaryOperator::Ne);
            if let (Base::TableValue(found), true) = (place.base, compares) {
                let is_equal = op == BinaryOperator::Eq;
                return self.compared_with_nothing(found, is_equal, right, span);
            }
            return self.pointer_sum(op, &place, right, span);
        }
        let first = self.value_of(first, left.span)?;
        if op == BinaryOperator::Add && first.ty.is_integer() {
            // A constant may precede the pointer: `1 + p`.
            let second = self.decayed(right)?;
            if let Operand::Pointer(place) = second {
                return Ok(Operand::Pointer(self.advanced(&place, &first, span)?));
            }
            let second = self.value_of(second, right.span)?;
            self.check_number(&second, right.span)?;
            self.at(span);
            return Ok(Operand::Value(self.binary_value(op, &first, &second)));
        }
        let second = self.value(right)?;
        self.check_number(&first, left.span)?;
        self.check_number(&second, right.span)?;
        self.warn_of_operator(op, &first, &second, right, span);
        self.at(span);
        Ok(Operand::Value(self.binary_value(op, &first, &second)))
    }

    pub(super) fn pointer_sum(
        &mut self,
        op: BinaryOperator,
        place: &Place,
        by: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        let by = self.number(by)?;
        let by = match op {
            BinaryOperator::Add => by,
            BinaryOperator::Sub => {
                let long = self.converted(&by, &Type::Int(crate::types::LONG));
                self.unary_value(UnaryOperator::Minus, &long)
            }
            _ => {
                return Err(self.report(
                    Diagnostic::error("E0207", span, "this operator does not work on pointers")
                        .label("only `+` and `-` with a number do")
                        .help("compare or compute with indexes instead"),
                ));
            }
        };
        Ok(Operand::Pointer(self.advanced(place, &by, span)?))
    }

    /// Returns the result of a binary operator on numbers.
    pub(super) fn binary_value(
        &mut self,
        op: BinaryOperator,
        left: &Value,
        right: &Value,
    ) -> Value {
        if let (Some(a), Some(b)) = (left.as_constant(), right.as_constant())
            && left.bit_field.is_none()
            && right.bit_field.is_none()
            && let Some(result) = Constant::binary(op, &a, &b)
        {
            return Value::known(result);
        }
        let (a, b) = (side(left), side(right));
        let (operation, int) = plan(op, a, b);
        let ty = Type::Int(int);
        match operation {
            Operation::Arithmetic(op) => {
                let (a, b) = self.both(left, right, &ty);
                Value::computed(ty, self.builder.binary(op, a, b))
            }
            Operation::Compare(op, is_swapped) => {
                let (a, b) = self.both(left, right, &ty);
                let (a, b) = if is_swapped { (b, a) } else { (a, b) };
                Value::flag(self.builder.compare(op, a, b))
            }
            Operation::Shift(op) => {
                let left = self.converted(left, &ty);
                let count = self.converted(right, &Type::Int(b.promoted()));
                Value::computed(ty, self.shift(op, &left, &count))
            }
        }
    }

    fn both(&mut self, left: &Value, right: &Value, ty: &Type) -> (ValueId, ValueId) {
        let (left, right) = (self.converted(left, ty), self.converted(right, ty));
        (self.materialise(&left), self.materialise(&right))
    }

    /// Lowers a shift; the count may be wider than the value, and must not lose its high bits.
    fn shift(&mut self, op: BinaryOp, value: &Value, count: &Value) -> ValueId {
        let width = value.width();
        if let Some(constant) = count.as_constant() {
            let by = constant.bits.saturating_u64().min(u64::from(width));
            return self.shift_by(op, value, by);
        }
        let wide = width.max(count.width());
        let id = self.materialise(value);
        let id = self.builder.resize(id, wide, op == BinaryOp::AShr);
        let by = self.materialise(count);
        let by = self.builder.resize(by, wide, false);
        let shifted = self.builder.binary(op, id, by);
        self.builder.resize(shifted, width, false)
    }

    fn shift_by(&mut self, op: BinaryOp, value: &Value, by: u64) -> ValueId {
        let width = value.width();
        let id = self.materialise(value);
        let bits_of_width = 32 - width.leading_zeros();
        if bits_of_width > width {
            // The width itself is too large a count for such a narrow value.
            let wide = self.builder.resize(id, 8, op == BinaryOp::AShr);
            let count = self.builder.number(8, by);
            let shifted = self.builder.binary(op, wide, count);
            return self.builder.resize(shifted, width, false);
        }
        let count = self.builder.number(width, by);
        self.builder.binary(op, id, count)
    }

    /// Returns the result of `-`, `+`, `~` or `!`.
    pub(super) fn unary_value(&mut self, op: UnaryOperator, value: &Value) -> Value {
        if let Some(constant) = value.as_constant()
            && value.bit_field.is_none()
            && let Some(result) = constant.unary(op)
        {
            return Value::known(result);
        }
        if op == UnaryOperator::Not {
            let truth = self.truth(value);
            return Value::flag(self.builder.unary(UnaryOp::Not, truth));
        }
        let ty = Type::Int(side(value).promoted());
        let value = self.converted(value, &ty);
        let id = self.materialise(&value);
        let id = match op {
            UnaryOperator::Minus => self.builder.unary(UnaryOp::Neg, id),
            UnaryOperator::BitNot => self.builder.unary(UnaryOp::Not, id),
            _ => id,
        };
        Value::computed(ty, id)
    }

    /// Lowers `&&` and `||`: the second operand is evaluated only if it decides.
    fn logic(
        &mut self,
        is_and: bool,
        left: &'a Expr,
        right: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        let first = self.condition(left)?;
        if let Some(constant) = first.as_constant() {
            if constant.truth() != is_and {
                return Ok(Operand::Value(Value::known(Constant::flag(!is_and))));
            }
            let second = self.condition(right)?;
            if let Some(constant) = second.as_constant() {
                let result = Constant::flag(constant.truth());
                return Ok(Operand::Value(Value::known(result)));
            }
            return Ok(Operand::Value(Value::flag(self.truth(&second))));
        }
        self.at(span);
        let first = self.truth(&first);
        if self.is_harmless(right) {
            let second = self.condition(right)?;
            let second = self.truth(&second);
            self.at(span);
            let op = if is_and { BinaryOp::And } else { BinaryOp::Or };
            return Ok(Operand::Value(Value::flag(self.builder.binary(op, first, second))));
        }
        let result = self.new_temporary(&Type::Bool, span);
        self.store(&result, &Value::computed(Type::Bool, first), span)?;
        let (more, exit) = (self.builder.new_block(), self.builder.new_block());
        let (if_true, if_false) = if is_and { (more, exit) } else { (exit, more) };
        self.builder.branch(first, if_true, if_false);
        self.builder.switch_to(more);
        let second = self.condition(right)?;
        let second = Value::computed(Type::Bool, self.truth(&second));
        self.store(&result, &second, span)?;
        self.builder.jump(exit);
        self.builder.switch_to(exit);
        let result = self.load(&result, span)?;
        Ok(Operand::Value(Value::flag(self.materialise(&result))))
    }

    /// Returns a value that is never computed and is needed only for its type; `None` if it has
    /// none. The side of a template that its arguments exclude may be invalid. Expressions with
    /// calls are not evaluated, because they may instantiate templates recursively.
    fn value_aside(&mut self, expr: &'a Expr) -> Option<Value> {
        if !assigned::of_expr(expr).called.is_empty() {
            return None;
        }
        let here = self.builder.block();
        let aside = self.builder.new_block();
        self.builder.switch_to(aside);
        let value = self.quietly(|body| body.value(expr));
        self.builder.switch_to(here);
        value
    }

    pub(super) fn conditional(
        &mut self,
        cond: &'a Expr,
        yes: &'a Expr,
        no: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        let cond = self.condition(cond)?;
        if let Some(constant) = cond.as_constant() {
            let (taken, other) = if constant.truth() { (yes, no) } else { (no, yes) };
            let value = self.value(taken)?;
            return Ok(Operand::Value(match self.value_aside(other) {
                Some(other) => {
                    let common = self.common_type(&value, &other, span)?;
                    self.converted(&value, &common)
                }
                None => value,
            }));
        }
        let cond = self.truth(&cond);
        if self.is_harmless(yes) && self.is_harmless(no) {
            let (yes, no) = (self.value(yes)?, self.value(no)?);
            let ty = self.common_type(&yes, &no, span)?;
            self.at(span);
            let (if_true, if_false) = self.both(&yes, &no, &ty);
            let op = Op::Select { cond, if_true, if_false };
            let id = self.builder.push(op, IrType::Bits(ty.value_bits() as u32));
            return Ok(Operand::Value(Value::computed(ty, id)));
        }
        let blocks = [(); 3].map(|()| self.builder.new_block());
        let [on_true, on_false, exit] = blocks;
        self.builder.branch(cond, on_true, on_false);
        let (first, first_end) = self.arm(yes, on_true)?;
        let (second, second_end) = self.arm(no, on_false)?;
        let (Some(first), Some(second)) = (first, second) else {
            for end in [first_end, second_end] {
                self.builder.switch_to(end);
                self.builder.jump(exit);
            }
            self.builder.switch_to(exit);
            return Ok(Operand::Void);
        };
        let ty = self.common_type(&first, &second, span)?;
        let result = self.new_temporary(&ty, span);
        for (value, end) in [(first, first_end), (second, second_end)] {
            self.builder.switch_to(end);
            let value = self.converted(&value, &ty);
            self.store(&result, &value, span)?;
            self.builder.jump(exit);
        }
        self.builder.switch_to(exit);
        Ok(Operand::Value(self.load(&result, span)?))
    }

    /// Lowers one side of `?:` in its block: returns its value, if it has one, and its last block.
    fn arm(
        &mut self,
        expr: &'a Expr,
        block: freeport_ir::BlockId,
    ) -> Lowered<(Option<Value>, freeport_ir::BlockId)> {
        self.builder.switch_to(block);
        let value = match self.operand(expr)? {
            Operand::Void => None,
            other => Some(self.value_of(other, expr.span)?),
        };
        Ok((value, self.builder.block()))
    }

    fn common_type(&mut self, yes: &Value, no: &Value, span: Span) -> Lowered<Type> {
        if yes.ty.is_integer() && no.ty.is_integer() {
            let (yes, no) = (side(yes).promoted(), side(no).promoted());
            return Ok(Type::Int(conversions::usual(yes, no)));
        }
        if let Type::Packet(_) = yes.ty {
            return Err(self.report(
                Diagnostic::error("E0206", span, "`?:` does not choose between packets")
                    .label("of type `packet`")
                    .help("use `if`, and put the packet on each side"),
            ));
        }
        if yes.ty == no.ty {
            return Ok(yes.ty.clone());
        }
        let message = format!("the sides of `?:` are of type `{}` and `{}`", yes.ty, no.ty);
        Err(self.report(
            Diagnostic::error("E0206", span, message)
                .label("both must be numbers, or of one type")
                .help("use `if` with an assignment on each side"),
        ))
    }
}

fn side(value: &Value) -> Side {
    let ty = value.ty.as_integer().unwrap_or(crate::types::INT);
    Side { ty, bit_field: value.bit_field }
}
