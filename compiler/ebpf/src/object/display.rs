// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An object as text: its maps, and its programs with the source line of each instruction.

use super::{MapDefinition, Object, Program, ProgramKind, SlotTarget};
use crate::instruction::decode;
use std::fmt::{self, Display, Formatter};

/// Bytes of initial contents in a line.
const LINE_BYTES: usize = 16;
/// Bytes of initial contents that are shown: a small file can have many megabytes of data.
const SHOWN_BYTES: usize = 4096;

impl Display for Object {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "license \"{}\"", self.license.escape_debug())?;
        if let Some(version) = self.version {
            writeln!(f, "version {version:#x}")?;
        }
        for (number, map) in self.maps.iter().enumerate() {
            writeln!(f, "map {number} `{}`: {map}", map.name)?;
            for (key, target) in &map.slots {
                let (what, name) = match *target {
                    SlotTarget::Map(map) => ("map", self.maps.get(map).map(|map| &map.name)),
                    SlotTarget::Program(program) => {
                        ("program", self.programs.get(program).map(|program| &program.name))
                    }
                };
                writeln!(f, "    [{key}] = {what} `{}`", name.map_or("", String::as_str))?;
            }
            if let Some(content) = &map.initial {
                show_content(f, content)?;
            }
        }
        self.programs.iter().try_for_each(|program| write!(f, "\n{program}"))
    }
}

fn show_content(f: &mut Formatter<'_>, content: &[u8]) -> fmt::Result {
    let (shown, hidden) = content.split_at(content.len().min(SHOWN_BYTES));
    for (at, bytes) in shown.chunks(LINE_BYTES).enumerate() {
        write!(f, "    {:4x}:", at * LINE_BYTES)?;
        bytes.iter().try_for_each(|byte| write!(f, " {byte:02x}"))?;
        writeln!(f)?;
    }
    if hidden.is_empty() { Ok(()) } else { writeln!(f, "    and {} bytes more", hidden.len()) }
}

impl Display for MapDefinition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(fault) = &self.fault {
            return write!(f, "wrong: {fault}");
        }
        let Self { kind, key_size, value_size, max_entries, .. } = self;
        write!(f, "{kind}, key {key_size}, value {value_size}, entries {max_entries}")?;
        if self.flags != 0 {
            write!(f, ", flags {:#x}", self.flags)?;
        }
        if self.extra != 0 {
            write!(f, ", extra {:#x}", self.extra)?;
        }
        if self.pinned {
            f.write_str(", pinned")?;
        }
        match &self.inner {
            Some(inner) => write!(f, ", of ({inner})"),
            None => Ok(()),
        }
    }
}

impl Display for ProgramKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xdp => "xdp",
            Self::XdpDevmap => "xdp/devmap",
            Self::XdpCpumap => "xdp/cpumap",
            Self::Other(section) => section,
        })
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, section, kind, .. } = self;
        writeln!(f, "program `{name}` of section `{section}`, started as {kind}")?;
        if let Some(refusal) = &self.refusal {
            writeln!(f, "    refused: {refusal}")?;
        }
        let (mut functions, mut lines) = (self.functions.iter(), self.lines.iter());
        let (mut function, mut line) = (functions.next(), lines.next());
        let (mut shown, mut slot) = (None, 0);
        while slot < self.instructions.len() {
            if let Some(found) = function.filter(|function| function.slot <= slot) {
                writeln!(f, "{}:", found.name)?;
                (function, shown) = (functions.next(), None);
            }
            while let Some(found) = line.filter(|line| line.slot <= slot) {
                // Entries of one line with different columns are shown once.
                let place = Some((&found.file, found.line));
                if shown != place {
                    writeln!(f, "    // {}:{}: {}", found.file, found.line, found.text)?;
                }
                (shown, line) = (place, lines.next());
            }
            match decode(&self.instructions, slot) {
                Ok(operation) => {
                    writeln!(f, "    {slot:4}: {operation}")?;
                    slot += operation.slots();
                }
                Err(invalid) => {
                    writeln!(f, "    {slot:4}: // {invalid}")?;
                    slot += 1;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_data_is_shown_in_part() {
        let map = MapDefinition { initial: Some(vec![7; 10_000]), ..MapDefinition::default() };
        let text = Object { maps: vec![map], ..Object::default() }.to_string();
        assert_eq!(text.lines().count(), 2 + 4096 / 16 + 1);
        assert!(text.ends_with(" 07\n    and 5904 bytes more\n"), "{text}");
    }
}
