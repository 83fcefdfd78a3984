// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can be known of a program before it runs: its control flow ([`Graph`]), what its registers
//! hold and which memory it touches ([`Analysis`]), and what it may still need ([`Liveness`]).
//!
//! Dominators, loops, orders and liveness are those of `freeport-ir`, which are written for
//! everything that has a graph: a function here only says what its nodes are.
//!
//! Addresses are followed by an abstract interpretation: what the kernel's verifier proves of a
//! program it takes is found here as well, as far as loads and stores need it, and a program that
//! the verifier would refuse is analysed too. What is not known is [`Unknown`], with the
//! instruction where it began; nothing is guessed. Dynamic pointers do not occur, since no helper
//! that makes them runs here.

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

/// All that is known of a program.
#[derive(Clone, Debug)]
pub struct Analysis {
    graph: Graph,
    facts: Vec<SlotFacts>,
    liveness: Liveness,
    /// Why nothing is known, and that of all registers.
    given_up: Option<(Unknown, [Fact; 11])>,
}

impl Analysis {
    /// Analyses a program of an object with these maps.
    ///
    /// # Errors
    /// The program does not pass [`check`](crate::refusal::check()), or one of its instructions is
    /// none, or leads to where none begins.
    pub fn of(program: &Program, maps: &[MapDefinition]) -> Result<Self, Malformed> {
        Self::with_states(program, maps, explore::STATES_MAX)
    }

    /// The same with another number of states that are kept apart where paths meet, 16 usually:
    /// with fewer it costs less, and less is known of what depends on the way.
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

    /// The control flow.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What may still be needed.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Why nothing at all is known, if the program could not be followed to its end.
    pub fn given_up(&self) -> Option<Unknown> {
        self.given_up.map(|(why, _)| why)
    }

    /// Whether control can come to an instruction.
    pub fn is_reachable(&self, slot: usize) -> bool {
        self.registers(slot).is_some()
    }

    /// What registers hold before an instruction; nothing if control cannot come there.
    pub fn registers(&self, slot: usize) -> Option<&[Fact; 11]> {
        match &self.given_up {
            Some((_, unknown)) => self.graph.operation(slot).map(|_| unknown),
            None => self.facts.get(slot)?.registers.as_deref(),
        }
    }

    /// A register that an instruction reads though it is not set on every way there: a call leaves
    /// nothing in registers 1 to 5, and a function finds nothing but its arguments. Verifiers take
    /// no such program. What is said of the rest holds, but what such an instruction gets depends
    /// on registers that are not live. None is found in a program that is given up.
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

    /// What the function's own frame holds before an instruction, in the order of its bytes. Of
    /// bytes that are not among these nothing is known; which are still needed says
    /// [`Liveness::is_byte_live`].
    pub fn spills(&self, slot: usize) -> &[Spill] {
        self.facts.get(slot).map_or(&[], |facts| &facts.spills)
    }

    /// Whether an instruction does nothing but store to the function's own frame what nobody will
    /// read, so that it can be left out.
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

    /// The memory that an instruction touches: more than one access if that depends on the way
    /// that control came, or if a helper is given several. What functions of the program touch that
    /// are called here, by the program or by a helper, is not among it: see
    /// [`Graph::calls_function`].
    pub fn accesses(&self, slot: usize) -> &[Access] {
        self.facts.get(slot).map_or(&[], |facts| &facts.accesses)
    }

    /// The conditional jump as a check of the packet's length, if it is nothing else.
    pub fn bounds_check(&self, slot: usize) -> Option<&BoundsCheck> {
        self.facts.get(slot)?.check.length()
    }

    /// Whether a conditional jump may be made, and whether it may not.
    pub fn outcomes(&self, slot: usize) -> [bool; 2] {
        self.facts.get(slot).map_or([false; 2], |facts| facts.outcomes)
    }

    /// Where functions begin that the helper called at `slot` may call.
    pub fn callbacks(&self, slot: usize) -> &[usize] {
        self.facts.get(slot).map_or(&[], |facts| &facts.callbacks)
    }

    /// What is touched and not known, in the order of slots.
    pub fn unknown_accesses(&self) -> impl Iterator<Item = &Access> {
        let accesses = self.facts.iter().flat_map(|facts| &facts.accesses);
        accesses.filter(|access| matches!(access.space, Space::Unknown(_)))
    }

    /// Says where in the source something is not known, and why.
    pub fn explain(&self, program: &Program, unknown: &Unknown) -> String {
        match program.line(unknown.slot) {
            Some(line) => {
                format!("{unknown} ({}:{}: `{}`)", line.file, line.line, line.text.trim())
            }
            None => unknown.to_string(),
        }
    }
}

/// Nothing is known of a program, for a reason.
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

/// The register by which an operation touches memory, and what for.
fn touched_registers(operation: Operation) -> Option<(Option<u8>, AccessKind)> {
    match operation {
        Operation::Load { base, .. } => Some((Some(base), AccessKind::Read)),
        Operation::Store { base, .. } => Some((Some(base), AccessKind::Write)),
        Operation::Atomic { base, .. } => Some((Some(base), AccessKind::Change)),
        Operation::Call(_) => Some((None, AccessKind::Change)),
        _ => None,
    }
}
