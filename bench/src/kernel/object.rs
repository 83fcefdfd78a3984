// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel needs of a 64-bit little-endian ELF object for BPF: the instructions of its
//! programs, the definitions of its maps, and which instruction names which map.
//!
//! A map is an object of section `maps`, five 32-bit numbers: type, bytes of a key, bytes of a
//! value, entries, flags. An instruction that loads its address has a relocation against it.

use anyhow::{Context, Result, bail, ensure};
use freeport_port::bpf::{INSTRUCTION_BYTES, MapDefinition};

/// An object file.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    bytes: &'a [u8],
    headers: &'a [u8],
    names: &'a [u8],
}

/// An instruction that loads the address of a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapUse {
    /// Where the instruction starts in its section.
    pub offset: usize,
    /// Which map.
    pub name: String,
}

/// A symbol with a place in a section.
struct Symbol<'a> {
    name: &'a [u8],
    section: usize,
    value: u64,
}

const HEADER_BYTES: usize = 64;
const SECTION_HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const RELOCATION_BYTES: usize = 16;
const MAP_DEFINITION_BYTES: u64 = 20;
const MACHINE_BPF: u64 = 247;
const SECTION_SYMTAB: u64 = 2;
const SECTION_RELA: u64 = 4;
const SECTION_REL: u64 = 9;
/// `R_BPF_64_64`: the 64-bit immediate of two instructions.
const RELOCATION_64_64: u64 = 1;
const MAPS: &str = "maps";

impl<'a> Object<'a> {
    /// Finds the section table.
    ///
    /// # Errors
    /// Bytes that are no such object.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let is_elf = bytes.len() >= HEADER_BYTES && bytes.starts_with(b"\x7fELF\x02\x01");
        ensure!(is_elf, "not a 64-bit little-endian ELF file");
        ensure!(number(bytes, 18, 2) == MACHINE_BPF, "not for BPF");
        ensure!(number(bytes, 58, 2) == SECTION_HEADER_BYTES as u64, "unknown section headers");
        let count = number(bytes, 60, 2);
        let size = count * SECTION_HEADER_BYTES as u64;
        let headers = slice(bytes, number(bytes, 40, 8), size)?;
        let mut object = Self { bytes, headers, names: &[] };
        object.names = object.contents(number(bytes, 62, 2) as usize)?;
        Ok(object)
    }

    /// The contents of a section.
    ///
    /// # Errors
    /// No such section.
    pub fn section(&self, name: &str) -> Result<&'a [u8]> {
        let at = self.find(name).with_context(|| format!("there is no section {name}"))?;
        self.contents(at)
    }

    /// The names of sections with this start, relocations not counted.
    pub fn sections_from(&self, start: &str) -> Vec<String> {
        let names = (0..self.count()).map(|at| String::from_utf8_lossy(self.name(at)));
        names.filter(|name| name.starts_with(start)).map(|name| name.into_owned()).collect()
    }

    /// The maps, in the order of the symbol table.
    ///
    /// # Errors
    /// A damaged object.
    pub fn maps(&self) -> Result<Vec<MapDefinition>> {
        let Some(section) = self.find(MAPS) else { return Ok(vec![]) };
        let contents = self.contents(section)?;
        let mut maps = vec![];
        for symbol in self.symbols()? {
            if symbol.section != section || symbol.name.is_empty() {
                continue;
            }
            let fields = slice(contents, symbol.value, MAP_DEFINITION_BYTES)?;
            let field = |at: usize| number(fields, at * 4, 4) as u32;
            maps.push(MapDefinition {
                name: String::from_utf8_lossy(symbol.name).into_owned(),
                kind: field(0),
                key_bytes: field(1),
                value_bytes: field(2),
                entries: field(3),
                flags: field(4),
            });
        }
        Ok(maps)
    }

    /// Which instructions of a section load addresses of maps.
    ///
    /// # Errors
    /// No such section, or one that needs a relocation that is not of a map.
    pub fn map_uses(&self, section: &str) -> Result<Vec<MapUse>> {
        let at = self.find(section).with_context(|| format!("there is no section {section}"))?;
        let (maps, symbols) = (self.find(MAPS), self.symbols()?);
        let length = self.contents(at)?.len();
        let mut uses = vec![];
        for other in 0..self.count() {
            let header = self.header(other);
            if number(header, 44, 4) != at as u64 {
                continue;
            }
            match number(header, 4, 4) {
                SECTION_REL => {}
                SECTION_RELA => bail!("section {section} has relocations of an unknown form"),
                _ => continue,
            }
            for entry in self.contents(other)?.chunks_exact(RELOCATION_BYTES) {
                let (offset, symbol) = (number(entry, 0, 8) as usize, number(entry, 12, 4));
                let symbol = symbols.get(symbol as usize).context("a symbol beyond the last")?;
                let is_of_map =
                    number(entry, 8, 4) == RELOCATION_64_64 && Some(symbol.section) == maps;
                let name = String::from_utf8_lossy(symbol.name).into_owned();
                ensure!(is_of_map, "section {section} needs {name}, which is not a map");
                let is_within = offset % INSTRUCTION_BYTES == 0
                    && offset.checked_add(2 * INSTRUCTION_BYTES).is_some_and(|end| end <= length);
                ensure!(is_within, "a relocation beyond the end of section {section}");
                uses.push(MapUse { offset, name });
            }
        }
        Ok(uses)
    }

    fn symbols(&self) -> Result<Vec<Symbol<'a>>> {
        let table = (0..self.count()).find(|at| number(self.header(*at), 4, 4) == SECTION_SYMTAB);
        let Some(table) = table else { return Ok(vec![]) };
        let names = self.contents(number(self.header(table), 40, 4) as usize)?;
        let symbol = |entry: &[u8]| Symbol {
            name: text_at(names, number(entry, 0, 4) as usize),
            section: number(entry, 6, 2) as usize,
            value: number(entry, 8, 8),
        };
        Ok(self.contents(table)?.chunks_exact(SYMBOL_BYTES).map(symbol).collect())
    }

    fn find(&self, name: &str) -> Option<usize> {
        (0..self.count()).find(|at| self.name(*at) == name.as_bytes())
    }

    fn count(&self) -> usize {
        self.headers.len() / SECTION_HEADER_BYTES
    }

    fn header(&self, at: usize) -> &'a [u8] {
        &self.headers[at * SECTION_HEADER_BYTES..][..SECTION_HEADER_BYTES]
    }

    fn contents(&self, at: usize) -> Result<&'a [u8]> {
        ensure!(at < self.count(), "a section beyond the last");
        let header = self.header(at);
        slice(self.bytes, number(header, 24, 8), number(header, 32, 8))
    }

    fn name(&self, at: usize) -> &'a [u8] {
        text_at(self.names, number(self.header(at), 0, 4) as usize)
    }
}

/// The text that starts there and ends with a 0.
fn text_at(names: &[u8], start: usize) -> &[u8] {
    names.get(start..).unwrap_or(&[]).split(|byte| *byte == 0).next().unwrap_or(&[])
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn slice(bytes: &[u8], start: u64, length: u64) -> Result<&[u8]> {
    let end = start.checked_add(length).context("a section beyond the end of the file")?;
    let range = start as usize..end as usize;
    bytes.get(range).context("a section beyond the end of the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One section of a made-up object: its name, type, link, info and contents.
    type Section = (&'static str, u64, u64, u64, Vec<u8>);

    /// An object with these sections behind the empty one, and the names last.
    fn object(sections: &[Section]) -> Vec<u8> {
        let mut names = vec![0];
        let mut all = vec![("", 0, 0, 0, vec![])];
        all.extend(sections.iter().cloned());
        let starts: Vec<usize> = all
            .iter()
            .map(|section| {
                let start = names.len();
                names.extend([section.0.as_bytes(), &[0]].concat());
                start
            })
            .collect();
        let names_start = names.len();
        names.extend(b".names\0");
        all.push((".names", 3, 0, 0, names));
        let mut bytes = vec![0; HEADER_BYTES + all.len() * SECTION_HEADER_BYTES];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let last = all.len() - 1;
        for (at, value) in [(18, 247), (40, 64), (58, 64), (60, all.len()), (62, last)] {
            bytes[at] = value as u8;
        }
        for (at, section) in all.iter().enumerate() {
            let header = HEADER_BYTES + at * SECTION_HEADER_BYTES;
            let name = starts.get(at).copied().unwrap_or(names_start);
            let (start, length) = (bytes.len() as u64, section.4.len() as u64);
            bytes[header..header + 4].copy_from_slice(&(name as u32).to_le_bytes());
            bytes[header + 4..header + 8].copy_from_slice(&(section.1 as u32).to_le_bytes());
            bytes[header + 24..header + 32].copy_from_slice(&start.to_le_bytes());
            bytes[header + 32..header + 40].copy_from_slice(&length.to_le_bytes());
            bytes[header + 40..header + 44].copy_from_slice(&(section.2 as u32).to_le_bytes());
            bytes[header + 44..header + 48].copy_from_slice(&(section.3 as u32).to_le_bytes());
            bytes.extend(&section.4);
        }
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// A program of three instructions, the second and third of which load the map `flows`.
    fn sample(symbol_of_relocation: u32) -> Vec<u8> {
        let symbols = words(&[
            // No symbol; then `flows`: name 1, section 2, at 20; then `data`: name 7, section 1.
            0,
            0,
            0,
            0,
            0,
            0,
            1,
            2 << 16,
            20,
            0,
            20,
            0,
            7,
            1 << 16,
            0,
            0,
            0,
            0,
        ]);
        object(&[
            ("xdp", 1, 0, 0, words(&[0x95, 0, 0x18, 0, 0, 0])),
            ("maps", 1, 0, 0, words(&[9, 9, 9, 9, 9, 1, 16, 8, 1024, 2])),
            (".symtab", SECTION_SYMTAB, 4, 0, symbols),
            (".strtab", 3, 0, 0, b"\0flows\0data\0".to_vec()),
            (".relxdp", SECTION_REL, 3, 1, words(&[8, 0, 1, symbol_of_relocation])),
        ])
    }

    #[test]
    fn sections_are_found_by_name() {
        let bytes = sample(1);
        let object = Object::parse(&bytes).expect("a good object");
        assert_eq!(object.section("xdp").expect("it is there").len(), 24);
        assert!(object.section("license").is_err());
        assert_eq!(object.sections_from("xdp"), ["xdp"]);
    }

    #[test]
    fn maps_and_their_uses_are_found() {
        let bytes = sample(1);
        let object = Object::parse(&bytes).expect("a good object");
        let flows = MapDefinition {
            name: "flows".into(),
            kind: 1,
            key_bytes: 16,
            value_bytes: 8,
            entries: 1024,
            flags: 2,
        };
        assert_eq!(object.maps().expect("good maps"), [flows]);
        let uses = object.map_uses("xdp").expect("good relocations");
        assert_eq!(uses, [MapUse { offset: 8, name: "flows".into() }]);
    }

    #[test]
    fn a_relocation_that_is_not_of_a_map_is_refused() {
        let bytes = sample(2);
        let object = Object::parse(&bytes).expect("a good object");
        let error = object.map_uses("xdp").expect_err("data is not a map");
        assert!(error.to_string().contains("needs data"), "{error}");
    }

    #[test]
    fn damaged_objects_never_panic() {
        let good = sample(1);
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                for bytes in [&bytes[..], &bytes[..at]] {
                    if let Ok(object) = Object::parse(bytes) {
                        let _ = (object.section("xdp"), object.maps(), object.map_uses("xdp"));
                    }
                }
            }
        }
    }
}
