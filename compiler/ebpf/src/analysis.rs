// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Static analysis of a program: its control flow ([`Graph`]), the values of its registers and its
//! memory accesses ([`Analysis`]), and its live values ([`Liveness`]).
//!
//! Dominators, loops, orders and liveness come from `freeport-ir`, whose algorithms work on any
//! graph: a function here only defines its nodes.
//!
//! Addresses are tracked by abstract interpretation, which proves what the kernel's verifier proves
//! of an accepted program, as far as loads and stores need it. A program that the verifier would
//! reject is analysed as well. Anything not known is an [`Unknown`] with the instruction where it
//! originated; nothing is guessed. Dynamic pointers do not occur, since no helper that creates them
//! is supported.

mod access;
#[cfg(test)]
mod analysed;
mod branch;
mod call;
mod check;
mod explore;
mod facts;
pub mod graph;
mod liveness;
mod operate;
mod scalar;
mod spill;
mod stack;
mod state;
mod unknown;
mod value;
mod walk;
#[cfg(test)]
pub(crate) mod wild;
mod witness;

pub use access::{Access, AccessKind, Space};
pub use check::BoundsCheck;
pub use facts::{Fact, Type};
pub use graph::{Graph, Malformed};
pub use liveness::Liveness;
pub use scalar::Scalar;
pub use spill::Spill;
pub use unknown::{Place, Unknown, Why};
pub use value::MapName;
pub use witness::Witness;

use crate::helper_functions::signature;
use crate::instruction::{Callee, Operation};
use crate::object::{MapDefinition, Program, ProgramKind};
use crate::refusal;
use explore::Explorer;
use facts::SlotFacts;
use value::Value;

/// All facts about a program.
#[derive(Clone, Debug)]
pub struct Analysis {
    graph: Graph,
    facts: Vec<SlotFacts>,
    liveness: Liveness,
    /// Reason for which the analysis gave up, and the resulting fact of all registers.
    given_up: Option<(Unknown, [Fact; 11])>,
}

impl Analysis {
    /// Analyses a program of an object with these maps.
    ///
    /// # Errors
    /// The program does not pass [`check`](crate::refusal::check()), or one of its instructions is
    /// invalid, or jumps to a slot where no instruction begins.
    pub fn of(program: &Program, maps: &[MapDefinition]) -> Result<Self, Malformed> {
        Self::with_states(program, maps, explore::STATES_MAX)
    }

    /// As [`Analysis::of`], with another limit on the states kept apart where paths meet, usually
    /// 16. Fewer states cost less, and lose facts that depend on the path.
    ///
    /// # Errors
    /// As [`Analysis::of`].
    pub fn with_states(
        program: &Program,
        maps: &[MapDefinition],
        states_max: usize,
    ) -> Result<Self, Malformed> {
        refusal::check(program, maps).map_err(|unsupported| Malformed {
            slot: unsupported.slot,
            reason: unsupported.reason,
        })?;
        let graph = Graph::of(program)?;
        let registers = Liveness::of_registers(&graph);
        let context = match program.kind {
            ProgramKind::Other(_) => Value::unknown(walk::unknown(0, 1, Why::OtherKind)),
            _ => explore::context(),
        };
        let explored = Explorer::new(&graph, &registers, maps, states_max.max(1)).explore(context);
        let given_up = explored.as_ref().err().map(|why| (*why, [Fact::unknown(*why); 11]));
        let facts = explored.unwrap_or_else(|why| given_up_facts(&graph, why));
        let accesses: Vec<_> = facts.iter().map(|facts| facts.accesses.clone()).collect();
        let liveness = Liveness::of(&graph, Some(&accesses));
        Ok(Self { graph, facts, liveness, given_up })
    }

    /// Returns the control flow.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the liveness of registers and frame bytes.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Returns the reason for which the analysis gave up, if it could not follow the whole program.
    pub fn given_up(&self) -> Option<Unknown> {
        self.given_up.map(|(why, _)| why)
    }

    /// Returns whether an instruction is reachable.
    pub fn is_reachable(&self, slot: usize) -> bool {
        self.registers(slot).is_some()
    }

    /// Returns the facts of registers before an instruction, or `None` if it is unreachable.
    pub fn registers(&self, slot: usize) -> Option<&[Fact; 11]> {
        match &self.given_up {
            Some((_, unknown)) => self.graph.operation(slot).map(|_| unknown),
            None => self.facts.get(slot)?.registers.as_deref(),
        }
    }

    /// Returns a register that an instruction reads although it is not set on every path to there:
    /// a call leaves registers 1 to 5 unset, and a function starts with only its arguments set.
    /// Verifiers reject such programs. The other facts still hold, but the value that such an
    /// instruction reads depends on registers that are not live. Always `None` if the analysis gave
    /// up.
    pub fn reads_unset(&self, slot: usize) -> Option<u8> {
        let (operation, registers) = (self.graph.operation(slot)?, self.registers(slot)?);
        let arguments = match operation {
            Operation::Call(Callee::Helper(number)) => {
                signature(number).map_or(0, |it| it.arguments.len() as u8)
            }
            _ => 0,
        };
        let is_unset = |register: &u8| registers[usize::from(*register)].holds == Type::Nothing;
        operation.read().chain(1..=arguments).find(is_unset)
    }

    /// Returns the known contents of the function's own frame before an instruction, in ascending
    /// order of offset. Other bytes are unknown; [`Liveness::is_byte_live`] reports which are live.
    pub fn spills(&self, slot: usize) -> &[Spill] {
        self.facts.get(slot).map_or(&[], |facts| &facts.spills)
    }

    /// Returns whether an instruction only stores to bytes of the function's own frame that are
    /// never read, so that it can be removed.
    pub fn is_dead_store(&self, slot: usize) -> bool {
        let own = Space::Stack { calls_up: Some(0) };
        match (self.graph.operation(slot), self.accesses(slot)) {
            (Some(Operation::Store { .. }), [access]) if access.space == own => {
                let end = access.offset.1.saturating_add_unsigned(access.size.unwrap_or(0));
                let mut bytes = access.offset.0..end;
                access.is_proven && bytes.all(|byte| !self.liveness.is_byte_live(slot + 1, byte))
            }
            _ => false,
        }
    }

    /// Returns the memory accesses of an instruction: more than one if the access depends on the
    /// path, or if a helper takes several addresses. It excludes the accesses of program functions
    /// that are called here, by the program or by a helper: see [`Graph::calls_function`].
    pub fn accesses(&self, slot: usize) -> &[Access] {
        self.facts.get(slot).map_or(&[], |facts| &facts.accesses)
    }

    /// Returns the conditional jump as a check of the packet's length, if it is nothing else.
    pub fn bounds_check(&self, slot: usize) -> Option<&BoundsCheck> {
        self.facts.get(slot)?.check.length()
    }

    /// Returns whether a conditional jump can be taken, and whether it can fall through.
    pub fn outcomes(&self, slot: usize) -> [bool; 2] {
        self.facts.get(slot).map_or([false; 2], |facts| facts.outcomes)
    }

    /// Returns the entries of the functions that the helper called at `slot` may call.
    pub fn callbacks(&self, slot: usize) -> &[usize] {
        self.facts.get(slot).map_or(&[], |facts| &facts.callbacks)
    }

    /// Returns the accesses to unknown memory, in the order of slots.
    pub fn unknown_accesses(&self) -> impl Iterator<Item = &Access> {
        let accesses = self.facts.iter().flat_map(|facts| &facts.accesses);
        accesses.filter(|access| matches!(access.space, Space::Unknown(_)))
    }

    /// Describes where in the source something is not known, and why.
    pub fn explain(&self, program: &Program, unknown: &Unknown) -> String {
        match program.line(unknown.slot) {
            Some(line) => {
                format!("{unknown} ({}:{}: `{}`)", line.file, line.line, line.text.trim())
            }
            None => unknown.to_string(),
        }
    }
}

/// Returns facts without any knowledge, for a program on which the analysis gave up.
fn given_up_facts(graph: &Graph, why: Unknown) -> Vec<SlotFacts> {
    let at = |slot: usize| {
        let Some(operation) = graph.operation(slot) else { return SlotFacts::default() };
        let accesses = touched_registers(operation).map(|(register, kind)| Access {
            slot,
            register,
            kind,
            space: Space::Unknown(why),
            offset: (0, 0),
            size: None,
            is_proven: false,
        });
        SlotFacts {
            accesses: accesses.into_iter().collect(),
            outcomes: [true; 2],
            ..SlotFacts::default()
        }
    };
    (0..graph.slots()).map(at).collect()
}

/// Returns the address register and the kind of access of an operation that accesses memory.
fn touched_registers(operation: Operation) -> Option<(Option<u8>, AccessKind)> {
    match operation {
        Operation::Load { base, .. } => Some((Some(base), AccessKind::Read)),
        Operation::Store { base, .. } => Some((Some(base), AccessKind::Write)),
        Operation::Atomic { base, .. } => Some((Some(base), AccessKind::Change)),
        Operation::Call(_) => Some((None, AccessKind::Change)),
        _ => None,
    }
}
