// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the compiler does besides placing operations in rows; each can be switched off.

use crate::machine::Machine;

/// Passes and the machine. All that changes the program's operations is in here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What is scheduled for.
    pub machine: Machine,
    /// Comparisons with the packet's end become one operation each, which asks the packet itself.
    pub bounds: bool,
    /// What is zero when a packet begins is not set to zero.
    pub zeroing: bool,
    /// Copies vanish into what reads them: three operands, addresses with their offset.
    pub three_operands: bool,
    /// Calls of helpers carry arguments that are known.
    pub calls: bool,
    /// Where the packet begins is read from its register, and not loaded from the context.
    pub packet_register: bool,
    /// Exits and jumps to them carry a verdict that is known.
    pub exits: bool,
    /// Neighbouring accesses to memory become one, of up to eight bytes, six among them.
    pub wide_accesses: bool,
    /// What is loaded, changed and stored again is changed in memory.
    pub memory_operations: bool,
    /// What is only copied into a register is computed there.
    pub coalescing: bool,
    /// What is loaded or computed a second time is not.
    pub redundant: bool,
    /// What nobody needs is not done.
    pub dead: bool,
    /// Blocks that follow each other are scheduled as one, across the branches between them.
    pub code_motion: bool,
    /// Results that only this block needs go to any register that is free.
    pub renaming: bool,
    /// What two lanes of a row need of the row before is computed in both.
    pub replication: bool,
    /// Short arms of branches are skipped in their row instead of being jumped over.
    pub if_conversion: bool,
}

/// The switches of [`Options`] by their names.
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
    /// All passes on or off, for four lanes.
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

    /// Every instruction is kept as it is, and only placed in rows: what the publication calls
    /// parallelisation, with code motion.
    pub fn keeping_all() -> Self {
        Self { code_motion: true, renaming: true, ..Self::all(false) }
    }

    /// Nothing but one block after the other.
    pub fn plain() -> Self {
        Self::all(false)
    }

    /// The switch of a pass by its name.
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
