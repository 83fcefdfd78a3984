// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Subscripts: elements of arrays, bits and slices of numbers.

use super::body::Body;
use super::constants::Constant;
use super::expressions::Operand;
use super::places::Place;
use super::values::{Data, Value};
use super::{Lowered, Reported};
use crate::ast::Expr;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{IntType, Type};
use freeport_ir::{Bits, Op, Type as IrType};

impl<'a> Body<'_, 'a> {
    /// Lowers `of[at]`: an element of an array, the target of a pointer plus an offset, a port's
    /// bit, or a bit.
    pub(super) fn index(&mut self, of: &'a Expr, at: &'a Expr, span: Span) -> Lowered<Operand> {
        if let Some(bits) = self.indexed_port_bits(of, at, span)? {
            return Ok(bits);
        }
        let operand = self.operand(of)?;
        let first = match &operand {
            Operand::Pointer(place) => Some(place.clone()),
            Operand::Place(place) => place.decayed(),
            _ => None,
        };
        let Some(first) = first else { return self.bit(operand, at, span) };
        let at_value = self.number(at)?;
        if let (Operand::Place(Place { ty: Type::Array(_, count), .. }), Some(constant)) =
            (&operand, at_value.as_constant())
            && constant.as_u64().is_none_or(|at| at >= *count)
        {
            let message = format!("this index is outside an array of {count}");
            return Err(self.report(
                Diagnostic::error("E0214", at.span, message)
                    .label(format!("indexes go from 0 to {}", count - 1))
                    .help("use an index inside it"),
            ));
        }
        Ok(Operand::Place(self.advanced(&first, &at_value, span)?))
    }

    /// Lowers a bit of a number.
    fn bit(&mut self, operand: Operand, at: &'a Expr, span: Span) -> Lowered<Operand> {
        let width = match &operand {
            Operand::Place(place) if place.ty.is_integer() => place.width(),
            Operand::Value(value) if value.ty.is_integer() => value.ty.value_bits(),
            _ => return Err(self.not_a_pointer(span)),
        };
        let at_value = self.number(at)?;
        if let Some(constant) = at_value.as_constant() {
            let bit = constant.as_u64().unwrap_or(u64::MAX);
            return self.bits_of(operand, bit, bit, width, &Type::Bool, span);
        }
        match operand {
            Operand::Place(place) if place.dynamic_bit.is_none() => {
                let id = self.materialise(&at_value);
                let id = self.builder.resize(id, 64, at_value.is_signed());
                let window = Some((place.bit, width));
                let part = place.part(0, &Type::Bool);
                Ok(Operand::Place(Place { dynamic_bit: Some(id), window, ..part }))
            }
            other => {
                let value = self.value_of(other, span)?;
                let (value, lo) = (self.materialise(&value), self.materialise(&at_value));
                let op = Op::ExtractDynamic { value, lo, width: 1 };
                let id = self.builder.push(op, IrType::Bits(1));
                Ok(Operand::Value(Value::computed(Type::Bool, id)))
            }
        }
    }

    /// Lowers `of[high:low]`.
    pub(super) fn slice(
        &mut self,
        of: &'a Expr,
        high: &'a Expr,
        low: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        let operand = self.operand(of)?;
        let width = match &operand {
            Operand::Place(place) if place.ty.is_integer() => place.width(),
            Operand::Value(value) if value.ty.is_integer() => value.ty.value_bits(),
            _ => {
                return Err(self.report(
                    Diagnostic::error("E0207", of.span, "only a number has slices")
                        .label("not a number")
                        .help("use a member that is a number, such as `x.data` of a flit"),
                ));
            }
        };
        let (top, bottom) = (self.constant_u64(high)?, self.constant_u64(low)?);
        let bits = top.saturating_sub(bottom).saturating_add(1).min(width);
        let ty = Type::Int(IntType::of_width(bits as u32, false));
        self.bits_of(operand, top, bottom, width, &ty, span)
    }

    /// Returns bits `high` to `low` of a number of `width` bits, as a `ty`.
    fn bits_of(
        &mut self,
        operand: Operand,
        high: u64,
        low: u64,
        width: u64,
        ty: &Type,
        span: Span,
    ) -> Lowered<Operand> {
        if high < low || high >= width {
            return Err(self.bad_slice(high, low, width, span));
        }
        match operand {
            Operand::Place(place) => {
                let part = place.part(low, ty);
                Ok(Operand::Place(part))
            }
            other => {
                let value = self.value_of(other, span)?;
                if let Data::Known(bits) = &value.data {
                    let bits: Bits = bits.extract(low as u32, (high - low + 1) as u32);
                    return Ok(Operand::Value(Value::known(Constant { ty: ty.clone(), bits })));
                }
                let id = self.materialise(&value);
                let id = self.builder.extract(id, low as u32, (high - low + 1) as u32);
                Ok(Operand::Value(Value::computed(ty.clone(), id)))
            }
        }
    }

    fn bad_slice(&mut self, high: u64, low: u64, width: u64, span: Span) -> Reported {
        let label = match high < low {
            true => format!("the high bit {high} is below the low bit {low}"),
            false => format!("bits go from 0 to {}", width - 1),
        };
        self.report(
            Diagnostic::error("E0211", span, format!("no such bits in a number of {width} bits"))
                .label(label)
                .help("write `v[high:low]`, both inside the number"),
        )
    }
}
