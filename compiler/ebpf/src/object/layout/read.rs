// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Layouts from BTF.

use super::{Layout, Member};
use crate::object::btf::{Btf, Kind};
use crate::object::elf::Symbol;
use std::collections::HashMap;

/// Maximum depth of nested types.
const DEPTH_MAX: u32 = 16;

/// Returns the layout of a key or a value of this type and size, if it is known.
pub(in crate::object) fn of_type(btf: &Btf, kind: u32, bytes: u32) -> Option<Layout> {
    layout(btf, kind, 0).filter(|layout| layout.bytes() == bytes)
}

/// Returns the layout of a section of variables. The offset of each comes from its symbol.
pub(in crate::object) fn of_variables(
    btf: &Btf,
    section: &str,
    symbols: &[&Symbol],
    bytes: u32,
) -> Option<Layout> {
    let places: HashMap<&str, u64> =
        symbols.iter().map(|symbol| (symbol.name, symbol.value)).collect();
    let mut members = vec![];
    for (name, kind) in btf.variables(section) {
        let Some(&place) = places.get(&*name) else { continue };
        let bit_offset = u32::try_from(place).ok()?.checked_mul(8)?;
        let layout = layout(btf, kind, 0)?;
        members.push(Member { name: btf.copy(name)?, bit_offset, field_bits: 0, layout });
    }
    members.sort_by_key(|member| member.bit_offset);
    (!members.is_empty()).then_some(Layout::Struct { bytes, members })
}

fn layout(btf: &Btf, kind: u32, depth: u32) -> Option<Layout> {
    let bytes = btf.size(kind)?;
    let (_, found) = btf.resolve(kind)?;
    Some(match found {
        _ if depth >= DEPTH_MAX => Layout::Opaque { bytes },
        Kind::Integer { bytes: 1..=16, is_signed } => {
            Layout::Integer { bytes, is_signed: *is_signed }
        }
        Kind::Enum { bytes: 1..=8, is_signed, values } => {
            let named = |&(name, value): &(u32, u64)| Some((btf.copy(btf.text(name))?, value));
            let names = values.iter().map(named).collect::<Option<_>>()?;
            Layout::Enum { bytes, is_signed: *is_signed, names }
        }
        Kind::Struct { members, .. } => {
            let read = members.iter().map(|member| {
                Some(Member {
                    name: btf.copy(btf.member_name(member))?,
                    bit_offset: member.bit_offset,
                    field_bits: member.field_bits,
                    layout: layout(btf, member.kind, depth + 1)?,
                })
            });
            Layout::Struct { bytes, members: read.collect::<Option<_>>()? }
        }
        Kind::Array { element, count } => {
            let element = Box::new(layout(btf, *element, depth + 1)?);
            Layout::Array { element, count: *count }
        }
        _ => Layout::Opaque { bytes },
    })
}
