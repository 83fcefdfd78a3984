// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Relocations of instructions: references to maps, variables and functions take the form of linked
//! programs, and CO-RE relocations are replaced by their values.

use super::super::btf::{Btf, CoreRelocation};
use super::super::check::Fault;
use super::super::collect::{Maps, Reference};
use super::super::core;
use super::super::elf::{Elf, Home, Relocation, Symbol};
use super::{Debug, Unlinked};
use crate::instruction::{Instruction, PSEUDO_CALL, PSEUDO_FUNCTION, PSEUDO_MAP, PSEUDO_MAP_VALUE};
use std::collections::HashMap;

/// Relocation of a wide load.
const R_BPF_64_64: u32 = 1;
/// Relocation of a call.
const R_BPF_64_32: u32 = 10;
/// Opcode of a call.
const CALL: u8 = 0x85;

/// Targets of relocations.
pub(super) struct Relocator<'a, 'd> {
    pub elf: &'a Elf<'d>,
    pub debug: &'a Debug<'d>,
    pub maps: &'a Maps,
    /// Functions by section and first slot.
    pub starts: &'a HashMap<(usize, usize), usize>,
}

/// Slots of a function, and those that refer to functions.
type Relocated = (Vec<Instruction>, Vec<(usize, usize)>);

impl Relocator<'_, '_> {
    /// Relocates a function.
    ///
    /// # Errors
    /// The slot with a reference that cannot be resolved.
    pub(super) fn relocate(&self, function: &Unlinked) -> Result<Relocated, Fault> {
        let (mut slots, mut references) = (function.slots.clone(), vec![]);
        let section = &self.elf.sections[function.section_number];
        let first_byte = function.start as u64 * 8;
        let (all, bytes) = (&section.relocations, slots.len() as u64 * 8);
        let begin = all.partition_point(|relocation| relocation.offset < first_byte);
        for relocation in &all[begin..] {
            let inside = relocation.offset - first_byte;
            if inside >= bytes {
                break;
            }
            let slot = (inside / 8) as usize;
            if !inside.is_multiple_of(8) {
                return Err((slot, "a relocation is not at the start of a slot".to_owned()));
            }
            let referred = self.apply(relocation, &mut slots[slot..]);
            if let Some(callee) = referred.map_err(|reason| (slot, reason))? {
                references.push((slot, callee));
            }
        }
        if let Some(btf) = &self.debug.btf {
            self.apply_facts(btf, function, &mut slots)?;
        }
        Ok((slots, references))
    }

    /// Relocates the first of `slots`. Returns the referenced function, if it is one.
    fn apply(
        &self,
        relocation: &Relocation,
        slots: &mut [Instruction],
    ) -> Result<Option<usize>, String> {
        let Some(symbol) = self.elf.symbols.get(relocation.symbol) else {
            return Err(format!("a relocation names symbol {}", relocation.symbol));
        };
        if symbol.home == Home::Undefined {
            return self.apply_undefined(symbol, slots);
        }
        match (relocation.kind, slots) {
            (R_BPF_64_32, [call, ..]) if call.opcode == CALL => self.apply_call(symbol, call),
            (R_BPF_64_64, [first, second, ..]) if first.is_wide() => {
                self.apply_wide(symbol, first, second)
            }
            (kind, [slot, ..]) => {
                let opcode = slot.opcode;
                Err(format!("a relocation of kind {kind} does not fit opcode {opcode:#x}"))
            }
            (kind, []) => Err(format!("a relocation of kind {kind} is after the end")),
        }
    }

    fn apply_call(&self, symbol: &Symbol, call: &mut Instruction) -> Result<Option<usize>, String> {
        if call.source != PSEUDO_CALL {
            return Err(format!("`{}` is called as if it were a helper", symbol.name));
        }
        // The immediate is -1 for a function's symbol, and its slot minus one for the section's
        // symbol.
        let slot = (symbol.value / 8) as i128 + i128::from(call.immediate) + 1;
        self.function(symbol, slot).map(Some)
    }

    fn apply_wide(
        &self,
        symbol: &Symbol,
        first: &mut Instruction,
        second: &mut Instruction,
    ) -> Result<Option<usize>, String> {
        if first.source != 0 || second.immediate != 0 {
            let (name, source) = (symbol.name, first.source);
            return Err(format!("the reference to `{name}` has source {source} already"));
        }
        let addend = first.immediate;
        let reference = self.maps.reference(symbol, addend.into());
        let reference = reference.map_err(|reason| format!("the reference {reason}"))?;
        let (map, offset) = match reference {
            Some(Reference::Map(map)) => {
                first.source = PSEUDO_MAP;
                (map, 0)
            }
            Some(Reference::Value { map, offset }) => {
                first.source = PSEUDO_MAP_VALUE;
                (map, offset)
            }
            None => {
                first.source = PSEUDO_FUNCTION;
                let byte = i128::from(symbol.value) + i128::from(addend);
                return self.function(symbol, byte / 8).map(Some);
            }
        };
        // Both are below the maximum size of an object.
        (first.immediate, second.immediate) = (map as i32, offset as i32);
        Ok(None)
    }

    fn function(&self, symbol: &Symbol, slot: i128) -> Result<usize, String> {
        let Home::Section(section) = symbol.home else {
            return Err(format!("`{}` is in no section", symbol.name));
        };
        let found = usize::try_from(slot).ok().and_then(|slot| self.starts.get(&(section, slot)));
        found.copied().ok_or_else(|| {
            let home = self.elf.sections.get(section).map_or("", |section| section.name);
            let name = if symbol.name.is_empty() { home } else { symbol.name };
            format!(
                "refers to slot {slot} of section `{home}` (`{name}`), where no function begins"
            )
        })
    }

    /// Relocates a reference to an undefined symbol.
    fn apply_undefined(
        &self,
        symbol: &Symbol,
        slots: &mut [Instruction],
    ) -> Result<Option<usize>, String> {
        let name = symbol.name;
        let is_extern = |section: &str| {
            let btf = self.debug.btf.as_ref();
            btf.is_some_and(|btf| btf.variables(section).any(|(variable, _)| variable == name))
        };
        if is_extern(".kconfig") {
            return Err(format!("`{name}` is a value of the kernel configuration (__kconfig)"));
        }
        match slots {
            [call, ..] if call.opcode == CALL => Err(format!(
                "calls `{name}`, which is not in this object: functions of the kernel do not run \
                 here, others must be linked (bpftool gen object)"
            )),
            // An undefined weak variable has address 0, which the program tests.
            [first, ..] if first.is_wide() && symbol.is_weak => {
                first.immediate = 0;
                Ok(None)
            }
            _ if is_extern(".ksyms") => Err(format!("`{name}` is a kernel variable (__ksym)")),
            _ => Err(format!("`{name}` is not defined in this object")),
        }
    }

    /// Applies the CO-RE relocations of the function.
    fn apply_facts(
        &self,
        btf: &Btf,
        function: &Unlinked,
        slots: &mut [Instruction],
    ) -> Result<(), Fault> {
        let inside = |fact: &&CoreRelocation| {
            fact.slot >= function.start && fact.slot - function.start < slots.len()
        };
        let facts = self.debug.extension.relocations(&function.section);
        let facts: Vec<&CoreRelocation> = facts.iter().filter(inside).collect();
        for fact in facts {
            let slot = fact.slot - function.start;
            core::apply(btf, fact, &mut slots[slot..]).map_err(|reason| (slot, reason))?;
        }
        Ok(())
    }
}
