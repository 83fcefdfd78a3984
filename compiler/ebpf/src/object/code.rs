// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of a file: found by their symbols, relocated, and checked.

mod relocate;

use super::btf::{Btf, Extension};
use super::collect::Maps;
use super::elf::{Elf, Kind, Section};
use super::{Error, Place, check};
use crate::instruction::{Callee, Constant, Instruction, Operation, decode};
use relocate::Relocator;
use std::collections::HashMap;

/// Section whose functions are called by programs, and are not programs themselves.
const CALLED: &str = ".text";

/// All functions, in the order of section and offset.
#[derive(Default)]
pub(super) struct Code {
    pub functions: Vec<Unlinked>,
    /// Index by section and first slot.
    starts: HashMap<(usize, usize), usize>,
}

/// A function whose calls are not linked yet.
pub(super) struct Unlinked {
    pub name: String,
    /// Name and number of its section.
    pub section: String,
    pub section_number: usize,
    /// First slot in the section.
    pub start: usize,
    /// Whether it can be attached as a program.
    pub is_program: bool,
    pub slots: Vec<Instruction>,
    /// Slots that call or reference a function, with its number.
    pub references: Vec<(usize, usize)>,
    /// Reason for which it has no slots.
    pub fault: Option<Error>,
}

/// Type and line information of the compiler.
#[derive(Default)]
pub(super) struct Debug<'d> {
    pub btf: Option<Btf<'d>>,
    pub extension: Extension,
}

impl<'d> Debug<'d> {
    /// Parses `.BTF` and `.BTF.ext`.
    ///
    /// # Errors
    /// Either section is malformed.
    pub(super) fn parse(elf: &Elf<'d>) -> Result<Self, Error> {
        let Some(types) = elf.section(".BTF") else { return Ok(Self::default()) };
        let btf = Btf::parse(types.data).map_err(|reason| Error::in_section(".BTF", reason))?;
        let extension = match elf.section(".BTF.ext") {
            Some(section) => Extension::parse(section.data, &btf)
                .map_err(|reason| Error::in_section(".BTF.ext", reason))?,
            None => Extension::default(),
        };
        Ok(Self { btf: Some(btf), extension })
    }

    /// Returns source file and line of a slot of a section.
    fn source(&self, section: &str, slot: usize) -> Option<(String, u32)> {
        let line = self.extension.line(section, slot)?;
        Some((self.btf.as_ref()?.text(line.file).into_owned(), line.line))
    }
}

impl Code {
    /// Reads all functions. A function with an invalid instruction, or one that needs a kernel, has
    /// a fault.
    ///
    /// # Errors
    /// A function extends beyond its section or overlaps another.
    pub(super) fn read(elf: &Elf, debug: &Debug, maps: &Maps) -> Result<Self, Error> {
        let mut code = Self::default();
        for (number, section) in elf.sections.iter().enumerate() {
            if section.is_code && section.is_allocated && section.size > 0 {
                code.find(elf, number, section)?;
            }
        }
        let starts = &code.starts;
        let relocator = Relocator { elf, debug, maps, starts };
        for function in &mut code.functions {
            let fail = |(slot, reason)| function_error(debug, function, slot, reason);
            let read = relocator.relocate(function).and_then(|(slots, mut references)| {
                check::check(&slots)?;
                resolve(&slots, function, starts, &mut references)?;
                Ok((slots, references))
            });
            match read.map_err(fail) {
                Ok((slots, references)) => {
                    (function.slots, function.references) = (slots, references);
                }
                Err(fault) => {
                    function.slots.clear();
                    function.fault = Some(fault);
                }
            }
        }
        Ok(code)
    }

    /// Returns the function that begins at a byte of a section.
    pub(super) fn at(&self, section: usize, byte: u64) -> Option<usize> {
        let slot = usize::try_from(byte / 8).ok()?;
        self.starts.get(&(section, slot)).copied().filter(|_| byte.is_multiple_of(8))
    }

    /// Adds the functions of a section, as they are in the file.
    fn find(&mut self, elf: &Elf, number: usize, section: &Section) -> Result<(), Error> {
        let wrong = |reason: String| Error::in_section(section.name, reason);
        let mut symbols = elf.defined_in(number);
        symbols.retain(|symbol| symbol.kind == Kind::Function);
        // A function with two names is listed once; a global name takes precedence.
        symbols.sort_by_key(|symbol| (symbol.value, symbol.is_local));
        symbols.dedup_by_key(|symbol| symbol.value);
        if symbols.is_empty() {
            return Err(wrong("has instructions but no function".to_owned()));
        }
        let mut free = 0;
        for (at, symbol) in symbols.iter().enumerate() {
            let next = symbols.get(at + 1).map_or(section.data.len() as u64, |next| next.value);
            let size =
                if symbol.size == 0 { next.saturating_sub(symbol.value) } else { symbol.size };
            let end = symbol.value.saturating_add(size);
            let name = symbol.name;
            if !symbol.value.is_multiple_of(8) || !size.is_multiple_of(8) || size == 0 {
                return Err(wrong(format!("function `{name}` is not made of 64-bit slots")));
            }
            if symbol.value < free || end > section.data.len() as u64 {
                let reason = "overlaps another function, or is outside the section";
                return Err(wrong(format!("function `{name}` {reason}")));
            }
            free = end;
            let (start, end) = (symbol.value as usize, end as usize);
            let (chunks, _) = section.data[start..end].as_chunks::<8>();
            self.starts.insert((number, start / 8), self.functions.len());
            self.functions.push(Unlinked {
                name: name.to_owned(),
                section: section.name.to_owned(),
                section_number: number,
                start: start / 8,
                is_program: !symbol.is_local && section.name != CALLED,
                slots: chunks.iter().copied().map(Instruction::from_bytes).collect(),
                references: vec![],
                fault: None,
            });
        }
        Ok(())
    }
}

/// Resolves calls and function references without a relocation, whose targets are in the same
/// section.
fn resolve(
    slots: &[Instruction],
    function: &Unlinked,
    starts: &HashMap<(usize, usize), usize>,
    references: &mut Vec<(usize, usize)>,
) -> Result<(), check::Fault> {
    let mut slot = 0;
    while slot < slots.len() {
        let operation = decode(slots, slot).map_err(|invalid| (slot, invalid.to_string()))?;
        let distance = match operation {
            Operation::Call(Callee::Local(distance)) => Some(distance),
            Operation::LoadConstant { constant: Constant::Function(distance), .. } => {
                Some(distance)
            }
            Operation::Call(Callee::Kernel { id, .. }) => {
                return Err((
                    slot,
                    format!("calls kernel function {id}, which is not available here"),
                ));
            }
            _ => None,
        };
        let is_resolved = references.binary_search_by_key(&slot, |(slot, _)| *slot).is_ok();
        if let (Some(distance), false) = (distance, is_resolved) {
            let target = (function.start + slot + 1) as i64 + i64::from(distance);
            let found = usize::try_from(target).ok();
            let found = found.and_then(|target| starts.get(&(function.section_number, target)));
            let Some(&callee) = found else {
                return Err((slot, format!("calls slot {target}, where no function begins")));
            };
            let at = references.partition_point(|(other, _)| *other < slot);
            references.insert(at, (slot, callee));
        }
        slot += operation.slots();
    }
    Ok(())
}

/// Creates the error for a slot of a function.
fn function_error(debug: &Debug, function: &Unlinked, slot: usize, reason: String) -> Error {
    let slot = function.start + slot;
    let place = Place {
        section: Some(function.section.clone()),
        function: Some(function.name.clone()),
        instruction: Some(slot),
        source: debug.source(&function.section, slot),
    };
    Error { file: None, place: Box::new(place), reason }
}
