// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory accesses of a helper call, from its signature and the current arguments.

use super::hazard::Access;
use freeport_ebpf::helper_functions::{Argument, Effect, Signature, signature};
use freeport_ebpf::interpreter::{Execution, REGISTERS};
use std::ops::Range;

/// Size of a lock in bytes.
const LOCK_BYTES: usize = 4;
/// Longest string that a helper reads, in bytes.
const TEXT_MAX: usize = 4_096;
/// Size of the part of the context that helpers may change: all addresses in it.
const CONTEXT_BYTES: usize = 24;

/// Returns all accesses of a helper, except those of functions that it calls.
pub(super) fn accesses(
    helper: u32,
    registers: &[u64; REGISTERS],
    execution: &Execution<'_, '_>,
    lane: usize,
) -> Vec<Access> {
    let Some(signature) = signature(helper) else { return vec![] };
    let mut touched = Touched { registers, execution, lane, accesses: vec![] };
    touched.arguments(&signature);
    touched.besides(&signature);
    touched.accesses
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
    Change,
}

struct Touched<'e, 'r, 'm> {
    registers: &'e [u64; REGISTERS],
    execution: &'e Execution<'r, 'm>,
    lane: usize,
    accesses: Vec<Access>,
}

impl Touched<'_, '_, '_> {
    fn arguments(&mut self, signature: &Signature) {
        let (key, value) =
            self.map(signature).map_or((0, 0), |map| self.execution.sizes(map).unwrap_or((0, 0)));
        for (at, argument) in signature.arguments.iter().enumerate() {
            let address = self.registers[1 + at];
            // Lengths have 32 bits; longer ones are invalid for any memory.
            let size = self.registers[2 + at] as u32 as usize;
            match argument {
                Argument::Key => self.note(address, key, Kind::Read),
                Argument::Value => self.note(address, value, Kind::Read),
                Argument::Room => self.note(address, value, Kind::Change),
                Argument::Read => self.note(address, size, Kind::Read),
                Argument::Write => self.note(address, size, Kind::Write),
                Argument::Change => self.note(address, size, Kind::Change),
                Argument::Word => self.note(address, 4, Kind::Change),
                Argument::Lock => self.note(address, LOCK_BYTES, Kind::Change),
                Argument::Long => self.note(address, 8, Kind::Write),
                Argument::Text | Argument::Printed => self.text(address),
                Argument::Record => {
                    // The helper itself knows its length.
                    let end = self.execution.window_end(address);
                    self.note_range(address..end, Kind::Read);
                }
                Argument::Number
                | Argument::Context
                | Argument::Map
                | Argument::Size
                | Argument::Function
                | Argument::Passed => {}
            }
        }
    }

    /// Adds accesses other than those of arguments.
    fn besides(&mut self, signature: &Signature) {
        let [metadata, start, end] = self.execution.packet();
        match signature.effect {
            Some(Effect::ReadsPacket) => self.note_range(start..end, Kind::Read),
            Some(Effect::WritesPacket) => self.note_range(start..end, Kind::Write),
            Some(Effect::MovesPacket) => {
                self.note_range(metadata..end, Kind::Change);
                self.note(self.registers[1], CONTEXT_BYTES, Kind::Change);
            }
            Some(Effect::ChangesMap) => {
                let values = self.map(signature).and_then(|map| self.execution.values(map));
                self.note_range(values.unwrap_or_default(), Kind::Change);
            }
            Some(Effect::ReadsTexts) => self.texts(signature),
            Some(Effect::Repeats | Effect::RepeatsForElements) | None => {}
        }
    }

    /// Returns the map argument.
    fn map(&self, signature: &Signature) -> Option<u64> {
        let at = signature.arguments.iter().position(|it| *it == Argument::Map)?;
        Some(self.registers[1 + at])
    }

    /// Adds strings whose addresses are in memory arguments.
    fn texts(&mut self, signature: &Signature) {
        let given = signature.arguments.iter().enumerate();
        for (at, _) in given.filter(|(_, argument)| **argument == Argument::Read) {
            let size = self.registers[2 + at] as u32 as usize;
            let words = self.execution.memory(self.registers[1 + at], size).unwrap_or_default();
            let words = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            for address in words.collect::<Vec<_>>() {
                self.text(address);
            }
        }
    }

    /// Adds a string with its terminating zero, if it is terminated.
    fn text(&mut self, address: u64) {
        let byte = |at: &usize| self.execution.memory(address.wrapping_add(*at as u64), 1);
        let ends = |at: &usize| byte(at).is_none_or(|byte| byte == [0]);
        let length = (0..TEXT_MAX).find(ends).unwrap_or(TEXT_MAX);
        let has_end = byte(&length).is_some();
        self.note(address, length + usize::from(has_end), Kind::Read);
    }

    fn note(&mut self, address: u64, size: usize, kind: Kind) {
        self.note_range(address..address.saturating_add(size as u64), kind);
    }

    fn note_range(&mut self, range: Range<u64>, kind: Kind) {
        let lane = self.lane;
        let is_read = matches!(kind, Kind::Read | Kind::Change);
        let is_written = matches!(kind, Kind::Write | Kind::Change);
        self.accesses.push(Access { lane, range, is_read, is_written });
    }
}
