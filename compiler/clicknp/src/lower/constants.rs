// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Constants, and the operators on them. The type rules are here, shared by constants and computed
//! values ([`plan`]).

use super::Side;
use super::body::Body;
use super::names::Binding;
use crate::ast::{BinaryOperator, Expr, ExprKind, UnaryOperator};
use crate::types::{INT, IntType, Type, ULONG, conversions, layout};
use freeport_ir::{BinaryOp, Bits, CompareOp, UnaryOp};
use num_bigint::BigUint;

/// A number known at compile time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constant {
    /// Type, which is a number.
    pub ty: Type,
    /// Value, in the width of the type.
    pub bits: Bits,
}

/// How a binary operator is computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operation {
    /// Both operands and the result have one type.
    Arithmetic(BinaryOp),
    /// The right operand is an unsigned bit count.
    Shift(BinaryOp),
    /// The result is an `int` of 0 or 1; with `true`, the operands are swapped.
    Compare(CompareOp, bool),
}

/// Returns the operation of a binary operator (not `&&`, `||`), and the type that its operands (for
/// a shift: the left one) are converted to.
pub fn plan(op: BinaryOperator, left: Operand, right: Operand) -> (Operation, IntType) {
    let is_shift = matches!(op, BinaryOperator::Shl | BinaryOperator::Shr);
    let (left, right) = (left.promoted(), right.promoted());
    let ty = if is_shift { left } else { conversions::usual(left, right) };
    let pick = |signed, unsigned| if ty.is_signed { signed } else { unsigned };
    let less = if ty.is_signed { CompareOp::SLt } else { CompareOp::ULt };
    let less_or_equal = if ty.is_signed { CompareOp::SLe } else { CompareOp::ULe };
    let operation = match op {
        BinaryOperator::Add => Operation::Arithmetic(BinaryOp::Add),
        BinaryOperator::Sub => Operation::Arithmetic(BinaryOp::Sub),
        BinaryOperator::Mul => Operation::Arithmetic(BinaryOp::Mul),
        BinaryOperator::Div => Operation::Arithmetic(pick(BinaryOp::SDiv, BinaryOp::UDiv)),
        BinaryOperator::Rem => Operation::Arithmetic(pick(BinaryOp::SRem, BinaryOp::URem)),
        BinaryOperator::BitAnd | BinaryOperator::And => Operation::Arithmetic(BinaryOp::And),
        BinaryOperator::BitOr | BinaryOperator::Or => Operation::Arithmetic(BinaryOp::Or),
        BinaryOperator::BitXor => Operation::Arithmetic(BinaryOp::Xor),
        BinaryOperator::Shl => Operation::Shift(BinaryOp::Shl),
        BinaryOperator::Shr => Operation::Shift(pick(BinaryOp::AShr, BinaryOp::LShr)),
        BinaryOperator::Eq => Operation::Compare(CompareOp::Eq, false),
        BinaryOperator::Ne => Operation::Compare(CompareOp::Ne, false),
        BinaryOperator::Lt => Operation::Compare(less, false),
        BinaryOperator::Le => Operation::Compare(less_or_equal, false),
        BinaryOperator::Gt => Operation::Compare(less, true),
        BinaryOperator::Ge => Operation::Compare(less_or_equal, true),
    };
    (operation, ty)
}

/// Properties of an operand that determine its promotion.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// Type of the operand.
    pub ty: IntType,
    /// Width of the bit field it comes from, if any.
    pub bit_field: Option<u32>,
}

impl Operand {
    /// Returns its promoted type.
    pub fn promoted(self) -> IntType {
        conversions::promoted(self.ty, self.bit_field)
    }
}

impl Constant {
    /// Returns a number of a type, truncated to its width.
    pub fn of(ty: IntType, value: u64) -> Self {
        Self { ty: Type::Int(ty), bits: Bits::from_u64(ty.width, value) }
    }

    /// Returns 0 or 1.
    pub fn flag(value: bool) -> Self {
        Self::of(INT, u64::from(value))
    }

    /// Returns a literal of any size.
    pub fn literal(value: &BigUint, suffix: &str, is_decimal: bool) -> Self {
        let ty = conversions::of_literal(value, suffix, is_decimal);
        Self { ty: Type::Int(ty), bits: Bits::from_le_bytes(ty.width, &value.to_bytes_le()) }
    }

    /// Returns whether it is not 0.
    pub fn truth(&self) -> bool {
        !self.bits.is_zero()
    }

    /// Returns the number, if it is not negative and fits 64 bits.
    pub fn as_u64(&self) -> Option<u64> {
        if self.is_signed() && self.bits.is_negative() {
            return None;
        }
        self.bits.checked_u64()
    }

    /// Returns the number, if it fits.
    pub fn as_i128(&self) -> Option<i128> {
        if self.bits.width() > 127 {
            return self.as_u64().map(i128::from);
        }
        let bits =
            if self.is_signed() { self.bits.sign_extend(128) } else { self.bits.resize(128) };
        Some(bits.to_u128() as i128)
    }

    /// Converts it to another number type; `None` if that is not a number.
    pub fn converted(&self, ty: &Type) -> Option<Self> {
        let bits = match ty {
            Type::Bool => Bits::from_bool(self.truth()),
            Type::Int(int) if self.is_signed() => self.bits.sign_extend(int.width),
            Type::Int(int) => self.bits.resize(int.width),
            _ => return None,
        };
        Some(Self { ty: ty.clone(), bits })
    }

    /// Applies a unary operator.
    pub fn unary(&self, op: UnaryOperator) -> Option<Self> {
        let ty = Type::Int(self.operand()?.promoted());
        let value = self.converted(&ty)?;
        let bits = match op {
            UnaryOperator::Minus => Bits::unary(UnaryOp::Neg, &value.bits),
            UnaryOperator::BitNot => Bits::unary(UnaryOp::Not, &value.bits),
            UnaryOperator::Plus => value.bits,
            UnaryOperator::Not => return Some(Self::flag(!self.truth())),
            UnaryOperator::Dereference | UnaryOperator::AddressOf => return None,
        };
        Some(Self { ty, bits })
    }

    /// Applies a binary operator.
    pub fn binary(op: BinaryOperator, left: &Self, right: &Self) -> Option<Self> {
        match op {
            BinaryOperator::And => return Some(Self::flag(left.truth() && right.truth())),
            BinaryOperator::Or => return Some(Self::flag(left.truth() || right.truth())),
            _ => {}
        }
        let (operation, int) = plan(op, left.operand()?, right.operand()?);
        let ty = Type::Int(int);
        let value = left.converted(&ty)?.bits;
        match operation {
            Operation::Arithmetic(op) => {
                let bits = Bits::binary(op, &value, &right.converted(&ty)?.bits);
                Some(Self { ty, bits })
            }
            Operation::Shift(op) => {
                let count = Type::Int(right.operand()?.promoted());
                let count = right.converted(&count)?.bits.saturating_u64();
                // A count beyond the width has the same effect as the width; both operands have one
                // width.
                let wide = int.width.max(64);
                let count = Bits::from_u64(wide, count);
                let filled = if int.is_signed && op == BinaryOp::AShr {
                    value.sign_extend(wide)
                } else {
                    value.resize(wide)
                };
                Some(Self { ty, bits: Bits::binary(op, &filled, &count).resize(int.width) })
            }
            Operation::Compare(op, is_swapped) => {
                let other = right.converted(&ty)?.bits;
                let (a, b) = if is_swapped { (&other, &value) } else { (&value, &other) };
                Some(Self::flag(Bits::compare(op, a, b)))
            }
        }
    }

    /// Returns its properties as an operand.
    pub fn operand(&self) -> Option<Operand> {
        Some(Operand { ty: self.ty.as_integer()?, bit_field: None })
    }

    fn is_signed(&self) -> bool {
        self.ty.as_integer().is_some_and(|int| int.is_signed)
    }
}

impl Body<'_, '_> {
    /// Returns the value of a constant expression; `None` if it is not constant. Emits no code, and
    /// reports nothing.
    pub fn try_constant(&mut self, expr: &Expr) -> Option<Constant> {
        match &expr.kind {
            ExprKind::Number(value, suffix) => Some(self.literal(value, suffix, expr.span)),
            ExprKind::Bool(value) => {
                Some(Constant { ty: Type::Bool, bits: Bits::from_bool(*value) })
            }
            ExprKind::Char(value) => Some(Constant::of(INT, u64::from(*value))),
            ExprKind::Ipv4(value) => Some(Constant::of(crate::types::UINT, u64::from(*value))),
            ExprKind::Mac(value) => Some(Constant::of(IntType::of_width(48, false), *value)),
            ExprKind::Name(name, args) if args.is_empty() => match self.lookup(name)? {
                Binding::Constant(constant) => Some(constant),
                Binding::Port(Side::Input, at) => Some(self.port_mask(at)),
                _ => None,
            },
            ExprKind::Unary(op, operand) => self.try_constant(operand)?.unary(*op),
            ExprKind::Binary(op, left, right) => {
                let left = self.try_constant(left)?;
                match (op, left.truth()) {
                    (BinaryOperator::And, false) => return Some(Constant::flag(false)),
                    (BinaryOperator::Or, true) => return Some(Constant::flag(true)),
                    _ => {}
                }
                Constant::binary(*op, &left, &self.try_constant(right)?)
            }
            ExprKind::Conditional(cond, yes, no) => {
                let is_true = self.try_constant(cond)?.truth();
                let (yes, no) = (self.try_constant(yes)?, self.try_constant(no)?);
                let common =
                    conversions::usual(yes.operand()?.promoted(), no.operand()?.promoted());
                (if is_true { yes } else { no }).converted(&Type::Int(common))
            }
            ExprKind::Cast(ty, value) if ty.pointers == 0 => {
                let value = self.try_constant(value)?;
                let ty = self.quietly(|body| body.resolve(ty))?;
                value.converted(&ty)
            }
            ExprKind::SizeofType(ty) => {
                let ty = self.quietly(|body| body.resolve(ty))?;
                let has_size = !matches!(ty, Type::Packet(_));
                has_size.then(|| Constant::of(ULONG, layout::size_bytes(&ty)))
            }
            ExprKind::Slice(value, high, low) => {
                let value = self.try_constant(value)?;
                let (high, low) = (self.try_constant(high)?, self.try_constant(low)?);
                let (high, low) = (high.as_u64()?, low.as_u64()?);
                let is_inside = low <= high && high < u64::from(value.bits.width());
                let width = u32::try_from(high.checked_sub(low)? + 1).ok()?;
                let ty = Type::uint(width);
                is_inside.then(|| Constant { ty, bits: value.bits.extract(low as u32, width) })
            }
            ExprKind::Index(value, at) => {
                let (value, at) = (self.try_constant(value)?, self.try_constant(at)?.as_u64()?);
                let bit = value.bits.bit(u32::try_from(at).ok()?);
                Some(Constant { ty: Type::Bool, bits: Bits::from_bool(bit) })
            }
            _ => None,
        }
    }

    /// Returns the constant for a number literal; its spelling determines its type.
    pub fn literal(&self, value: &BigUint, suffix: &str, span: crate::source::Span) -> Constant {
        let text = self.lowering.sources.text(span);
        let is_decimal = !text.starts_with('0') || text == "0";
        Constant::literal(value, suffix, is_decimal)
    }
}
