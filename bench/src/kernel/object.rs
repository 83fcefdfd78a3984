// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sections of a 64-bit little-endian ELF object, as far as a BPF program without maps needs.

use anyhow::{Context, Result, bail, ensure};

/// An object file.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    bytes: &'a [u8],
    headers: &'a [u8],
    names: &'a [u8],
}

const HEADER_BYTES: usize = 64;
const SECTION_HEADER_BYTES: usize = 64;
const MACHINE_BPF: u64 = 247;
const SECTION_REL: u64 = 9;
const SECTION_RELA: u64 = 4;

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
    /// No such section, or one that needs relocation.
    pub fn section(&self, name: &str) -> Result<&'a [u8]> {
        let at = (0..self.count()).find(|at| self.name(*at) == name.as_bytes());
        let at = at.with_context(|| format!("there is no section {name}"))?;
        for other in 0..self.count() {
            let header = self.header(other);
            let is_relocation = [SECTION_REL, SECTION_RELA].contains(&number(header, 4, 4));
            if is_relocation && number(header, 44, 4) == at as u64 {
                bail!("section {name} needs relocation: the program has maps or globals");
            }
        }
        self.contents(at)
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
        let start = number(self.header(at), 0, 4) as usize;
        let rest = self.names.get(start..).unwrap_or(&[]);
        rest.split(|byte| *byte == 0).next().unwrap_or(&[])
    }
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

    /// An object with the sections "" (none), "xdp" and the names.
    fn sample() -> Vec<u8> {
        let mut bytes = vec![0; 64 + 3 * 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for (at, value) in [(18, 247), (40, 64), (58, 64), (60, 3), (62, 2)] {
            bytes[at] = value;
        }
        let data = bytes.len() as u64;
        let sections = [(1, 1_u64, data, 4_u64), (2, 5, data + 4, 16)];
        for (at, name, start, length) in sections {
            let header = 64 + at * 64;
            bytes[header] = name as u8;
            bytes[header + 4] = 1;
            bytes[header + 24..header + 32].copy_from_slice(&start.to_le_bytes());
            bytes[header + 32..header + 40].copy_from_slice(&length.to_le_bytes());
        }
        bytes.extend(b"code");
        bytes.extend(b"\0xdp\0.names\0\0\0\0\0");
        bytes
    }

    #[test]
    fn sections_are_found_by_name() {
        let bytes = sample();
        let object = Object::parse(&bytes).expect("a good object");
        assert_eq!(object.section("xdp").expect("it is there"), b"code");
        assert!(object.section("maps").is_err());
    }

    #[test]
    fn damaged_objects_never_panic() {
        let good = sample();
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                for bytes in [&bytes[..], &bytes[..at]] {
                    let _ = Object::parse(bytes).and_then(|object| object.section("xdp"));
                }
            }
        }
    }

    #[test]
    fn a_program_that_needs_relocation_is_refused() {
        let mut bytes = sample();
        let header = 64 + 2 * 64;
        bytes[header + 4] = SECTION_REL as u8;
        bytes[header + 44] = 1;
        let object = Object::parse(&bytes).expect("a good object");
        assert!(object.section("xdp").is_err());
    }
}
