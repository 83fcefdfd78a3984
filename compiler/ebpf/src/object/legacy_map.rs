// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps of section `maps`, as programs defined them before BTF: structs of at least five numbers,
//! the `struct bpf_map_def` of old libbpf versions.

use super::elf::Elf;
use super::{Error, MapDefinition, MapKind};

/// Size of the known fields in bytes.
const KNOWN_BYTES: usize = 20;

/// Reads all definitions with their offsets.
///
/// # Errors
/// The first definition that is too short, or has additional nonzero fields.
pub(super) fn read(elf: &Elf, section: usize) -> Result<Vec<(u64, MapDefinition)>, Error> {
    let (symbols, section) = (elf.defined_in(section), &elf.sections[section]);
    let mut maps = vec![];
    for (at, symbol) in symbols.iter().enumerate() {
        let name = symbol.name;
        let wrong =
            |reason: &str| Error::in_section(section.name, format!("map `{name}` {reason}"));
        let start = usize::try_from(symbol.value).unwrap_or(usize::MAX);
        let next = symbols.get(at + 1).map(|next| usize::try_from(next.value));
        let end = next.map_or(section.data.len(), |next| next.unwrap_or(usize::MAX));
        let Some(bytes) = section.data.get(start..end) else {
            return Err(wrong("is outside the section"));
        };
        let Some((known, more)) = bytes.split_at_checked(KNOWN_BYTES) else {
            return Err(wrong("is truncated: it must have at least five numbers"));
        };
        if more.iter().any(|&byte| byte != 0) {
            return Err(wrong(
                "has more than type, key_size, value_size, max_entries and map_flags: define it \
                 with BTF, in section `.maps`",
            ));
        }
        let mut numbers = known
            .chunks_exact(4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let mut number = || numbers.next().unwrap_or(0);
        let map = MapDefinition {
            name: name.to_owned(),
            kind: MapKind::from(number()),
            key_size: number(),
            value_size: number(),
            max_entries: number(),
            flags: number(),
            ..MapDefinition::default()
        };
        if map.kind.is_of_maps() {
            return Err(wrong("is a map of maps, whose inner map must be defined with BTF"));
        }
        maps.push((symbol.value, map));
    }
    Ok(maps)
}
