// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values of expressions: computed ones and constants, which stay constants through templates.

use super::body::Body;
use super::constants::Constant;
use crate::types::{INT, Type};
use freeport_ir::{Bits, CompareOp, ValueId};

/// The value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Type; not an array or pointer.
    pub ty: Type,
    /// Width of the bit field it was read from: narrow ones promote to `int`.
    pub bit_field: Option<u32>,
    /// Bits, in the width of [`Type::value_bits`].
    pub data: Data,
}

/// Bits of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// Known at compile time.
    Known(Bits),
    /// Computed.
    Computed(ValueId),
    /// 0 or 1 from a single computed bit; the result of comparisons.
    Flag(ValueId),
}

impl Value {
    /// Creates a computed value.
    pub fn computed(ty: Type, id: ValueId) -> Self {
        Self { ty, bit_field: None, data: Data::Computed(id) }
    }

    /// Creates a constant.
    pub fn known(constant: Constant) -> Self {
        Self { ty: constant.ty, bit_field: None, data: Data::Known(constant.bits) }
    }

    /// Creates an `int` of 0 or 1.
    pub fn flag(id: ValueId) -> Self {
        Self { ty: Type::Int(INT), bit_field: None, data: Data::Flag(id) }
    }

    /// Returns the value as a constant, if it is one.
    pub fn as_constant(&self) -> Option<Constant> {
        match &self.data {
            Data::Known(bits) => Some(Constant { ty: self.ty.clone(), bits: bits.clone() }),
            _ => None,
        }
    }

    /// Returns its width in bits.
    pub fn width(&self) -> u32 {
        self.ty.value_bits() as u32
    }

    /// Returns whether extension uses its sign.
    pub fn is_signed(&self) -> bool {
        self.ty.as_integer().is_some_and(|int| int.is_signed)
    }
}

impl Body<'_, '_> {
    /// Returns the value as an IR value of its own width.
    pub fn materialise(&mut self, value: &Value) -> ValueId {
        match &value.data {
            Data::Known(bits) => self.builder.constant(bits.clone()),
            Data::Computed(id) => *id,
            Data::Flag(id) => self.builder.resize(*id, value.width(), false),
        }
    }

    /// Converts the value to another number type; the caller has checked that both are numbers, or
    /// the same type.
    pub fn converted(&mut self, value: &Value, ty: &Type) -> Value {
        if let Some(constant) = value.as_constant()
            && let Some(converted) = constant.converted(ty)
        {
            return Value::known(converted);
        }
        let data = match (&value.data, ty) {
            (_, _) if value.ty == *ty => value.data.clone(),
            (_, Type::Bool) => Data::Computed(self.truth(value)),
            (Data::Flag(id), _) => Data::Flag(*id),
            _ => {
                let id = self.materialise(value);
                let width = ty.value_bits() as u32;
                Data::Computed(self.builder.resize(id, width, value.is_signed()))
            }
        };
        Value { ty: ty.clone(), bit_field: None, data }
    }

    /// Returns one bit: whether a number is not 0.
    pub fn truth(&mut self, value: &Value) -> ValueId {
        match &value.data {
            Data::Known(bits) => self.builder.constant(Bits::from_bool(!bits.is_zero())),
            Data::Flag(id) => *id,
            Data::Computed(id) if value.width() == 1 => *id,
            Data::Computed(id) => {
                let zero = self.builder.constant(Bits::zero(value.width()));
                self.builder.compare(CompareOp::Ne, *id, zero)
            }
        }
    }
}
