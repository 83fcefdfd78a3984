// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records the facts at each instruction, after the fixed point is reached.

use super::Explorer;
use crate::analysis::branch::Jump;
use crate::analysis::check::BoundsCheck;
use crate::analysis::graph::target;
use crate::analysis::state::State;
use crate::instruction::Operation;

/// Instructions that are followed to determine the result of a program, at most.
const ENDING_MAX: usize = 64;

impl Explorer<'_> {
    pub(super) fn note_before(&mut self, slot: usize, state: &State) {
        if let Some(facts) = &mut self.facts {
            facts[slot].add_state(slot, state, &mut self.spill_room);
        }
    }

    pub(super) fn note_accesses(&mut self, slot: usize) {
        if let Some(facts) = &mut self.facts {
            self.walk.accesses.iter().for_each(|access| facts[slot].add_access(access));
        }
    }

    pub(super) fn note_jump(&mut self, slot: usize, state: &State, jump: Jump, target: usize) {
        if self.facts.is_none() {
            return;
        }
        let outcomes = jump.outcomes(state);
        let check = jump.check(state).map(|check| {
            let failure = if check.holds_if_taken { slot + 1 } else { target };
            let failed = outcomes[usize::from(check.holds_if_taken)].clone();
            BoundsCheck {
                slot,
                is_metadata: check.is_metadata,
                needed: check.needed,
                holds_if_taken: check.holds_if_taken,
                failure,
                verdict: failed.and_then(|state| self.ending(failure, state)),
            }
        });
        if let Some(facts) = &mut self.facts {
            facts[slot].check = facts[slot].check.join(check);
            for (known, outcome) in facts[slot].outcomes.iter_mut().zip(&outcomes) {
                *known |= outcome.is_some();
            }
        }
    }

    /// Returns the program's result if it runs from `slot` in this state to its end without
    /// effects.
    fn ending(&mut self, mut slot: usize, mut state: State) -> Option<u64> {
        if state.depth() > 0 {
            return None;
        }
        for _ in 0..ENDING_MAX {
            let operation = self.graph.operation(slot)?;
            match operation {
                Operation::Exit => return state.get(0).constant(),
                Operation::Call(_) | Operation::Store { .. } | Operation::Atomic { .. } => {
                    return None;
                }
                Operation::Goto { distance, .. } => {
                    slot = target(slot, distance)?;
                    continue;
                }
                Operation::Jump { width, condition, left, right, distance } => {
                    let outcomes = Jump { width, condition, left, right }.outcomes(&state);
                    (slot, state) = match outcomes {
                        [Some(state), None] => (target(slot, distance.into())?, state),
                        [None, Some(state)] => (slot + 1, state),
                        _ => return None,
                    };
                    continue;
                }
                _ => {
                    self.walk.accesses.clear();
                    self.walk.step(&mut state, slot, operation);
                    // A load that may miss has another result.
                    if self.walk.accesses.iter().any(|access| !access.is_proven) {
                        return None;
                    }
                }
            }
            slot += operation.slots();
        }
        None
    }
}
