// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CO-RE relocations, resolved from the object's own types: there is no kernel here whose types
//! could differ, and packets and contexts have the layout for which the program was compiled. A
//! relocation that only a kernel can resolve is refused.

use super::btf::{Btf, CoreRelocation, Kind};
use crate::instruction::Instruction;

/// Kinds of relocations, by the kernel's number (`enum bpf_core_relo_kind`).
const FACTS: [&str; 13] = [
    "offset of a field",
    "size of a field",
    "existence of a field",
    "sign of a field",
    "left shift of a field",
    "right shift of a field",
    "local id of a type",
    "kernel's id of a type",
    "existence of a type",
    "size of a type",
    "existence of an enum's value",
    "enum's value",
    "match of a type",
];

/// Stores the value of a relocation in its instruction, the first of `slots`.
///
/// # Errors
/// The value cannot be determined here, or does not fit the instruction.
pub(super) fn apply(
    btf: &Btf,
    relocation: &CoreRelocation,
    slots: &mut [Instruction],
) -> Result<(), String> {
    let name = btf.name(relocation.root);
    let fact = FACTS.get(relocation.kind as usize).copied().unwrap_or("unknown fact");
    let wrong = |reason: &str| {
        let access = btf.text(relocation.access);
        format!("CO-RE relocation: {fact} (`{name}`, {access}): {reason}")
    };
    let is_of_kernel = matches!(relocation.kind, 2 | 8 | 10 | 12) && name.contains("___");
    if is_of_kernel || relocation.kind == 7 {
        return Err(wrong("only a running kernel can tell"));
    }
    let value = fact_value(btf, relocation).map_err(|reason| wrong(&reason))?;
    patch(slots, value).ok_or_else(|| wrong(&format!("{value} does not fit the instruction")))
}

fn fact_value(btf: &Btf, relocation: &CoreRelocation) -> Result<u64, String> {
    let access = btf.text(relocation.access);
    let numbers: Result<Vec<u32>, _> = access.split(':').map(str::parse).collect();
    let numbers = numbers.map_err(|_| "the path must consist of numbers")?;
    let root = relocation.root;
    let (id, kind) = btf.resolve(root).ok_or("there is no such type")?;
    Ok(match relocation.kind {
        0..=5 => {
            let field = Field::find(btf, id, &numbers).ok_or("there is no such field")?;
            field.fact(btf, relocation.kind).ok_or("this cannot be determined for it")?
        }
        6 => root.into(),
        8 | 12 => 1,
        9 => btf.size(root).ok_or("it has no size")?.into(),
        10 | 11 => {
            let Kind::Enum { values, .. } = kind else { return Err("is not an enum".to_owned()) };
            let value = numbers.first().and_then(|&at| values.get(at as usize));
            let (_, value) = value.ok_or("there is no such value")?;
            if relocation.kind == 10 { 1 } else { *value }
        }
        _ => return Err("is not known".to_owned()),
    })
}

/// A field of a type.
struct Field {
    kind: u32,
    bit_offset: u64,
    /// 0 unless it is a bit field.
    field_bits: u32,
}

impl Field {
    /// Follows a path of members and elements; its first number indexes whole values of the type.
    fn find(btf: &Btf, root: u32, path: &[u32]) -> Option<Self> {
        let (&first, path) = path.split_first()?;
        let bit_offset = u64::from(first) * u64::from(btf.size(root)?) * 8;
        let mut field = Self { kind: root, bit_offset, field_bits: 0 };
        for &index in path {
            match btf.resolve(field.kind)?.1 {
                Kind::Struct { members, .. } => {
                    let member = members.get(index as usize)?;
                    field.kind = member.kind;
                    field.bit_offset = field.bit_offset.checked_add(member.bit_offset.into())?;
                    field.field_bits = member.field_bits;
                }
                Kind::Array { element, .. } => {
                    let bits = u64::from(index) * u64::from(btf.size(*element)?) * 8;
                    field.kind = *element;
                    field.bit_offset = field.bit_offset.checked_add(bits)?;
                }
                _ => return None,
            }
        }
        Some(field)
    }

    /// Returns byte offset and size of the aligned load that covers all its bits, chosen as in the
    /// kernel's `relo_core.c`.
    fn load(&self, btf: &Btf) -> Option<(u64, u64)> {
        let mut bytes = u64::from(btf.size(self.kind)?);
        if self.field_bits == 0 {
            return Some((self.bit_offset / 8, bytes));
        }
        let end = self.bit_offset + u64::from(self.field_bits);
        loop {
            let offset = (self.bit_offset / 8).checked_div(bytes)? * bytes;
            if end <= (offset + bytes) * 8 {
                return Some((offset, bytes));
            }
            bytes = if bytes < 8 { bytes * 2 } else { return None };
        }
    }

    fn fact(&self, btf: &Btf, kind: u32) -> Option<u64> {
        let (offset, bytes) = self.load(btf)?;
        let bits = if self.field_bits == 0 { bytes * 8 } else { self.field_bits.into() };
        match kind {
            0 => Some(offset),
            1 => Some(bytes),
            2 => Some(1),
            3 => match btf.resolve(self.kind)?.1 {
                Kind::Integer { is_signed, .. } | Kind::Enum { is_signed, .. } => {
                    Some((*is_signed).into())
                }
                _ => Some(0),
            },
            4 => 64_u64.checked_sub(self.bit_offset + bits - offset * 8),
            _ => 64_u64.checked_sub(bits),
        }
    }
}

/// Stores a value in the constant of an instruction: the immediate of arithmetic, the offset of
/// loads and stores, both immediates of a wide load.
fn patch(slots: &mut [Instruction], value: u64) -> Option<()> {
    let (first, rest) = slots.split_first_mut()?;
    match first.opcode & 7 {
        1..=3 => first.offset = value.try_into().ok()?,
        4 | 7 if first.opcode & 8 == 0 => {
            // Includes values that are negative as 32-bit numbers.
            let is_negative = value as i64 == i64::from(value as i32);
            first.immediate =
                if is_negative { value as i32 } else { u32::try_from(value).ok()? as i32 };
        }
        0 if first.is_wide() => {
            let second = rest.first_mut()?;
            (first.immediate, second.immediate) = (value as i32, (value >> 32) as i32);
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::{assemble, disassemble};

    /// Types 1 `int` (4 bytes, signed), 2 `pair` with two members of type 1: the first, and a bit
    /// field of 5 bits at bit 35, 3 an array of three of them, 4 `colour`, an enum of -2 and 7, and
    /// 5 `old___2`, an empty struct.
    #[rustfmt::skip]
    fn section() -> Vec<u8> {
        let strings = b"\0int\0pair\0colour\x000:1\x000:0\x002:1\x000\x001\x00a:b\0old___2\0";
        let types: Vec<u32> = vec![
            1, 1 << 24, 4, 1 << 24 | 32, //
            5, 1 << 31 | 4 << 24 | 2, 8, 0, 1, 0, 0, 1, 5 << 24 | 35, //
            0, 3 << 24, 0, 2, 1, 3, //
            10, 1 << 31 | 6 << 24 | 2, 4, 0, -2_i32 as u32, 0, 7, //
            37, 4 << 24, 8,
        ];
        let types_bytes = types.len() as u32 * 4;
        let header = [1 << 16 | 0xeb9f, 24, 0, types_bytes, types_bytes, strings.len() as u32];
        let words = header.iter().chain(&types).flat_map(|word| word.to_le_bytes());
        words.chain(strings.iter().copied()).collect()
    }

    /// Applies a relocation to an instruction.
    fn applied(kind: u32, root: u32, path: &str, text: &str) -> Result<String, String> {
        let section = section();
        let btf = Btf::parse(&section).expect("is right");
        let mut strings = (0..60).filter(|&at| btf.text(at) == path);
        let access = strings.next_back().expect("the path is among the strings");
        let mut slots = assemble(text).expect("is right");
        apply(&btf, &CoreRelocation { slot: 0, root, access, kind }, &mut slots)?;
        Ok(disassemble(&slots).trim().to_owned())
    }

    #[track_caller]
    fn assert_applied(kind: u32, root: u32, path: &str, text: &str, expected: &str) {
        assert_eq!(applied(kind, root, path, text).as_deref(), Ok(expected));
    }

    #[test]
    fn facts_of_fields_are_put_where_they_belong() {
        assert_applied(0, 2, "2:1", "r1 = *(u32 *)(r2 + 0x63)", "r1 = *(u32 *)(r2 + 0x14)");
        assert_applied(0, 2, "0:1", "*(u32 *)(r2 + 0x63) = r1", "*(u32 *)(r2 + 0x4) = r1");
        assert_applied(1, 2, "0:1", "r1 = 0x63", "r1 = 0x4");
        assert_applied(2, 2, "0:0", "r1 = 0x63", "r1 = 0x1");
        assert_applied(3, 2, "0:0", "r1 = 0x63", "r1 = 0x1");
        // The field is bits 3 to 7 of the word at byte 4.
        assert_applied(4, 2, "0:1", "r1 <<= 0x63", "r1 <<= 0x38");
        assert_applied(5, 2, "0:1", "r1 >>= 0x63", "r1 >>= 0x3b");
        // An element of an array.
        assert_applied(0, 3, "0:1", "r1 = 0x63", "r1 = 0x8");
    }

    #[test]
    fn facts_of_types_and_enums_are_the_objects_own() {
        assert_applied(6, 2, "0", "r1 = 0x63 ll", "r1 = 0x2 ll");
        assert_applied(8, 2, "0", "r1 = 0x63", "r1 = 0x1");
        assert_applied(9, 3, "0", "r1 = 0x63", "r1 = 0x18");
        assert_applied(11, 4, "0", "r1 = 0x63 ll", "r1 = 0xfffffffffffffffe ll");
        assert_applied(11, 4, "0", "w1 = 0x63", "w1 = -0x2");
        assert_applied(11, 4, "1", "w1 = 0x63", "w1 = 0x7");
    }

    #[track_caller]
    fn assert_refused(kind: u32, root: u32, path: &str, text: &str, expected: &str) {
        let reason = applied(kind, root, path, text).expect_err("is refused");
        assert!(reason.contains(expected), "{reason}");
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        assert_refused(7, 2, "0", "r1 = 1 ll", "kernel's id of a type (`pair`, 0): only a running");
        assert_refused(8, 5, "0", "r1 = 1", "(`old___2`, 0): only a running kernel");
        assert_refused(0, 2, "a:b", "r1 = 1", "must consist of numbers");
        assert_refused(0, 1, "0:1", "r1 = 1", "no such field");
        assert_refused(0, 99, "0:1", "r1 = 1", "no such type");
        assert_refused(13, 2, "0", "r1 = 1", "unknown fact");
        assert_refused(9, 2, "0", "call 1", "8 does not fit");
        assert_refused(9, 2, "0", "r1 += r2", "8 does not fit");
    }
}
