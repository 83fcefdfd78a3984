// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Upper bounds of values, from a short look at their definitions: enough to see that an index is
//! within its object. Such an access may be added or removed and needs no check, although accesses
//! out of range are counted.

use crate::{Addressing, BinaryOp, CompareOp, Function, ObjectRef, Op, Program, ValueId};

/// Maximum depth of nested definitions that are examined.
const DEPTH: u32 = 8;

/// Returns, by value, the operation that defines it; `None` for parameters.
pub fn definitions(function: &Function) -> Vec<Option<&Op>> {
    let mut found = vec![None; function.values.len()];
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if let Some(result) = inst.result {
            found[result.index()] = Some(&inst.op);
        }
    }
    found
}

/// Returns an upper bound of an unsigned value; `u64::MAX` if nothing better is known.
pub fn upper_bound(function: &Function, definitions: &[Option<&Op>], value: ValueId) -> u64 {
    bound(function, definitions, value, DEPTH)
}

fn bound(function: &Function, definitions: &[Option<&Op>], value: ValueId, depth: u32) -> u64 {
    let Some(width) = function.type_of(value).bits() else { return u64::MAX };
    let by_width = if width < 64 { (1 << width) - 1 } else { u64::MAX };
    let Some(op) = definitions[value.index()].filter(|_| depth > 0) else { return by_width };
    let of = |value: ValueId| bound(function, definitions, value, depth - 1);
    let constant = |value: ValueId| match definitions[value.index()] {
        Some(Op::Const(bits)) => bits.checked_u64(),
        _ => None,
    };
    // For a wider value, a bound of `u64::MAX` means unknown.
    let shift = |value: ValueId, by: u64| match of(value) {
        u64::MAX if function.width_of(value) > 64 => u64::MAX,
        bound => u32::try_from(by).ok().and_then(|by| bound.checked_shr(by)).unwrap_or(0),
    };
    let found = match op {
        Op::Const(bits) => bits.saturating_u64(),
        Op::ZeroExtend(value, _) | Op::Truncate(value, _) => of(*value),
        Op::Extract { value, lo, .. } => shift(*value, u64::from(*lo)),
        Op::Select { cond, if_true, if_false } => {
            // `x < limit ? x : ..`
            let limit = match definitions[cond.index()] {
                Some(Op::Compare(CompareOp::ULt, left, right)) if left == if_true => {
                    constant(*right).map_or(u64::MAX, |limit| limit.saturating_sub(1))
                }
                _ => u64::MAX,
            };
            of(*if_true).min(limit).max(of(*if_false))
        }
        Op::Binary(BinaryOp::And, left, right) => of(*left).min(of(*right)),
        Op::Binary(BinaryOp::Or | BinaryOp::Xor, left, right) => {
            (of(*left) | of(*right)).checked_add(1).map_or(u64::MAX, |end| {
                end.checked_next_power_of_two().map_or(u64::MAX, |power| power - 1)
            })
        }
        Op::Binary(BinaryOp::Add, left, right) => of(*left).saturating_add(of(*right)),
        Op::Binary(BinaryOp::Mul, left, right) => of(*left).saturating_mul(of(*right)),
        Op::Binary(BinaryOp::URem, left, right) => match constant(*right) {
            Some(by) if by > 0 => (by - 1).min(of(*left)),
            _ => of(*left),
        },
        Op::Binary(BinaryOp::UDiv, left, _) => of(*left),
        Op::Binary(BinaryOp::LShr, left, right) => {
            constant(*right).map_or(of(*left), |by| shift(*left, by))
        }
        _ => by_width,
    };
    found.min(by_width)
}

/// Returns whether the access that `op` makes of an object can never be out of range.
pub fn is_in_range(
    program: &Program,
    function: &Function,
    definitions: &[Option<&Op>],
    op: &Op,
) -> bool {
    let within = |object: ObjectRef, at: ValueId, count: u64, addressing: Addressing| {
        let Some(object) = program.object(function, object) else { return false };
        let last = upper_bound(function, definitions, at).saturating_add(count - 1);
        object.addressing == addressing && last < object.depth
    };
    match op {
        Op::Load { object, index, .. } | Op::Store { object, index, .. } => {
            within(*object, *index, 1, Addressing::Element)
        }
        Op::LoadBytes { object, offset, bytes } => {
            within(*object, *offset, u64::from(*bytes).max(1), Addressing::Byte)
        }
        Op::StoreBytes { object, offset, value } => {
            let bytes = u64::from(function.width_of(*value).div_ceil(8));
            within(*object, *offset, bytes, Addressing::Byte)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementId;
    use crate::text::parse;

    /// Returns the bound of the value that a handler with a 32-bit input puts.
    fn bound_of(body: &str) -> u64 {
        let text = format!(
            "program p\nelement E {{\nin in: bits<32>\nout out: bits<32>\nhandler {{\nentry:\n\
             %x = take in\n%zero = const 0:32\n%ten = const 10:32\n{body}\nput out, %y\ndone\n\
             }}\n}}\ngraph {{}}\n"
        );
        let program = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let function = program.function(program.element(ElementId(0)).handler);
        let mut insts = function.blocks[0].insts.iter();
        let put = insts.find_map(|inst| match inst.op {
            Op::Put { value, .. } => Some(value),
            _ => None,
        });
        upper_bound(function, &definitions(function), put.expect("it puts"))
    }

    #[test]
    fn a_value_that_is_compared_with_a_limit_is_below_it() {
        let less = |left, right| format!("%is = ult {left}, {right}\n");
        let select = |left, right| format!("%y = select %is, {left}, {right}");
        let bound = |is: String, select: String| bound_of(&(is + &select));
        assert_eq!(bound(less("%x", "%ten"), select("%x", "%zero")), 9);
        let everything = u64::from(u32::MAX);
        assert_eq!(bound(less("%ten", "%x"), select("%x", "%zero")), everything);
        assert_eq!(bound(less("%x", "%ten"), select("%zero", "%x")), everything);
        assert_eq!(bound(less("%x", "%zero"), select("%x", "%ten")), 10);
    }
}
