// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transformations of the compiler other than placing operations in rows; each can be turned off.

use crate::machine::Machine;

/// Passes and the machine: everything that affects the program's operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Machine for which programs are scheduled.
    pub machine: Machine,
    /// Replaces comparisons with the packet's end by one operation that checks the packet's length.
    pub bounds: bool,
    /// Removes instructions that zero registers and stack bytes that are zero at the start of a
    /// packet.
    pub zeroing: bool,
    /// Propagates copies: three operands, addresses with offsets.
    pub three_operands: bool,
    /// Moves known arguments into helper calls.
    pub calls: bool,
    /// Reads the packet's start from its register instead of loading it from the context.
    pub packet_register: bool,
    /// Moves known verdicts into exits, and into jumps to exits.
    pub exits: bool,
    /// Combines adjacent memory accesses into one of up to eight bytes, including six.
    pub wide_accesses: bool,
    /// Replaces a load, an operation and a store of the same bytes by an atomic operation.
    pub memory_operations: bool,
    /// Computes results directly in the register to which they are only copied.
    pub coalescing: bool,
    /// Removes redundant loads and computations.
    pub redundant: bool,
    /// Removes dead operations.
    pub dead: bool,
    /// Schedules consecutive blocks together, across the branches between them.
    pub code_motion: bool,
    /// Allocates any free register for results that only the region needs.
    pub renaming: bool,
    /// Computes a result twice if two lanes of the next row need it.
    pub replication: bool,
    /// Skips short arms of branches within their row instead of jumping over them.
    pub if_conversion: bool,
}

/// Names of the switches of [`Options`].
pub const PASSES: [&str; 15] = [
    "bounds",
    "zeroing",
    "three-operands",
    "calls",
    "packet-register",
    "exits",
    "wide-accesses",
    "memory-operations",
    "coalescing",
    "redundant",
    "dead",
    "code-motion",
    "renaming",
    "if-conversion",
    "replication",
];

impl Default for Options {
    fn default() -> Self {
        Self::all(true)
    }
}

impl Options {
    /// Returns options with all passes on or off, for four lanes.
    fn all(is_on: bool) -> Self {
        Self {
            machine: Machine::default(),
            bounds: is_on,
            zeroing: is_on,
            three_operands: is_on,
            calls: is_on,
            packet_register: is_on,
            exits: is_on,
            wide_accesses: is_on,
            memory_operations: is_on,
            coalescing: is_on,
            redundant: is_on,
            dead: is_on,
            code_motion: is_on,
            renaming: is_on,
            if_conversion: is_on,
            replication: is_on,
        }
    }

    /// Returns options that keep every instruction and only schedule them: the publication's
    /// parallelisation, with code motion.
    pub fn keeping_all() -> Self {
        Self { code_motion: true, renaming: true, ..Self::all(false) }
    }

    /// Returns options that schedule one block after the other, without any pass.
    pub fn plain() -> Self {
        Self::all(false)
    }

    /// Returns the switch of a pass by its name.
    pub fn pass_mut(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "bounds" => &mut self.bounds,
            "zeroing" => &mut self.zeroing,
            "three-operands" => &mut self.three_operands,
            "calls" => &mut self.calls,
            "packet-register" => &mut self.packet_register,
            "exits" => &mut self.exits,
            "wide-accesses" => &mut self.wide_accesses,
            "memory-operations" => &mut self.memory_operations,
            "coalescing" => &mut self.coalescing,
            "redundant" => &mut self.redundant,
            "dead" => &mut self.dead,
            "code-motion" => &mut self.code_motion,
            "renaming" => &mut self.renaming,
            "if-conversion" => &mut self.if_conversion,
            "replication" => &mut self.replication,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_has_its_own_switch() {
        let mut options = Options::plain();
        for name in PASSES {
            let switch = options.pass_mut(name).expect("it is named");
            assert!(!*switch, "{name} shares a switch");
            *switch = true;
        }
        assert_eq!(options, Options::default());
        assert_eq!(options.pass_mut("none"), None);
    }
}
