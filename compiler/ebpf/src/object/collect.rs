// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All maps of a file: those that it defines, then those of its data sections.

use super::btf::Btf;
use super::elf::{Elf, Home, Symbol};
use super::{Error, MapDefinition, MapKind, layout, legacy_map, typed_map};
use std::collections::HashMap;

/// `BPF_F_RDONLY_PROG`: read-only for programs.
const READ_ONLY_FOR_PROGRAMS: u32 = 1 << 7;
/// `BPF_F_MMAPABLE`: user space can map it as memory.
const MAPPABLE: u32 = 1 << 10;

/// Maps, indexed by their symbols.
#[derive(Default)]
pub(super) struct Maps {
    pub definitions: Vec<MapDefinition>,
    /// Defined maps by the section and offset of their symbol.
    defined: HashMap<(usize, u64), usize>,
    /// Maps of data sections, by section.
    data: HashMap<usize, usize>,
}

/// Target of a reference to a map, relative to a symbol.
pub(super) enum Reference {
    /// The map itself.
    Map(usize),
    /// An address in its only value.
    Value { map: usize, offset: u64 },
}

impl Maps {
    /// Collects the maps of a file.
    ///
    /// # Errors
    /// An invalid definition.
    pub(super) fn collect(elf: &Elf, btf: Option<&Btf>) -> Result<Self, Error> {
        let mut maps = Self::default();
        for (index, section) in elf.sections.iter().enumerate() {
            let found = match section.name {
                ".maps" => typed_map::read(elf, index, btf)?,
                "maps" => legacy_map::read(elf, index)?,
                _ => continue,
            };
            for (offset, definition) in found {
                maps.define(index, offset, definition)?;
            }
        }
        maps.collect_data(elf, btf)?;
        Ok(maps)
    }

    fn define(&mut self, section: usize, offset: u64, map: MapDefinition) -> Result<(), Error> {
        if self.definitions.iter().any(|other| other.name == map.name) {
            return Err(Error::of_file(format!("map `{}` is defined twice", map.name)));
        }
        self.defined.insert((section, offset), self.definitions.len());
        self.definitions.push(map);
        Ok(())
    }

    fn collect_data(&mut self, elf: &Elf, btf: Option<&Btf>) -> Result<(), Error> {
        for (index, section) in elf.sections.iter().enumerate() {
            if !is_data(section.name) || !section.is_allocated || section.size == 0 {
                continue;
            }
            let fault = section.relocations.first().map(|relocation| {
                let name = elf.symbols.get(relocation.symbol).map_or("", |symbol| symbol.name);
                format!(
                    "byte {} holds the address of `{name}`, which is not known before the program \
                     runs: set it in the program",
                    relocation.offset
                )
            });
            let is_constant = section.name.starts_with(".rodata");
            // Zeroed memory is allocated lazily, so only the initialised part is copied.
            let mut initial = vec![0; section.size];
            initial[..section.data.len()].copy_from_slice(section.data);
            self.data.insert(index, self.definitions.len());
            let (name, value_size) = (section.name.to_owned(), section.size as u32);
            let symbols = elf.defined_in(index);
            let layout = |btf| layout::of_variables(btf, &name, &symbols, value_size);
            let value_layout = btf.and_then(layout);
            self.definitions.push(MapDefinition {
                name,
                kind: MapKind::Array,
                key_size: 4,
                value_size,
                value_layout,
                max_entries: 1,
                flags: MAPPABLE | if is_constant { READ_ONLY_FOR_PROGRAMS } else { 0 },
                initial: Some(initial),
                fault,
                ..MapDefinition::default()
            });
        }
        Ok(())
    }

    /// Resolves a reference to the place `addend` bytes after a symbol.
    ///
    /// # Errors
    /// No map begins there, although the section holds maps, or the place is outside the data.
    pub(super) fn reference(
        &self,
        symbol: &Symbol,
        addend: i64,
    ) -> Result<Option<Reference>, String> {
        let Home::Section(section) = symbol.home else { return Ok(None) };
        let place = i128::from(symbol.value) + i128::from(addend);
        let place =
            u64::try_from(place).map_err(|_| "refers to a place before the section".to_owned())?;
        if let Some(&map) = self.data.get(&section) {
            let size = u64::from(self.definitions[map].value_size);
            if place > size {
                return Err(format!("refers to byte {place} of data with {size} bytes"));
            }
            return Ok(Some(Reference::Value { map, offset: place }));
        }
        if let Some(&map) = self.defined.get(&(section, place)) {
            return Ok(Some(Reference::Map(map)));
        }
        if self.defined.keys().any(|(other, _)| *other == section) {
            return Err(format!("refers to byte {place} of the maps, where no map begins"));
        }
        Ok(None)
    }

    /// Returns the map defined at this section and offset.
    pub(super) fn defined(&self, section: usize, offset: u64) -> Option<usize> {
        self.defined.get(&(section, offset)).copied()
    }
}

fn is_data(section: &str) -> bool {
    [".data", ".rodata", ".bss"].iter().any(|kind| {
        section.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}
