// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pure operations as C. Each gives the value that `op.rs` defines for every operand, so there is a
//! guard wherever C leaves a case undefined.

use super::types::{
    assign, bytes_of, computed_bits, integer, is_wide, literal, ones, saturated, signed,
    signed_integer, storage, unsigned, value, zero,
};
use freeport_ir::{BinaryOp, CompareOp, Function, Op, UnaryOp, ValueId};

/// Name and width of a value.
pub(super) struct Operand {
    pub name: String,
    pub width: u32,
}

/// Returns statements that assign `result` the value of a pure operation; `None` for another
/// operation.
pub(super) fn pure(
    function: &Function,
    op: &Op,
    result: &Operand,
    operand: impl Fn(ValueId) -> Operand,
) -> Option<String> {
    let Operand { name: to, width } = result;
    let expression = match op {
        Op::Const(bits) => literal(bits),
        Op::Unary(op, from) => unary(*op, &operand(*from), result)?,
        Op::Binary(op, left, right) => binary(*op, &operand(*left), &operand(*right)),
        Op::Compare(op, left, right) => compare(*op, &operand(*left), &operand(*right)),
        Op::Select { cond, if_true, if_false } => {
            function.type_of(*if_true).bits()?;
            let [cond, if_true, if_false] = [cond, if_true, if_false].map(|at| operand(*at).name);
            let [if_true, if_false] = [if_true, if_false].map(|from| assign(to, &from, *width));
            // Without this hint, the compiler may turn them into branches again.
            return Some(format!(
                "if (UNPREDICTABLE({cond})) {{ {if_true} }} else {{ {if_false} }}"
            ));
        }
        Op::ZeroExtend(from, _) | Op::Truncate(from, _) => {
            let from = operand(*from);
            if from.width == *width {
                return Some(assign(to, &from.name, *width));
            }
            resize(&from, *width)
        }
        Op::SignExtend(from, _) => {
            let from = operand(*from);
            let extended = signed_integer(&from.name, from.width);
            value(&format!("({})({}){extended}", unsigned(*width), signed(*width)), *width)
        }
        Op::Extract { value: from, lo, .. } => {
            let from = operand(*from);
            return Some(extracted(to, &from.name, from.width, *lo, *width));
        }
        Op::ExtractDynamic { value: from, lo, .. } => {
            extract_dynamic(&operand(*from), &operand(*lo), *width)
        }
        Op::Insert { value: from, lo, part } => {
            let from = operand(*from);
            let inserted = insert(to, from.width, *lo, &operand(*part));
            return Some(format!("{} {inserted}", assign(to, &from.name, from.width)));
        }
        Op::InsertDynamic { value: from, lo, part } => {
            let (from, lo, part) = (operand(*from), operand(*lo), operand(*part));
            let inserted = insert_dynamic(to, from.width, &lo, &part);
            return Some(format!("{} {inserted}", assign(to, &from.name, from.width)));
        }
        Op::Concat(parts) => {
            let mut text = format!("{to} = {};", zero(*width));
            let mut lo = 0;
            for part in parts {
                let part = operand(*part);
                text += &format!(" {}", insert(to, *width, lo, &part));
                lo += part.width;
            }
            return Some(text);
        }
        _ => return None,
    };
    Some(format!("{to} = {expression};"))
}

/// Returns the statement that assigns `to` the `width` bits from bit `lo` of the C lvalue `from`.
pub(super) fn extracted(to: &str, from: &str, from_width: u32, lo: u32, width: u32) -> String {
    match lo == 0 && width == from_width {
        true => assign(to, from, width),
        false => format!("{to} = {};", extract(from, from_width, lo, width)),
    }
}

/// Returns the expression for `width` bits from bit `lo` of the C lvalue `from`.
pub(super) fn extract(from: &str, from_width: u32, lo: u32, width: u32) -> String {
    if !is_wide(from_width) {
        return value(&format!("{} >> {lo}", integer(from, from_width)), width);
    }
    let (at, shift) = (lo / 8, lo % 8);
    let count = bytes_of(shift + width);
    if lo == 0 && width == from_width {
        from.to_owned()
    } else if is_wide(width) && shift == 0 {
        let mut text = format!("({{ struct wide_{width} part; memcpy(part.b, {from}.b + {at}, ");
        text += &format!("{}); ", bytes_of(width));
        if !width.is_multiple_of(8) {
            text += &format!("part.b[{}] &= {:#x}; ", width / 8, 0xff_u32 >> (8 - width % 8));
        }
        text + "part; })"
    } else if count <= 8 {
        value(&format!("load_bytes({from}.b + {at}, {count}) >> {shift}"), width)
    } else if count <= 16 {
        value(&format!("load_bytes_128({from}.b + {at}, {count}) >> {shift}"), width)
    } else {
        let shifted = format!("{} >> {lo}", integer(from, from_width));
        value(&format!("({})({shifted})", unsigned(width)), width)
    }
}

/// Returns statements that replace the bits from `lo` on of the C lvalue `to`.
pub(super) fn insert(to: &str, to_width: u32, lo: u32, part: &Operand) -> String {
    let Operand { name, width } = part;
    if lo == 0 && *width == to_width {
        return assign(to, name, *width);
    }
    let (at, shift) = (lo / 8, lo % 8);
    let count = bytes_of(shift + width);
    if !is_wide(to_width) || count > 16 && (shift != 0 || !width.is_multiple_of(8)) {
        let ty = unsigned(to_width);
        let hole = format!("({} << {lo})", ones(*width, to_width));
        let whole = integer(to, to_width);
        let placed = format!("({ty})({}) << {lo}", integer(name, *width));
        return format!("{to} = {};", value(&format!("({whole} & ~{hole}) | {placed}"), to_width));
    }
    if shift == 0 && width.is_multiple_of(8) {
        return match width {
            0..=64 => format!("store_bytes({to}.b + {at}, {name}, {count});"),
            65..=128 => format!("store_bytes_128({to}.b + {at}, {name}, {count});"),
            _ => format!("memcpy({to}.b + {at}, {name}.b, {count});"),
        };
    }
    let (suffix, ty, ones) = match count <= 8 {
        true => ("", "uint64_t", format!("UINT64_C({:#x})", u64::MAX >> (64 - width))),
        false => ("_128", "uint128", format!("(~(uint128)0 >> {})", 128 - width)),
    };
    format!(
        "{{ {ty} around = load_bytes{suffix}({to}.b + {at}, {count}); \
         around = (around & ~(({ty}){ones} << {shift})) | (({ty}){name} << {shift}); \
         store_bytes{suffix}({to}.b + {at}, around, {count}); }}"
    )
}

fn resize(from: &Operand, width: u32) -> String {
    match (is_wide(from.width), is_wide(width)) {
        (true, _) if width < from.width => extract(&from.name, from.width, 0, width),
        (false, false) if width < from.width => value(&from.name, width),
        (false, false) => format!("({})({})", storage(width), from.name),
        _ => {
            let part = Operand { name: from.name.clone(), width: from.width };
            let filled = insert("whole", width, 0, &part);
            format!("({{ {} whole = {}; {filled} whole; }})", storage(width), zero(width))
        }
    }
}

fn unary(op: UnaryOp, from: &Operand, result: &Operand) -> Option<String> {
    let Operand { name, width } = from;
    let number = integer(name, *width);
    Some(match op {
        UnaryOp::Not => value(&format!("~({number})"), *width),
        UnaryOp::Neg => value(&format!("({})0 - {number}", unsigned(*width)), *width),
        UnaryOp::ByteSwap => byte_swap(from),
        UnaryOp::ReduceAnd => format!("({number}) == {}", ones(*width, *width)),
        UnaryOp::ReduceOr => format!("({number}) != 0"),
        UnaryOp::ReduceXor => format!("({}) & 1", popcount(from)),
        UnaryOp::PopCount => value_of_count(&popcount(from), *width),
        UnaryOp::LeadingZeros => {
            value_of_count(&counted(from, "count_leading_zeros"), result.width)
        }
        UnaryOp::TrailingZeros => {
            value_of_count(&counted(from, "count_trailing_zeros"), result.width)
        }
    })
}

fn value_of_count(count: &str, width: u32) -> String {
    value(&format!("({})({count})", unsigned(width)), width)
}

/// Applies `of_bytes` to the bytes of a value: those of a wide value itself, or of a copy.
fn with_bytes(from: &Operand, of_bytes: impl Fn(&str) -> String) -> String {
    match is_wide(from.width) {
        true => of_bytes(&format!("{}.b", from.name)),
        false => {
            let ty = unsigned(from.width);
            let inner = of_bytes("(const uint8_t *)&copy");
            format!("({{ const {ty} copy = {}; {inner}; }})", from.name)
        }
    }
}

fn popcount(from: &Operand) -> String {
    let count = bytes_of(from.width);
    with_bytes(from, |bytes| format!("count_ones({bytes}, {count})"))
}

fn counted(from: &Operand, function: &str) -> String {
    with_bytes(from, |bytes| format!("{function}({bytes}, {})", from.width))
}

fn byte_swap(from: &Operand) -> String {
    let Operand { name, width } = from;
    match width {
        8 => name.clone(),
        16 => format!("__builtin_bswap16({name})"),
        17..=32 => format!("__builtin_bswap32({name}) >> {}", 32 - width),
        33..=64 => format!("__builtin_bswap64({name}) >> {}", 64 - width),
        65..=128 => format!(
            "((uint128)__builtin_bswap64((uint64_t){name}) << 64 | \
             __builtin_bswap64((uint64_t)({name} >> 64))) >> {}",
            128 - width
        ),
        _ => {
            let count = bytes_of(*width);
            format!(
                "({{ {} swapped; reverse_bytes(swapped.b, {name}.b, {count}); swapped; }})",
                storage(*width)
            )
        }
    }
}

fn binary(op: BinaryOp, left: &Operand, right: &Operand) -> String {
    let width = left.width;
    let [a, b] = [left, right].map(|it| integer(&it.name, width));
    let [signed_a, signed_b] = [left, right].map(|it| signed_integer(&it.name, width));
    let ty = unsigned(width);
    let by = saturated(&right.name, width);
    let computed = match op {
        BinaryOp::Add => format!("{a} + {b}"),
        BinaryOp::Sub => format!("{a} - {b}"),
        BinaryOp::Mul => format!("{a} * {b}"),
        BinaryOp::And => format!("{a} & {b}"),
        BinaryOp::Or => format!("{a} | {b}"),
        BinaryOp::Xor => format!("{a} ^ {b}"),
        BinaryOp::UDiv => format!("{b} == 0 ? 0 : {a} / {b}"),
        BinaryOp::URem => format!("{b} == 0 ? {a} : {a} % {b}"),
        // The minimum / -1 overflows, so -1 is handled separately.
        BinaryOp::SDiv => format!(
            "{b} == 0 ? 0 : {signed_b} == -1 ? ({ty})0 - {a} : ({ty})({signed_a} / {signed_b})"
        ),
        BinaryOp::SRem => {
            format!("{b} == 0 ? {a} : {signed_b} == -1 ? 0 : ({ty})({signed_a} % {signed_b})")
        }
        BinaryOp::Shl => format!("{by} >= {width} ? 0 : ({a}) << ({by} & {})", shift_mask(width)),
        BinaryOp::LShr => format!("{by} >= {width} ? 0 : ({a}) >> ({by} & {})", shift_mask(width)),
        BinaryOp::AShr => {
            let last = width - 1;
            format!("({ty})({signed_a} >> ({by} < {width} ? {by} : {last}))")
        }
    };
    value(&computed, width)
}

/// Returns a mask that keeps a shift count, already known to be below the width, in a small type.
fn shift_mask(width: u32) -> String {
    format!("{:#x}u", computed_bits(width).next_power_of_two() - 1)
}

fn compare(op: CompareOp, left: &Operand, right: &Operand) -> String {
    let width = left.width;
    let [a, b] = [left, right].map(|it| integer(&it.name, width));
    let [signed_a, signed_b] = [left, right].map(|it| signed_integer(&it.name, width));
    match op {
        CompareOp::Eq => format!("({a}) == ({b})"),
        CompareOp::Ne => format!("({a}) != ({b})"),
        CompareOp::ULt => format!("({a}) < ({b})"),
        CompareOp::ULe => format!("({a}) <= ({b})"),
        CompareOp::SLt => format!("{signed_a} < {signed_b}"),
        CompareOp::SLe => format!("{signed_a} <= {signed_b}"),
    }
}

fn extract_dynamic(from: &Operand, lo: &Operand, width: u32) -> String {
    let at = saturated(&lo.name, lo.width);
    if is_wide(from.width) && width <= 64 {
        let count = bytes_of(from.width);
        return value(&format!("extract_bits({}.b, {count}, {at})", from.name), width);
    }
    let whole = integer(&from.name, from.width);
    let shift = format!("({at} & {})", shift_mask(from.width));
    let shifted = format!("({at} < {} ? ({whole}) >> {shift} : 0)", from.width);
    value(&format!("({}){shifted}", unsigned(width)), width)
}

fn insert_dynamic(to: &str, to_width: u32, lo: &Operand, part: &Operand) -> String {
    let at = saturated(&lo.name, lo.width);
    if is_wide(to_width) && part.width <= 64 {
        return format!("insert_bits({to}.b, {to_width}, {at}, {}, {});", part.name, part.width);
    }
    let ty = unsigned(to_width);
    let kept = ones(part.width.min(to_width), to_width);
    let shift = format!("({at} & {})", shift_mask(to_width));
    let placed = format!("((({ty})({}) & {kept}) << {shift})", integer(&part.name, part.width));
    let whole = integer(to, to_width);
    let inserted = value(&format!("(({whole}) & ~({kept} << {shift})) | {placed}"), to_width);
    format!("if ({at} < {to_width}) {to} = {inserted};")
}
