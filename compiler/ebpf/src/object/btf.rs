// SPDX-License-Identifier: Apache-2.0 OR MIT
//! BTF: the types of a program, from section `.BTF` (the kernel's `btf.rst`).

mod bytes;
mod extension;

pub(super) use extension::{CoreRelocation, Extension};

use super::Layout;
use bytes::Bytes;
use std::borrow::Cow;
use std::cell::Cell;

/// Maximum number of typedefs and qualifiers before a type, and maximum depth of nested types.
const MAX_DEPTH: usize = 64;
/// Longest string that is read, in bytes, so that many references into a long one cost little.
const MAX_TEXT_BYTES: usize = 4096;
/// Total size in bytes of types and names in all layouts of maps, at most.
const MAX_COPIED_BYTES: usize = 16 << 20;

/// All types, by id; 0 is void.
pub(super) struct Btf<'d> {
    types: Vec<Type>,
    strings: &'d [u8],
    /// Bytes that may still be copied into layouts: a small file could refer to large names many
    /// times.
    copies_left: Cell<usize>,
}

/// A type.
pub(super) struct Type {
    name: u32,
    pub kind: Kind,
}

/// Kind of a type. Numbers in it are ids of other types.
pub(super) enum Kind {
    Void,
    Integer {
        bytes: u32,
        is_signed: bool,
    },
    Float {
        bytes: u32,
    },
    Pointer(u32),
    Array {
        element: u32,
        count: u32,
    },
    Struct {
        bytes: u32,
        members: Vec<Member>,
    },
    Enum {
        bytes: u32,
        is_signed: bool,
        values: Vec<(u32, u64)>,
    },
    /// A typedef or qualifier.
    Alias(u32),
    FunctionType,
    Variable(u32),
    /// Variables of a section.
    Section(Vec<u32>),
    /// Declarations, tags and functions, of which only the name is needed.
    Other,
}

/// A member of a struct or union.
pub(super) struct Member {
    name: u32,
    pub kind: u32,
    pub bit_offset: u32,
    /// 0 unless it is a bit field.
    pub field_bits: u32,
}

impl<'d> Btf<'d> {
    /// Parses the section.
    ///
    /// # Errors
    /// The section is malformed.
    pub(super) fn parse(section: &'d [u8]) -> Result<Self, String> {
        let mut header = Bytes(section);
        let length = header.header()?;
        let fields: [u32; 4] = header.words().ok_or("the header is truncated")?;
        let [types_at, types_bytes, strings_at, strings_bytes] = fields;
        let part = |name: &str, at: u32, bytes: u32| {
            let body = section.get(length..)?.get(at as usize..)?.get(..bytes as usize);
            body.ok_or(name.to_owned()).ok()
        };
        let types = part("types", types_at, types_bytes).ok_or("types are outside the section")?;
        let strings =
            part("strings", strings_at, strings_bytes).ok_or("strings are outside the section")?;
        let mut types = Bytes(types);
        let mut found = vec![Type { name: 0, kind: Kind::Void }];
        while !types.0.is_empty() {
            let read = read_type(&mut types);
            found
                .push(read.ok_or_else(|| format!("type {} is truncated or unknown", found.len()))?);
        }
        Ok(Self { types: found, strings, copies_left: Cell::new(MAX_COPIED_BYTES) })
    }

    /// Returns the string at an offset; bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self, offset: u32) -> Cow<'d, str> {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        let rest = &rest[..rest.len().min(MAX_TEXT_BYTES)];
        let length = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..length])
    }

    /// Copies a string for a layout, and counts a type with it; returns `None` if the limit is
    /// exceeded.
    pub(super) fn copy(&self, text: Cow<str>) -> Option<String> {
        let bytes = text.len() + size_of::<Layout>();
        self.copies_left.set(self.copies_left.get().checked_sub(bytes)?);
        Some(text.into_owned())
    }

    /// Returns the name of a type; empty if it has none.
    pub(super) fn name(&self, id: u32) -> Cow<'d, str> {
        self.types.get(id as usize).map_or("".into(), |kind| self.text(kind.name))
    }

    /// Returns the name of a member; empty if it has none.
    pub(super) fn member_name(&self, member: &Member) -> Cow<'d, str> {
        self.text(member.name)
    }

    /// Resolves typedefs and qualifiers; returns the type with its id.
    pub(super) fn resolve(&self, mut id: u32) -> Option<(u32, &Kind)> {
        for _ in 0..MAX_DEPTH {
            match &self.types.get(id as usize)?.kind {
                Kind::Alias(other) => id = *other,
                kind => return Some((id, kind)),
            }
        }
        None
    }

    /// Returns the size of a value of a type, in bytes.
    pub(super) fn size(&self, id: u32) -> Option<u32> {
        let (mut id, mut count) = (id, 1_u32);
        for _ in 0..MAX_DEPTH {
            let (_, kind) = self.resolve(id)?;
            let bytes = match kind {
                Kind::Integer { bytes, .. }
                | Kind::Float { bytes }
                | Kind::Struct { bytes, .. }
                | Kind::Enum { bytes, .. } => *bytes,
                Kind::Pointer(_) => 8,
                Kind::Array { element, count: elements } => {
                    count = count.checked_mul(*elements)?;
                    id = *element;
                    continue;
                }
                _ => return None,
            };
            return bytes.checked_mul(count);
        }
        None
    }

    /// Returns the variables of a section: their names and types.
    pub(super) fn variables(&self, section: &str) -> impl Iterator<Item = (Cow<'d, str>, u32)> {
        let is_it =
            |kind: &&Type| matches!(kind.kind, Kind::Section(_)) && self.text(kind.name) == section;
        let ids = self.types.iter().find(is_it).map_or(&[][..], |found| match &found.kind {
            Kind::Section(ids) => ids,
            _ => &[],
        });
        ids.iter().filter_map(|&id| match self.types.get(id as usize)?.kind {
            Kind::Variable(kind) => Some((self.name(id), kind)),
            _ => None,
        })
    }
}

/// Reads a type; returns `None` if it is truncated, or of an unknown kind, whose length is not
/// known.
fn read_type(bytes: &mut Bytes) -> Option<Type> {
    let [name, info, last]: [u32; 3] = bytes.words()?;
    let (count, flag) = (info & 0xffff, info >> 31 != 0);
    let kind = match info >> 24 & 31 {
        1 => {
            let [encoding]: [u32; 1] = bytes.words()?;
            Kind::Integer { bytes: last, is_signed: encoding >> 24 & 1 != 0 }
        }
        2 => Kind::Pointer(last),
        3 => {
            let [element, _index, count]: [u32; 3] = bytes.words()?;
            Kind::Array { element, count }
        }
        4 | 5 => Kind::Struct { bytes: last, members: read_members(bytes, count, flag)? },
        6 => {
            let values = (0..count).map(|_| {
                let [name, value]: [u32; 2] = bytes.words()?;
                let wide = if flag { i64::from(value as i32) as u64 } else { value.into() };
                Some((name, wide))
            });
            Kind::Enum { bytes: last, is_signed: flag, values: values.collect::<Option<_>>()? }
        }
        8..=11 | 18 => Kind::Alias(last),
        7 | 12 => Kind::Other,
        13 => {
            (0..count).try_for_each(|_| bytes.words::<2>().map(drop))?;
            Kind::FunctionType
        }
        14 => {
            bytes.words::<1>()?;
            Kind::Variable(last)
        }
        15 => {
            let variables = (0..count).map(|_| bytes.words::<3>().map(|[kind, ..]| kind));
            Kind::Section(variables.collect::<Option<_>>()?)
        }
        16 => Kind::Float { bytes: last },
        17 => {
            bytes.words::<1>()?;
            Kind::Other
        }
        19 => {
            let values = (0..count).map(|_| {
                let [name, low, high]: [u32; 3] = bytes.words()?;
                Some((name, u64::from(low) | u64::from(high) << 32))
            });
            Kind::Enum { bytes: last, is_signed: flag, values: values.collect::<Option<_>>()? }
        }
        _ => return None,
    };
    Some(Type { name, kind })
}

fn read_members(bytes: &mut Bytes, count: u32, has_fields: bool) -> Option<Vec<Member>> {
    let members = (0..count).map(|_| {
        let [name, kind, offset]: [u32; 3] = bytes.words()?;
        let (bit_offset, field_bits) =
            if has_fields { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
        Some(Member { name, kind, bit_offset, field_bits })
    });
    members.collect()
}
