// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory layout: C's rules of the x86-64 System V ABI, little endian.
//!
//! A bit-precise integer of N bits takes N/8 bytes rounded up to its alignment, which is the next
//! power of two of its bytes, at most 8. A bit field follows the previous one unless it would cross
//! a unit of its declared type; then it starts at the next unit.

use super::{Field, Record, Type};

/// Returns the size of a variable of this type in bytes.
pub fn size_bytes(ty: &Type) -> u64 {
    match ty {
        Type::Void | Type::Packet(_) => 0,
        Type::Bool => 1,
        Type::Int(int) => u64::from(int.width).div_ceil(8).next_multiple_of(align_bytes(ty)),
        Type::Record(record) => record.size_bytes,
        Type::Array(item, count) => size_bytes(item).saturating_mul(*count),
        Type::Pointer(_) => 8,
    }
}

/// Returns the alignment of a variable of this type in bytes.
pub fn align_bytes(ty: &Type) -> u64 {
    match ty {
        Type::Void | Type::Bool | Type::Packet(_) => 1,
        Type::Int(int) => u64::from(int.width).div_ceil(8).next_power_of_two().min(8),
        Type::Record(record) => record.align_bytes,
        Type::Array(item, _) => align_bytes(item),
        Type::Pointer(_) => 8,
    }
}

/// A member before its placement.
pub struct Member {
    /// Name; `None` for an anonymous record or for padding bits.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
    /// Width, if it is a bit field.
    pub bit_field: Option<u32>,
}

/// Computes the layout of a record. A record without members takes one byte.
pub fn place(name: String, is_union: bool, members: Vec<Member>) -> Record {
    let (mut next, mut end, mut align) = (0, 0, 1);
    let mut fields = vec![];
    for Member { name, ty, bit_field } in members {
        if is_union {
            next = 0;
        }
        let (unit, boundary) = (size_bytes(&ty) * 8, align_bytes(&ty) * 8);
        let is_filler = name.is_none() && bit_field.is_some();
        let bit = match bit_field {
            Some(0) => u64::next_multiple_of(next, boundary),
            Some(width) if next % unit + u64::from(width) <= unit => next,
            _ => next.next_multiple_of(boundary),
        };
        next = bit + bit_field.map_or(unit, u64::from);
        end = end.max(next);
        if !is_filler {
            align = align.max(align_bytes(&ty));
            fields.push(Field { name, ty, bit, bit_field });
        }
    }
    let size_bytes = end.div_ceil(8).max(1).next_multiple_of(align);
    Record { name, is_union, fields, size_bytes, align_bytes: align }
}

/// Finds the member called `name`, with its lowest bit; searches anonymous members too.
pub fn find<'a>(record: &'a Record, name: &str) -> Option<(&'a Field, u64)> {
    record.fields.iter().find_map(|field| match (&field.name, &field.ty) {
        (Some(own), _) if own == name => Some((field, field.bit)),
        (None, Type::Record(inner)) => {
            find(inner, name).map(|(found, bit)| (found, field.bit + bit))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn member(name: &str, ty: &str, bit_field: Option<u32>) -> Member {
        let name = (!name.is_empty()).then(|| name.to_string());
        Member { name, ty: Type::named(ty).expect("a type"), bit_field }
    }

    fn bits(record: &Record) -> Vec<u64> {
        record.fields.iter().map(|field| field.bit).collect()
    }

    #[test]
    fn plain_members_are_aligned_as_in_c() {
        let members = [("a", "uchar"), ("b", "uint"), ("c", "ushort"), ("d", "ulong")];
        let members = members.map(|(name, ty)| member(name, ty, None));
        let record = place("s".into(), false, members.into());
        assert_eq!(bits(&record), [0, 32, 64, 128]);
        assert_eq!((record.size_bytes, record.align_bytes), (24, 8));
    }

    #[test]
    fn bit_fields_pack_and_never_cross_a_unit() {
        // struct { uint a:5; uint b:28; uchar c:3; ushort :0; uchar d:7; ulong e:40; }
        let members = vec![
            member("a", "uint", Some(5)),
            member("b", "uint", Some(28)),
            member("c", "uchar", Some(3)),
            member("", "ushort", Some(0)),
            member("d", "uchar", Some(7)),
            member("e", "ulong", Some(40)),
        ];
        let record = place("s".into(), false, members);
        assert_eq!(bits(&record), [0, 32, 60, 64, 71]);
        assert_eq!(record.size_bytes, 16);
    }

    #[test]
    fn unions_overlap_and_precise_integers_round_up() {
        let members = [("a", "uint48"), ("b", "uint100"), ("c", "uchar")];
        let members = members.map(|(name, ty)| member(name, ty, None));
        let record = place("u".into(), true, members.into());
        assert_eq!(bits(&record), [0, 0, 0]);
        assert_eq!((record.size_bytes, record.align_bytes), (16, 8));
        let array = Type::Array(Arc::new(Type::uint(24)), 3);
        assert_eq!((size_bytes(&array), align_bytes(&array)), (12, 4));
    }

    #[test]
    fn members_of_anonymous_records_are_found() {
        let inner = place(String::new(), true, vec![member("low", "uint", None)]);
        let ty = Type::Record(Arc::new(inner));
        let outer = vec![member("a", "uint", None), Member { name: None, ty, bit_field: None }];
        let record = place("s".into(), false, outer);
        assert_eq!(find(&record, "low").expect("a member").1, 32);
        assert!(find(&record, "high").is_none());
    }
}
