// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps of section `.maps`: variables whose type holds the definition. Numbers are lengths of
//! arrays (`__uint`) or the only value of an enum (`__ulong`), types are targets of pointers
//! (`__type`), and initial entries are an array of pointers (`__array`).

use super::btf::{Btf, Kind, Member};
use super::collect::Maps;
use super::elf::{Elf, Home};
use super::{Error, Layout, MapDefinition, MapKind, SlotTarget, layout};

/// Reads all definitions with their offsets. An invalid one has a fault.
///
/// # Errors
/// The object has no types.
pub(super) fn read(
    elf: &Elf,
    section: usize,
    btf: Option<&Btf>,
) -> Result<Vec<(u64, MapDefinition)>, Error> {
    let symbols = elf.defined_in(section);
    let Some(btf) = btf else {
        return Err(Error::in_section(".maps", "needs section `.BTF`: compile with -g"));
    };
    let mut maps = vec![];
    for symbol in symbols {
        let name = symbol.name;
        let kind = btf.variables(".maps").find(|(variable, _)| variable == name);
        let map = match kind {
            Some((_, kind)) => Definition { btf, is_inner: false }.read(name, kind),
            None => Err("section `.BTF` has no variable of that name".to_owned()),
        };
        let map = map.unwrap_or_else(|fault| MapDefinition {
            name: name.to_owned(),
            fault: Some(fault),
            ..MapDefinition::default()
        });
        maps.push((symbol.value, map));
    }
    Ok(maps)
}

/// Sets the initial entries of the maps, from the relocations of their section.
///
/// # Errors
/// The first entry whose target its map cannot hold.
pub(super) fn set_slots(
    elf: &Elf,
    btf: Option<&Btf>,
    maps: &mut Maps,
    program: impl Fn(usize, u64) -> Option<usize>,
) -> Result<(), Error> {
    let Some(btf) = btf else { return Ok(()) };
    let of_maps = elf.sections.iter().enumerate().filter(|(_, section)| section.name == ".maps");
    for (index, section) in of_maps {
        let symbols = elf.defined_in(index);
        for relocation in &section.relocations {
            let wrong = |reason: String| {
                let reason = format!("the pointer in byte {}: {reason}", relocation.offset);
                Error::in_section(".maps", reason)
            };
            let end = symbols.partition_point(|symbol| symbol.value <= relocation.offset);
            let Some(holder) = end.checked_sub(1).map(|at| symbols[at]) else {
                return Err(wrong("belongs to no map".to_owned()));
            };
            let Some(map) = maps.defined(index, holder.value) else {
                return Err(wrong("belongs to no map".to_owned()));
            };
            if maps.definitions[map].fault.is_some() {
                continue;
            }
            let slot = slot(btf, holder.name, relocation.offset - holder.value).map_err(wrong)?;
            let target = elf.symbols.get(relocation.symbol).cloned().unwrap_or_default();
            let Home::Section(home) = target.home else {
                return Err(wrong(format!("`{}` is not defined here", target.name)));
            };
            let is_of_maps = maps.definitions[map].kind.is_of_maps();
            let found = match is_of_maps {
                true => maps.defined(home, target.value).map(SlotTarget::Map),
                false => program(home, target.value).map(SlotTarget::Program),
            };
            let Some(found) = found else {
                let what = if is_of_maps { "map" } else { "program" };
                return Err(wrong(format!("`{}` is not a {what}", target.name)));
            };
            maps.definitions[map].slots.push((slot, found));
        }
    }
    Ok(())
}

/// Returns the key of the entry whose pointer is `offset` bytes after the start of a definition.
fn slot(btf: &Btf, map: &str, offset: u64) -> Result<u32, String> {
    let kind = btf.variables(".maps").find(|(variable, _)| variable == map);
    let Some((_, Kind::Struct { members, .. })) = kind.and_then(|(_, kind)| btf.resolve(kind))
    else {
        return Err("its map has no type".to_owned());
    };
    let values = members.iter().find(|member| btf.member_name(member) == "values");
    let Some(values) = values else { return Err(format!("map `{map}` has no values")) };
    let inside = offset.checked_sub(u64::from(values.bit_offset / 8));
    match inside {
        Some(inside) if inside.is_multiple_of(8) => {
            u32::try_from(inside / 8).map_err(|_| "is too far from the start".to_owned())
        }
        _ => Err(format!("is not an entry of the values of map `{map}`")),
    }
}

/// A definition while it is read.
struct Definition<'b, 'd> {
    btf: &'b Btf<'d>,
    /// Whether it is the template for the values of another map.
    is_inner: bool,
}

impl Definition<'_, '_> {
    fn read(&self, name: &str, kind: u32) -> Result<MapDefinition, String> {
        let Some((_, Kind::Struct { members, .. })) = self.btf.resolve(kind) else {
            return Err("its type must be a struct".to_owned());
        };
        let mut map = MapDefinition { name: name.to_owned(), ..MapDefinition::default() };
        let mut has_kind = false;
        for member in members {
            let field = self.btf.member_name(member);
            has_kind |= field == "type";
            self.set(&mut map, &field, member)
                .map_err(|reason| format!("field `{field}`: {reason}"))?;
        }
        if !has_kind {
            return Err("field `type` is missing".to_owned());
        }
        if map.kind.is_of_maps() && map.inner.is_none() && !self.is_inner {
            return Err(
                "the type of its values is missing: add field `values` (__array)".to_owned()
            );
        }
        map.set_entries(map.max_entries);
        if map.inner.is_some() && !map.kind.is_of_maps() {
            return Err(format!("a map of kind {} cannot have maps as values", map.kind));
        }
        Ok(map)
    }

    fn set(&self, map: &mut MapDefinition, field: &str, member: &Member) -> Result<(), String> {
        match field {
            "type" => map.kind = MapKind::from(self.number(member)?),
            "max_entries" => map.max_entries = self.number(member)?,
            "map_flags" => map.flags = self.number(member)?,
            "map_extra" => map.extra = self.long_number(member)?,
            // The memory node has no effect on the behaviour.
            "numa_node" => drop(self.number(member)?),
            "key_size" => set_size(&mut map.key_size, self.number(member)?)?,
            "value_size" => set_size(&mut map.value_size, self.number(member)?)?,
            "key" => {
                set_size(&mut map.key_size, self.size_of_pointed(member)?)?;
                map.key_layout = self.layout_of_pointed(member, map.key_size);
            }
            "value" => {
                set_size(&mut map.value_size, self.size_of_pointed(member)?)?;
                map.value_layout = self.layout_of_pointed(member, map.value_size);
                map.lock_at = self.lock_of_pointed(member);
            }
            "pinning" => {
                map.pinned = match self.number(member)? {
                    0 => false,
                    1 => true,
                    other => return Err(format!("unknown pinning mode {other}")),
                }
            }
            "values" => self.set_values(map, member)?,
            _ => return Err("is not known".to_owned()),
        }
        Ok(())
    }

    /// Sets the type of the entries: maps, or programs, whose type does not matter.
    fn set_values(&self, map: &mut MapDefinition, member: &Member) -> Result<(), String> {
        if self.is_inner {
            return Err("an inner map cannot hold maps or programs".to_owned());
        }
        let pointed = match self.btf.resolve(member.kind) {
            Some((_, Kind::Array { element, .. })) => self.pointed(*element)?,
            _ => return Err("must be an array of pointers".to_owned()),
        };
        set_size(&mut map.value_size, 4)?;
        match self.btf.resolve(pointed) {
            Some((_, Kind::FunctionType)) => {}
            Some((id, Kind::Struct { .. })) => {
                let inner = Definition { btf: self.btf, is_inner: true }.read("", id);
                map.inner = Some(Box::new(inner.map_err(|reason| format!("inner map: {reason}"))?));
            }
            _ => return Err("points to neither maps nor programs".to_owned()),
        }
        Ok(())
    }

    fn number(&self, member: &Member) -> Result<u32, String> {
        let number = self.long_number(member)?;
        number.try_into().map_err(|_| format!("{number} does not fit in 32 bits"))
    }

    fn long_number(&self, member: &Member) -> Result<u64, String> {
        if let Some((_, Kind::Enum { values, .. })) = self.btf.resolve(member.kind) {
            return match values[..] {
                [(_, value)] => Ok(value),
                _ => Err("must have one value (use __ulong)".to_owned()),
            };
        }
        match self.pointed(member.kind).map(|pointed| self.btf.resolve(pointed)) {
            Ok(Some((_, Kind::Array { count, .. }))) => Ok((*count).into()),
            _ => Err("must be a number (use __uint)".to_owned()),
        }
    }

    fn pointed(&self, kind: u32) -> Result<u32, String> {
        match self.btf.resolve(kind) {
            Some((_, Kind::Pointer(pointed))) => Ok(*pointed),
            _ => Err("must be a pointer".to_owned()),
        }
    }

    fn size_of_pointed(&self, member: &Member) -> Result<u32, String> {
        let pointed =
            self.pointed(member.kind).map_err(|_| "must be a type (use __type)".to_owned())?;
        self.btf.size(pointed).ok_or_else(|| "is a type without a size".to_owned())
    }

    fn layout_of_pointed(&self, member: &Member, bytes: u32) -> Option<Layout> {
        layout::of_type(self.btf, self.pointed(member.kind).ok()?, bytes)
    }

    /// Returns the offset of a value's lock, which the kernel looks for among the members of a
    /// struct.
    fn lock_of_pointed(&self, member: &Member) -> Option<u32> {
        let (_, value) = self.btf.resolve(self.pointed(member.kind).ok()?)?;
        let Kind::Struct { members, .. } = value else { return None };
        let is_lock = |member: &&Member| {
            let resolved = self.btf.resolve(member.kind);
            resolved.is_some_and(|(id, _)| self.btf.name(id) == "bpf_spin_lock")
        };
        members.iter().find(is_lock).map(|lock| lock.bit_offset / 8)
    }
}

/// Sets a size that may be defined twice, but not to different values.
fn set_size(size: &mut u32, to: u32) -> Result<(), String> {
    if *size != 0 && *size != to {
        return Err(format!("says {to} bytes, another field {size}"));
    }
    *size = to;
    Ok(())
}
