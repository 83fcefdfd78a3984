// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Follows a program along all its paths until a fixed point is reached.
//!
//! Where paths meet, a few states are kept apart, since facts about one value often depend on
//! another: a header exists only if a length was found. A further state is joined with the one that
//! loses the fewest facts, and in loops moving bounds are widened. A function is followed
//! separately for each chain of calls that leads to it; calls are at most [`FRAMES_MAX`] deep. The
//! cost is bounded: beyond a first limit all states are joined, and beyond a second one the
//! analysis gives up on the program as too large.

mod notes;
mod order;

use super::branch::Jump;
use super::facts::SlotFacts;
use super::graph::{Graph, TAIL_CALL, target};
use super::liveness::Liveness;
use super::spill::SPILLS_MAX;
use super::state::State;
use super::unknown::{Unknown, Why};
use super::value::{Kind, Region, Value};
use super::walk::{Walk, unknown};
use crate::abi::FRAMES_MAX;
use crate::instruction::{Callee, Operation};
use crate::object::MapDefinition;
use order::{order, steps};
use std::collections::{BTreeMap, BTreeSet};

/// Default number of states kept apart where paths meet.
pub(super) const STATES_MAX: usize = 16;
/// Joins at one place before bounds are widened.
const JOINS_MAX: u32 = 4;
/// Instructions followed until all states are joined; at ten times this number the analysis gives
/// up. The limit is a constant plus a number for each slot. Programs of `programs/xdp` need at most
/// 16 for each slot.
const WORK: u64 = 2_000;
const WORK_PER_SLOT: u64 = 50;
/// Values in all states until all states are joined; at ten times this number the analysis gives
/// up. Each takes about a hundred bytes; programs of `programs/xdp` have at most 22,000.
const VALUES_IN_ALL: usize = 300_000;
/// Chains of calls that are distinguished, at most.
const CONTEXTS_MAX: usize = 500;
/// Longest program that is analysed, in slots.
const SLOTS_MAX: usize = 1 << 17;

/// A chain of calls: the innermost function, and its call.
struct Context {
    function: usize,
    /// The calling context and the slot of the call.
    caller: Option<(usize, usize)>,
}

/// A place where paths meet.
#[derive(Default)]
struct Meeting {
    states: Vec<State>,
    /// Which of the states still have to be followed.
    pending: Vec<bool>,
    joins: u32,
}

/// A place in a chain of calls. Places are followed in this order: inner functions first, and
/// within a function in the order of control flow.
type Order = (std::cmp::Reverse<usize>, usize, usize, usize);

/// The exploration of a program.
pub(super) struct Explorer<'p> {
    graph: &'p Graph,
    live: &'p Liveness,
    walk: Walk<'p>,
    contexts: Vec<Context>,
    /// Numbers of contexts by caller, call and function.
    called: BTreeMap<(usize, usize, usize), usize>,
    meetings: BTreeMap<(usize, usize), Meeting>,
    queue: BTreeSet<Order>,
    /// Position of each block in the reverse post-order of its function.
    positions: Vec<usize>,
    /// Slots that are targets of back edges.
    heads: BTreeSet<usize>,
    steps: Vec<u64>,
    work: u64,
    /// Number of values in all states.
    values: usize,
    states_max: usize,
    /// Facts of frames that may still be recorded.
    spill_room: usize,
    /// Facts to be completed after the fixed point is reached.
    facts: Option<Vec<SlotFacts>>,
}

impl<'p> Explorer<'p> {
    /// Creates an exploration of a program with this graph and liveness, and this limit of states
    /// kept apart where paths meet.
    pub fn new(
        graph: &'p Graph,
        live: &'p Liveness,
        maps: &'p [MapDefinition],
        states_max: usize,
    ) -> Self {
        let (positions, heads) = order(graph);
        Self {
            graph,
            live,
            walk: Walk { maps, accesses: vec![] },
            contexts: vec![Context { function: 0, caller: None }],
            called: BTreeMap::new(),
            meetings: BTreeMap::new(),
            queue: BTreeSet::new(),
            positions,
            heads,
            steps: steps(graph),
            work: 0,
            values: 0,
            states_max,
            spill_room: SPILLS_MAX,
            facts: None,
        }
    }

    /// Returns the facts at each slot, for a program started with this value in register 1.
    ///
    /// # Errors
    /// The reason for which the program cannot be followed.
    pub fn explore(mut self, context: Value) -> Result<Vec<SlotFacts>, Unknown> {
        if self.graph.slots() > SLOTS_MAX {
            return Err(unknown(0, 0, Why::TooLarge));
        }
        self.arrive(0, 0, State::start(context));
        while let Some((_, _, slot, context)) = self.queue.pop_first() {
            let Some(meeting) = self.meetings.get_mut(&(context, slot)) else { continue };
            let pending =
                std::mem::replace(&mut meeting.pending, vec![false; meeting.states.len()]);
            let states = meeting.states.iter().zip(pending);
            let states: Vec<State> = states
                .filter(|(_, is_pending)| *is_pending)
                .map(|(state, _)| state.clone())
                .collect();
            for state in states {
                self.follow(context, slot, state)?;
            }
            let is_too_much = self.work > 10 * self.work_max() || self.values > 10 * VALUES_IN_ALL;
            if is_too_much || self.contexts.len() > CONTEXTS_MAX {
                return Err(unknown(slot, 0, Why::TooLarge));
            }
        }
        self.collect()
    }

    fn work_max(&self) -> u64 {
        WORK + WORK_PER_SLOT * self.graph.slots() as u64
    }

    /// Follows every state once more, to record the facts before each instruction.
    fn collect(mut self) -> Result<Vec<SlotFacts>, Unknown> {
        self.facts = Some(vec![SlotFacts::default(); self.graph.slots()]);
        for ((context, slot), meeting) in std::mem::take(&mut self.meetings) {
            for state in meeting.states {
                self.follow(context, slot, state)?;
            }
        }
        Ok(self.facts.take().unwrap_or_default())
    }

    /// Handles a path that reaches a slot in this state.
    fn arrive(&mut self, context: usize, slot: usize, mut state: State) {
        if self.facts.is_some() {
            return;
        }
        state.tidy(self.live.registers(slot));
        let is_much = self.work > self.work_max() || self.values > VALUES_IN_ALL;
        let states_max = if is_much { 1 } else { self.states_max };
        let meeting = self.meetings.entry((context, slot)).or_default();
        let is_covered = |known: &State| known.join(&state, slot, None) == *known;
        if meeting.states.iter().any(is_covered) {
            return;
        }
        if meeting.states.len() < states_max {
            self.values += state.size();
            meeting.states.push(state);
            meeting.pending.push(true);
        } else {
            let states = meeting.states.iter().enumerate();
            let best = states.min_by_key(|(_, known)| known.losses(&state));
            let Some((at, known)) = best else { return };
            meeting.joins += 1;
            let widens = meeting.joins > JOINS_MAX && self.heads.contains(&slot);
            let steps = widens.then_some(self.steps.as_slice());
            let joined = known.join(&state, slot, steps);
            meeting.pending[at] = meeting.pending[at] || joined != *known;
            meeting.states[at] = joined;
        }
        self.queue.insert(self.order_of(context, slot));
    }

    fn order_of(&self, context: usize, slot: usize) -> Order {
        let position = self.positions[self.graph.block_of(slot)];
        (std::cmp::Reverse(self.depth(context)), position, slot, context)
    }

    fn depth(&self, mut context: usize) -> usize {
        let mut depth = 0;
        while let Some((caller, _)) = self.contexts[context].caller {
            (context, depth) = (caller, depth + 1);
        }
        depth
    }

    /// Follows a state from a slot to the end of its block or to a call.
    fn follow(&mut self, context: usize, mut slot: usize, mut state: State) -> Result<(), Unknown> {
        let end = self.graph.blocks()[self.graph.block_of(slot)].slots.end;
        while slot < end {
            let Some(operation) = self.graph.operation(slot) else { return Ok(()) };
            let next = slot + operation.slots();
            self.work += 1;
            self.note_before(slot, &state);
            self.walk.accesses.clear();
            match operation {
                Operation::Call(callee) => {
                    let continues = self.call(context, slot, &mut state, callee)?;
                    self.note_accesses(slot);
                    if !continues {
                        return Ok(());
                    }
                }
                Operation::Exit => {
                    self.leave(context, slot, state);
                    return Ok(());
                }
                Operation::Goto { distance, .. } => {
                    if let Some(to) = target(slot, distance) {
                        self.arrive(context, to, state);
                    }
                    return Ok(());
                }
                Operation::Jump { width, condition, left, right, distance } => {
                    let jump = Jump { width, condition, left, right };
                    self.jump(context, slot, &state, jump, distance);
                    return Ok(());
                }
                _ => {
                    self.walk.step(&mut state, slot, operation);
                    self.note_accesses(slot);
                }
            }
            slot = next;
        }
        self.arrive(context, slot, state);
        Ok(())
    }

    fn jump(&mut self, context: usize, slot: usize, state: &State, jump: Jump, distance: i16) {
        let Some(to) = target(slot, distance.into()) else { return };
        self.note_jump(slot, state, jump, to);
        let [taken, not_taken] = jump.outcomes(state);
        for (to, outcome) in [(to, taken), (slot + 1, not_taken)] {
            if let Some(outcome) = outcome {
                self.arrive(context, to, outcome);
            }
        }
    }

    /// Follows a call. Returns whether control continues after it in this state.
    fn call(
        &mut self,
        context: usize,
        slot: usize,
        state: &mut State,
        callee: Callee,
    ) -> Result<bool, Unknown> {
        match callee {
            Callee::Local(distance) => {
                let entry = target(slot, distance);
                if let Some(entry) = entry {
                    self.enter(context, slot, entry, None, state.clone());
                }
                Ok(false)
            }
            Callee::Helper(number) => {
                let callback = self.walk.call(state, slot, number)?;
                if number == TAIL_CALL && state.depth() > 0 {
                    self.leave_for_program(context, slot, state.clone());
                }
                let Some(callback) = callback else { return Ok(true) };
                if let Some(facts) = &mut self.facts {
                    let callbacks = &mut facts[slot].callbacks;
                    if !callbacks.contains(&callback.function) {
                        callbacks.push(callback.function);
                    }
                }
                let arguments = Some(callback.arguments);
                self.enter(context, slot, callback.function, arguments, state.clone());
                // The function's return also leads to the slot after the call.
                self.arrive(context, slot + 1, state.clone());
                Ok(false)
            }
            Callee::Kernel { .. } => {
                self.walk.call_unknown(state, slot, Why::OfTheKernel);
                Ok(true)
            }
        }
    }

    /// Enters a function that is called at `slot`.
    fn enter(
        &mut self,
        context: usize,
        slot: usize,
        entry: usize,
        arguments: Option<[Value; 5]>,
        mut state: State,
    ) {
        let Some(function) = self.graph.function_at(entry) else { return };
        // A deeper call aborts the program.
        if state.frames.len() >= FRAMES_MAX || self.contexts.len() > CONTEXTS_MAX {
            return;
        }
        let live = self.live.registers(slot + 1);
        for register in (6..10).filter(|register| live >> register & 1 == 0) {
            state.set(register, Value::NOTHING);
        }
        state.enter(arguments);
        let contexts = &mut self.contexts;
        let inner = *self.called.entry((context, slot, function)).or_insert_with(|| {
            contexts.push(Context { function, caller: Some((context, slot)) });
            contexts.len() - 1
        });
        self.arrive(inner, entry, state);
    }

    /// Returns from a function at its exit in `slot`.
    fn leave(&mut self, context: usize, slot: usize, mut state: State) {
        let Context { function, caller: Some((caller, call)) } = self.contexts[context] else {
            return;
        };
        let Some(arguments) = state.leave(slot) else {
            return self.arrive(caller, call + 1, state);
        };
        state.set(0, Value::ANY_NUMBER);
        self.arrive(caller, call + 1, state.clone());
        // The helper may call the function again.
        state.enter(Some(arguments));
        self.arrive(context, self.graph.functions()[function].slots.start, state);
    }

    /// Handles a tail call: another program replaces the function and returns to its caller. Its
    /// effects are unknown, including those on the frames of its callers.
    fn leave_for_program(&mut self, context: usize, slot: usize, mut state: State) {
        state.lose_packet(slot);
        state.lose_stack();
        state.set(0, Value::ANY_NUMBER);
        self.leave(context, slot, state);
    }
}

/// Returns the value with which an XDP program starts.
pub(super) fn context() -> Value {
    Value::new(Kind::Address { region: Region::Context, offset: (0, 0) })
}

#[cfg(test)]
mod tests {
    use crate::analysis::analysed::{PACKET, analysed, at_end, before, program, touched};
    use crate::analysis::{Analysis, Why};

    #[test]
    fn loops_come_to_an_end_with_bounds_that_hold() {
        let text = "r2 = 0\nagain:\nr2 += 1\nr3 = r10\nr3 -= r2\n*(u8 *)(r3 - 8) = 1\n\
                    if r2 < 64 goto again\nr0 = r2\nexit";
        let analysis = analysed(text);
        assert_eq!(before(&analysis, 6, 2), "0x40");
        assert_eq!(touched(&analysis, 4), ["Write stack -72..=-9 for 1"]);
    }

    #[test]
    fn an_endless_loop_comes_to_an_end_too() {
        let text = "r2 = 0\nagain:\nr2 += 1\nr3 = r10\nr3 -= r2\n*(u8 *)(r3 - 8) = 1\n\
                    goto again";
        let analysis = analysed(text);
        assert_eq!(analysis.given_up(), None);
        assert!(!analysis.accesses(4)[0].is_proven);
    }

    #[test]
    fn what_a_function_gives_and_keeps_is_known_behind_its_call() {
        let text = "r6 = r1\nr1 = r10\nr1 += -8\n*(u64 *)(r10 - 8) = 1\ncall inner\nr7 = r0\n\
                    r8 = *(u64 *)(r10 - 8)\nexit\ninner:\n*(u64 *)(r1 + 0) = 3\nr0 = 5\n\
                    r6 = 9\nexit";
        let analysis = analysed(text);
        assert_eq!(before(&analysis, 6, 0), "0x5");
        assert_eq!(before(&analysis, 6, 6), "nothing", "nobody reads it again");
        assert_eq!(before(&analysis, 7, 8), "0x3");
        assert_eq!(touched(&analysis, 8), ["Write stack, 1 calls up -8..=-8 for 8"]);
        assert_eq!(analysis.spills(7)[0].fact.to_string(), "0x3");
    }

    #[test]
    fn a_function_that_a_helper_calls_is_followed_with_what_it_gets() {
        let text = "r1 = 10\nr2 = function each\nr3 = r10\nr4 = 0\n*(u64 *)(r10 - 8) = 0\n\
                    call 0xb5\nr0 = *(u64 *)(r10 - 8)\nexit\n\
                    each:\n*(u64 *)(r2 - 8) = r1\nr0 = r1\nexit";
        let analysis = analysed(text);
        assert_eq!(analysis.callbacks(6), [9]);
        assert_eq!(before(&analysis, 9, 1), "0x0..=0x9");
        assert_eq!(touched(&analysis, 9), ["Write stack, 1 calls up -8..=-8 for 8"]);
        assert_eq!(before(&analysis, 8, 0), "0x0..=0x9");
    }

    #[test]
    fn another_program_in_a_functions_place_may_do_anything() {
        let text = format!(
            "r6 = r1\n{PACKET}r7 = r2\n*(u64 *)(r10 - 8) = 5\ncall inner\n\
             r0 = *(u64 *)(r10 - 8)\nr0 = r7\nexit\ninner:\nr2 = map[0]\nr3 = 0\ncall 0xc\n\
             r0 = 1\nexit"
        );
        let analysis = analysed(&text);
        assert_eq!(analysis.spills(6), []);
        assert!(before(&analysis, 7, 7).starts_with("not known"));
    }

    #[test]
    fn what_is_executed_never_is_not_reachable() {
        let analysis = analysed("r2 = 5\nif r2 > 3 goto out\nr0 = 1\nout:\nr0 = 2\nexit");
        assert!(!analysis.is_reachable(2) && analysis.is_reachable(3));
        assert_eq!(analysis.outcomes(1), [true, false]);
    }

    #[test]
    fn a_program_that_costs_too_much_is_given_up_and_says_so() {
        // Each function calls the next three times, so there are more chains of calls than are
        // distinguished.
        let mut text = "call f0\ncall f0\nr0 = 0\nexit\n".to_owned();
        for at in 0..6 {
            let call = format!("call f{}\n", at + 1).repeat(3);
            text.push_str(&format!("f{at}:\n{call}r0 = 0\nexit\n"));
        }
        text.push_str("f6:\nr0 = 0\nexit");
        let analysis = Analysis::of(&program(&text), &[]).expect("it has a graph");
        let given_up = analysis.given_up().expect("there are 2 * 3^6 chains of calls");
        assert_eq!(given_up.why, Why::TooLarge);
        assert!(before(&analysis, 0, 1).starts_with("not known"));
    }

    #[test]
    fn frames_full_of_pieces_do_not_take_all_memory() {
        // States of 500 pieces each, distinguished by as many comparisons.
        let stores: String = (1..=500).map(|at| format!("*(u8 *)(r10 - {at}) = {at}\n")).collect();
        let jumps: String = (0..400)
            .map(|at| format!("if r2 == {at} goto +1\n*(u8 *)(r10 - 1) = {at}\n"))
            .collect();
        let text = format!("r2 = *(u32 *)(r1 + 12)\n{stores}{jumps}r0 = 0\nexit");
        assert_eq!(at_end(&text, 0), "0x0");
    }
}
