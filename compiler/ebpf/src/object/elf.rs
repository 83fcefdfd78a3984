// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads sections, symbols and relocations of an ELF file, with all sizes checked.

use super::Error;
use object::read::elf::ElfFile64;
use object::{
    LittleEndian, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags,
    RelocationTarget, SectionFlags, SectionKind, SymbolKind, SymbolSection, elf,
};

/// Total size in bytes of an object's data when loaded, at most. Zeroed data takes no space in a
/// file, so a small file could request any amount.
const MAX_DATA_BYTES: u64 = 256 << 20;

/// Contents of a file.
pub(super) struct Elf<'d> {
    /// By number; the first is empty.
    pub sections: Vec<Section<'d>>,
    /// By number; the first is empty.
    pub symbols: Vec<Symbol<'d>>,
}

/// A section.
#[derive(Default)]
pub(super) struct Section<'d> {
    pub name: &'d str,
    /// Empty if all its bytes are 0.
    pub data: &'d [u8],
    /// Size in bytes when loaded.
    pub size: usize,
    pub is_code: bool,
    /// Whether it is loaded.
    pub is_allocated: bool,
    /// In the order of their offsets.
    pub relocations: Vec<Relocation>,
}

/// A reference to a symbol.
pub(super) struct Relocation {
    pub offset: u64,
    pub symbol: usize,
    /// `R_BPF_*`.
    pub kind: u32,
}

/// A symbol.
#[derive(Clone, Default)]
pub(super) struct Symbol<'d> {
    pub name: &'d str,
    pub home: Home,
    /// Offset in its section.
    pub value: u64,
    pub size: u64,
    pub kind: Kind,
    pub is_local: bool,
    pub is_weak: bool,
}

/// Place where a symbol is defined.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Home {
    /// Not in this file.
    #[default]
    Undefined,
    /// In a section, by its number.
    Section(usize),
    /// Elsewhere, in ways that BPF objects do not use.
    Elsewhere,
}

/// Kind of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Kind {
    Function,
    Data,
    Section,
    #[default]
    Other,
}

impl<'d> Elf<'d> {
    /// Parses a file.
    ///
    /// # Errors
    /// The file is not a BPF object, or parts lie outside it.
    pub(super) fn parse(bytes: &'d [u8]) -> Result<Self, Error> {
        check_header(bytes)?;
        let broken =
            |error: object::Error| Error::of_file(format!("the ELF file is malformed: {error}"));
        let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(broken)?;
        let (mut sections, mut data_bytes) = (vec![], 0);
        for section in file.sections() {
            let index = section.index().0;
            let name = section.name().map_err(broken)?;
            sections.resize_with(sections.len().max(index + 1), Section::default);
            let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
            let is_allocated = sh_flags & u64::from(elf::SHF_ALLOC) != 0;
            let is_zero = section.kind() == SectionKind::UninitializedData;
            let size = section.size();
            data_bytes += if is_allocated { size.min(MAX_DATA_BYTES + 1) } else { 0 };
            if data_bytes > MAX_DATA_BYTES {
                let limit = MAX_DATA_BYTES >> 20;
                return Err(Error::in_section(name, format!("over {limit} MiB are loaded")));
            }
            if sh_flags & u64::from(elf::SHF_COMPRESSED) != 0 && is_allocated {
                return Err(Error::in_section(name, "is compressed"));
            }
            let data = if is_zero { &[] } else { section.data().map_err(broken)? };
            sections[index] = Section {
                name,
                data,
                size: if is_allocated { size as usize } else { data.len() },
                is_code: sh_flags & u64::from(elf::SHF_EXECINSTR) != 0 && !is_zero,
                is_allocated,
                relocations: if is_allocated { relocations(name, &section)? } else { vec![] },
            };
        }
        let mut symbols = vec![];
        for symbol in file.symbols() {
            let index = symbol.index().0;
            symbols.resize_with(symbols.len().max(index + 1), Symbol::default);
            symbols[index] = read_symbol(&symbol).map_err(broken)?;
        }
        Ok(Self { sections, symbols })
    }

    /// Returns the first section with a name.
    pub(super) fn section(&self, name: &str) -> Option<&Section<'d>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Returns the named symbols that are defined in a section, by offset.
    pub(super) fn defined_in(&self, section: usize) -> Vec<&Symbol<'d>> {
        let exists = |symbol: &&Symbol| {
            symbol.home == Home::Section(section)
                && symbol.kind != Kind::Section
                && !symbol.name.is_empty()
        };
        let mut found: Vec<&Symbol> = self.symbols.iter().filter(exists).collect();
        found.sort_by_key(|symbol| symbol.value);
        found
    }
}

/// Checks the type of the file, so that an error names what is wrong with it.
fn check_header(bytes: &[u8]) -> Result<(), Error> {
    let field = |at: usize| bytes.get(at..at + 2).map(|field| [field[0], field[1]]);
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(Error::of_file("is not an ELF file"));
    }
    let [Some(_), Some(kind), Some(machine)] = [field(4), field(16), field(18)] else {
        return Err(Error::of_file("is too short for an ELF file"));
    };
    if bytes[4] != elf::ELFCLASS64 || bytes[5] != elf::ELFDATA2LSB {
        return Err(Error::of_file("is not a 64-bit little-endian ELF file (clang -target bpfel)"));
    }
    let (kind, machine) = (u16::from_le_bytes(kind), u16::from_le_bytes(machine));
    if machine != elf::EM_BPF {
        return Err(Error::of_file(format!("is for machine {machine}, not for BPF (247)")));
    }
    if kind != elf::ET_REL {
        return Err(Error::of_file(format!("is of ELF type {kind}, not relocatable (1)")));
    }
    Ok(())
}

fn relocations<'d>(
    name: &str,
    section: &impl object::ObjectSection<'d>,
) -> Result<Vec<Relocation>, Error> {
    let mut found = vec![];
    for (offset, relocation) in section.relocations() {
        let RelocationFlags::Elf { r_type: kind } = relocation.flags() else { continue };
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            let reason = format!("the relocation of byte {offset} has no symbol");
            return Err(Error::in_section(name, reason));
        };
        if !relocation.has_implicit_addend() && relocation.addend() != 0 {
            let reason = format!("the relocation of byte {offset} has an explicit addend");
            return Err(Error::in_section(name, reason));
        }
        found.push(Relocation { offset, symbol: symbol.0, kind });
    }
    found.sort_by_key(|relocation| relocation.offset);
    Ok(found)
}

fn read_symbol<'d>(symbol: &impl object::ObjectSymbol<'d>) -> Result<Symbol<'d>, object::Error> {
    Ok(Symbol {
        name: symbol.name()?,
        home: match symbol.section() {
            SymbolSection::Section(index) => Home::Section(index.0),
            SymbolSection::Undefined => Home::Undefined,
            _ => Home::Elsewhere,
        },
        value: symbol.address(),
        size: symbol.size(),
        kind: match symbol.kind() {
            SymbolKind::Text => Kind::Function,
            SymbolKind::Data => Kind::Data,
            SymbolKind::Section => Kind::Section,
            _ => Kind::Other,
        },
        is_local: symbol.is_local(),
        is_weak: symbol.is_weak(),
    })
}
