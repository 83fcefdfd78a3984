// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Section `.BTF.ext`: source lines of instructions, and relocations of instructions that depend on
//! type layouts, which may differ on the machine that runs the program (CO-RE).

use super::Btf;
use super::bytes::Bytes;
use std::collections::HashMap;

/// Records of instructions, by the name of their section.
#[derive(Default)]
pub(in crate::object) struct Extension {
    lines: HashMap<String, Vec<SourceLine>>,
    relocations: HashMap<String, Vec<CoreRelocation>>,
}

/// A source line of instructions.
#[derive(Clone, Copy, Debug)]
pub(in crate::object) struct SourceLine {
    /// Slot of the first instruction in its section.
    pub slot: usize,
    /// Offsets of file name and text among the strings.
    pub file: u32,
    pub text: u32,
    pub line: u32,
    pub column: u32,
}

/// A CO-RE relocation of an instruction.
#[derive(Clone, Copy, Debug)]
pub(in crate::object) struct CoreRelocation {
    /// Slot of the instruction in its section.
    pub slot: usize,
    /// The root type.
    pub root: u32,
    /// Path from the root type, as a string: indices of members and elements.
    pub access: u32,
    /// Kind of the relocation.
    pub kind: u32,
}

impl Extension {
    /// Parses the section.
    ///
    /// # Errors
    /// The section is malformed.
    pub(in crate::object) fn parse(section: &[u8], btf: &Btf) -> Result<Self, String> {
        let mut header = Bytes(section);
        let length = header.header()?;
        let parts: [u32; 4] = header.words().ok_or("the header is truncated")?;
        // Older compilers do not emit relocations.
        let relocations = if length >= 32 { header.words() } else { None }.unwrap_or([0, 0]);
        let body = section.get(length..).ok_or("the header is truncated")?;
        let part = |at: u32, bytes: u32| body.get(at as usize..)?.get(..bytes as usize);
        let lines = part(parts[2], parts[3]).ok_or("line information is outside the section")?;
        let relocations =
            part(relocations[0], relocations[1]).ok_or("relocations are outside the section")?;
        let lines = records(lines, btf, |[offset, file, text, place]: [u32; 4]| {
            let (line, column) = (place >> 10, place & 1023);
            SourceLine { slot: offset as usize / 8, file, text, line, column }
        });
        let relocations = records(relocations, btf, |[offset, root, access, kind]: [u32; 4]| {
            CoreRelocation { slot: offset as usize / 8, root, access, kind }
        });
        let (lines, relocations) = (
            lines.ok_or("line information is truncated")?,
            relocations.ok_or("relocations are truncated")?,
        );
        let mut found = Self { lines, relocations };
        found.lines.values_mut().for_each(|lines| lines.sort_by_key(|line| line.slot));
        Ok(found)
    }

    /// Returns the source lines of a section, by slot.
    pub(in crate::object) fn lines(&self, section: &str) -> &[SourceLine] {
        self.lines.get(section).map_or(&[], Vec::as_slice)
    }

    /// Returns the last source line that begins at or before a slot.
    pub(in crate::object) fn line(&self, section: &str, slot: usize) -> Option<&SourceLine> {
        let lines = self.lines(section);
        lines.get(lines.partition_point(|line| line.slot <= slot).checked_sub(1)?)
    }

    /// Returns the CO-RE relocations of a section.
    pub(in crate::object) fn relocations(&self, section: &str) -> &[CoreRelocation] {
        self.relocations.get(section).map_or(&[], Vec::as_slice)
    }
}

/// Reads records of one type, grouped by section. They may be longer than the known fields.
fn records<const N: usize, T>(
    part: &[u8],
    btf: &Btf,
    read: impl Fn([u32; N]) -> T,
) -> Option<HashMap<String, Vec<T>>> {
    let mut found: HashMap<String, Vec<T>> = HashMap::new();
    let mut bytes = Bytes(part);
    if part.is_empty() {
        return Some(found);
    }
    let [record_bytes] = bytes.words()?;
    let record_bytes = record_bytes as usize;
    if record_bytes < 4 * N {
        return None;
    }
    while !bytes.0.is_empty() {
        let [section, count] = bytes.words()?;
        let all = bytes.take(record_bytes.checked_mul(count as usize)?)?.0;
        let of_section = found.entry(btf.text(section).into_owned()).or_default();
        for record in all.chunks_exact(record_bytes) {
            of_section.push(read(Bytes(record).words()?));
        }
    }
    Some(found)
}
