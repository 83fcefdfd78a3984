// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Execution of a function: its values, its objects, and its control flow.
//!
//! A frame is reused, so that a firing allocates nothing. Values need no clearing, since each is
//! defined before it is used; objects are reset to their initial contents. A suspended handler
//! keeps its frame unchanged.

use super::choice::Exhausted;
use super::machine::Machine;
use super::memory::ObjectMemory;
use super::table::Reference;
use crate::analysis::{Dominators, Loops, watched_loops};
use crate::{
    Bits, BlockId, Function, FunctionId, Program, TableId, Target, Term, TrapCode, Type, ValueId,
};
use smallvec::SmallVec;

/// A value at run time.
#[derive(Clone, Debug)]
pub(super) enum Datum {
    Bits(Bits),
    Reference(Reference),
    Table(TableId),
    /// A packet of the firing, as an index into its packets.
    Packet(usize),
}

impl Datum {
    /// Returns the placeholder for a value that is not defined yet.
    fn initial(ty: Type) -> Self {
        match ty {
            Type::Bits(width) => Datum::Bits(Bits::zero(width)),
            Type::Ref(_) => Datum::Reference(Reference::default()),
            Type::Handle(table) => Datum::Table(table),
            Type::Packet => Datum::Packet(usize::MAX),
        }
    }
}

/// How a function ended.
pub(super) enum End {
    Done { mask: Option<u64> },
    Suspend { mask: Option<u64>, resume: BlockId },
    Return { value: Option<Datum> },
}

/// Why a function did not reach its end.
pub(super) enum Stop {
    Trap(TrapCode),
    Exhausted(Exhausted),
    /// In a replay: an action that does not match the record.
    Departed(String),
}

impl From<Exhausted> for Stop {
    fn from(exhausted: Exhausted) -> Self {
        Stop::Exhausted(exhausted)
    }
}

/// Values and objects of a function in execution.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    values: Vec<Datum>,
    pub locals: Vec<ObjectMemory>,
    /// By block: how often the loop that it heads has iterated since it was entered.
    loop_runs: Vec<u64>,
}

impl Frame {
    /// Creates a frame for `function`; `None` if its objects exceed this machine.
    pub fn new(function: &Function) -> Option<Self> {
        Some(Self {
            values: function.values.iter().map(|value| Datum::initial(value.ty)).collect(),
            locals: function.locals.iter().map(ObjectMemory::new).collect::<Option<_>>()?,
            loop_runs: vec![0; function.blocks.len()],
        })
    }

    /// Prepares it for another run of `function` from its entry.
    pub fn reset(&mut self, function: &Function) {
        for (local, object) in self.locals.iter_mut().zip(&function.locals) {
            local.reset(object);
        }
        self.loop_runs.fill(0);
    }

    pub fn set(&mut self, value: ValueId, datum: Datum) {
        self.values[value.index()] = datum;
    }

    pub fn datum(&self, value: ValueId) -> &Datum {
        &self.values[value.index()]
    }

    /// Returns a value that the verifier knows to be a bit vector.
    pub fn bits(&self, value: ValueId) -> &Bits {
        match self.datum(value) {
            Datum::Bits(bits) => bits,
            other => panic!("the verifier lets only bit vectors come here, not {other:?}"),
        }
    }

    /// Returns a reference; null for any other value.
    pub fn reference(&self, value: ValueId) -> Reference {
        match self.datum(value) {
            Datum::Reference(reference) => *reference,
            _ => Reference::default(),
        }
    }

    /// Returns the packet's index; an invalid index for any other value.
    pub fn packet(&self, value: ValueId) -> usize {
        match self.datum(value) {
            Datum::Packet(packet) => *packet,
            _ => usize::MAX,
        }
    }

    /// Returns the table of a handle.
    pub fn table(&self, value: ValueId) -> Option<TableId> {
        match self.datum(value) {
            Datum::Table(table) => Some(*table),
            _ => None,
        }
    }

    /// Passes the arguments to the block's parameters, all at once: an argument may be a parameter.
    fn pass(&mut self, function: &Function, target: &Target) {
        let args: SmallVec<[Datum; 4]> =
            target.args.iter().map(|arg| self.datum(*arg).clone()).collect();
        for (param, arg) in function.block(target.block).params.iter().zip(args) {
            self.set(*param, arg);
        }
    }
}

/// Loops of a function whose bound is checked.
///
/// The count is how often control enters the loop body from the header (which is part of the loop)
/// since the loop was entered. Exceeding the bound is a trap.
#[derive(Debug)]
pub(super) struct LoopBounds {
    by_header: Vec<Option<LoopBound>>,
}

#[derive(Debug)]
struct LoopBound {
    bound: u64,
    /// Whether each return to its header counts for the watchdog.
    is_watched: bool,
    /// By block: whether it is in the loop.
    is_inside: Vec<bool>,
}

impl LoopBounds {
    /// Finds the loops of all functions of a program; a firing may iterate at most `turn_limit`
    /// times.
    pub fn of_all(program: &Program, turn_limit: u64) -> Vec<Self> {
        let watched = watched_loops(program, turn_limit);
        let functions = program.functions.iter().zip(&watched);
        functions.map(|(function, watched)| Self::of(function, watched)).collect()
    }

    fn of(function: &Function, watched: &[bool]) -> Self {
        let loops = Loops::of(function, &Dominators::of(function));
        let mut by_header: Vec<_> = function.blocks.iter().map(|_| None).collect();
        for found in &loops.loops {
            let (info, is_watched) =
                (function.blocks[found.header].loop_info, watched[found.header]);
            if info.is_some() || is_watched {
                let mut is_inside = vec![false; function.blocks.len()];
                found.body.iter().for_each(|block| is_inside[*block] = true);
                let bound = info.map_or(u64::MAX, |info| info.bound);
                by_header[found.header] = Some(LoopBound { bound, is_watched, is_inside });
            }
        }
        Self { by_header }
    }

    /// Records a step of control flow.
    ///
    /// # Errors
    /// The trap, if the step exceeds the bound of a loop or the watchdog limit.
    fn step(
        &self,
        runs: &mut [u64],
        turns_left: &mut u64,
        from: BlockId,
        to: BlockId,
    ) -> Result<(), TrapCode> {
        let (from, to) = (from.index(), to.index());
        if let Some(left) = &self.by_header[from]
            && left.is_inside[to]
        {
            runs[from] = runs[from].saturating_add(1);
            if runs[from] > left.bound {
                return Err(TrapCode::LoopBound);
            }
        }
        if let Some(entered) = &self.by_header[to] {
            if !entered.is_inside[from] {
                runs[to] = 0;
            } else if entered.is_watched {
                *turns_left = turns_left.checked_sub(1).ok_or(TrapCode::Watchdog)?;
            }
        }
        Ok(())
    }
}

impl Machine<'_> {
    /// Runs a function from block `start`.
    pub fn run(&mut self, id: FunctionId, frame: &mut Frame, start: BlockId) -> Result<End, Stop> {
        let function = self.program.function(id);
        let mut at = start;
        loop {
            let block = function.block(at);
            for inst in &block.insts {
                self.execute(frame, inst)?;
            }
            let mask = |frame: &Frame, mask: &Option<ValueId>| mask.map(|m| frame.bits(m).to_u64());
            let target = match &block.term {
                Term::Jump(target) => target,
                Term::Branch { cond, if_true, if_false } => {
                    if frame.bits(*cond).is_zero() {
                        if_false
                    } else {
                        if_true
                    }
                }
                Term::Switch { value, cases, default } => {
                    let value = frame.bits(*value);
                    cases.iter().find(|(case, _)| case == value).map_or(default, |(_, to)| to)
                }
                Term::Done { mask: value } => return Ok(End::Done { mask: mask(frame, value) }),
                Term::Suspend { mask: value, resume } => {
                    let mask = mask(frame, value);
                    let resume = self.go(id, frame, at, resume)?;
                    return Ok(End::Suspend { mask, resume });
                }
                Term::Return { value } => {
                    return Ok(End::Return {
                        value: value.map(|value| frame.datum(value).clone()),
                    });
                }
                Term::Trap(code) => return Err(Stop::Trap(*code)),
            };
            at = self.go(id, frame, at, target)?;
        }
    }

    fn go(
        &mut self,
        id: FunctionId,
        frame: &mut Frame,
        from: BlockId,
        target: &Target,
    ) -> Result<BlockId, Stop> {
        let turns_left = &mut self.activation.turns_left;
        let step =
            self.loops[id.index()].step(&mut frame.loop_runs, turns_left, from, target.block);
        step.map_err(Stop::Trap)?;
        if !target.args.is_empty() {
            frame.pass(self.program.function(id), target);
        }
        Ok(target.block)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, done, object, pass, put, take};
    use super::super::{Interpreter, Options, Outcome};
    use crate::*;

    const WORD: Item = Item::Bits(64);

    fn words(values: &[u64]) -> Vec<Bits> {
        values.iter().map(|value| Bits::from_u64(64, *value)).collect()
    }

    /// Returns what an element puts for `inputs`, and its traps.
    fn outcome(
        inputs: &[u64],
        build: impl FnOnce(&mut Builder),
    ) -> (Vec<u64>, Vec<(TrapCode, u64)>, u64) {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[WORD], build);
        let program = fixture.alone(element);
        let (outputs, interpreter) = pass(&program, &words(inputs));
        let counters = interpreter.counters(InstanceId(0));
        let traps = counters.traps.iter().map(|(code, count)| (*code, *count)).collect();
        (outputs.iter().map(Bits::to_u64).collect(), traps, counters.firings)
    }

    /// Runs `a, b = b, a` as often as the input says: Fibonacci-like, with block parameters alone.
    fn swap_loop(b: &mut Builder, bound: u64) {
        let count = take(b, 0, 64);
        let [zero, one, hundred] = [0, 1, 100].map(|value| b.number(64, value));
        let (header, body, exit) = (b.new_block(), b.new_block(), b.new_block());
        let [at, left, right] = ["at", "left", "right"]
            .map(|name| b.add_param(header, Type::Bits(64), Some(name.into())));
        let unroll = Unroll::Auto;
        b.set_loop(header, LoopInfo { bound, unroll, independent: false, is_watched: false });
        b.end(Term::Jump(Target { block: header, args: vec![zero, one, hundred] }));
        b.switch_to(header);
        let continues = b.compare(CompareOp::ULt, at, count);
        b.branch(continues, body, exit);
        b.switch_to(body);
        let next = b.binary(BinaryOp::Add, at, one);
        b.end(Term::Jump(Target { block: header, args: vec![next, right, left] }));
        b.switch_to(exit);
        put(b, 0, left);
        done(b);
    }

    #[test]
    fn block_parameters_change_all_at_once() {
        let (outputs, traps, _) = outcome(&[0, 1, 2, 3], |b| swap_loop(b, 3));
        assert_eq!((outputs, traps), (vec![1, 100, 1, 100], vec![]));
    }

    #[test]
    fn a_loop_that_would_run_once_more_than_its_bound_is_a_trap() {
        let (outputs, traps, firings) = outcome(&[3, 4, 2], |b| swap_loop(b, 3));
        assert_eq!((outputs, firings), (vec![100, 1], 3));
        assert_eq!(traps, [(TrapCode::LoopBound, 1)]);
    }

    #[test]
    fn an_inner_loop_counts_anew_each_time_it_is_entered() {
        let (outputs, traps, _) = outcome(&[3], |b| {
            let count = take(b, 0, 64);
            let [zero, one] = [0, 1].map(|value| b.number(64, value));
            let blocks: Vec<BlockId> = (0..5).map(|_| b.new_block()).collect();
            let [outer, inner, body, latch, exit] = blocks[..] else { unreachable!() };
            let of = |b: &mut Builder, block| b.add_param(block, Type::Bits(64), None);
            let (row, sum) = (of(b, outer), of(b, outer));
            let (column, inner_sum) = (of(b, inner), of(b, inner));
            let info =
                LoopInfo { bound: 3, unroll: Unroll::Auto, independent: false, is_watched: false };
            b.set_loop(outer, info);
            b.set_loop(inner, info);
            let to = |block, args: &[ValueId]| Target { block, args: args.to_vec() };
            b.end(Term::Jump(to(outer, &[zero, zero])));
            b.switch_to(outer);
            let cond = b.compare(CompareOp::ULt, row, count);
            let (if_true, if_false) = (to(inner, &[zero, sum]), to(exit, &[]));
            b.end(Term::Branch { cond, if_true, if_false });
            b.switch_to(inner);
            let cond = b.compare(CompareOp::ULt, column, count);
            b.branch(cond, body, latch);
            b.switch_to(body);
            let next = b.binary(BinaryOp::Add, column, one);
            let more = b.binary(BinaryOp::Add, inner_sum, one);
            b.end(Term::Jump(to(inner, &[next, more])));
            b.switch_to(latch);
            let next = b.binary(BinaryOp::Add, row, one);
            b.end(Term::Jump(to(outer, &[next, inner_sum])));
            b.switch_to(exit);
            put(b, 0, sum);
            done(b);
        });
        assert_eq!((outputs, traps), (vec![9], vec![]));
    }

    #[test]
    fn switch_takes_its_case_or_the_default() {
        let (outputs, ..) = outcome(&[5, 6, 7], |b| {
            let value = take(b, 0, 64);
            let (exit, results) = (b.new_block(), [50, 60, 0].map(|value| b.number(64, value)));
            let result = b.add_param(exit, Type::Bits(64), None);
            let to = |at: usize| Target { block: exit, args: vec![results[at]] };
            let cases = vec![(Bits::from_u64(64, 5), to(0)), (Bits::from_u64(64, 6), to(1))];
            b.end(Term::Switch { value, cases, default: to(2) });
            b.switch_to(exit);
            put(b, 0, result);
            done(b);
        });
        assert_eq!(outputs, [50, 60, 0]);
    }

    #[test]
    fn a_trap_keeps_what_was_done_and_lets_staged_items_leave() {
        let (outputs, traps, firings) = outcome(&[1, 2], |b| {
            let value = take(b, 0, 64);
            put(b, 0, value);
            b.end(Term::Trap(TrapCode::User(7)));
        });
        assert_eq!((outputs, firings), (vec![1, 2], 2));
        assert_eq!(traps, [(TrapCode::User(7), 2)]);
    }

    #[test]
    fn a_suspended_firing_goes_on_with_its_values_and_locals() {
        let mut fixture = Fixture::default();
        // Takes a and suspends; takes b and puts a + b + the local kept from before.
        let element = fixture.element(&[WORD], &[WORD], |b| {
            let local = b.function_mut().add_local(object("kept".into(), 64, 1));
            let kept = ObjectRef::Local(local);
            let first = take(b, 0, 64);
            let (zero, thousand) = (b.number(1, 0), b.number(64, 1000));
            b.store(kept, zero, 0, thousand);
            let resume = b.new_block();
            let param = b.add_param(resume, Type::Bits(64), None);
            b.end(Term::Suspend {
                mask: None,
                resume: Target { block: resume, args: vec![first] },
            });
            b.switch_to(resume);
            let second = take(b, 0, 64);
            let sum = b.binary(BinaryOp::Add, param, second);
            let kept = b.load(kept, zero, 0, 64);
            let sum = b.binary(BinaryOp::Add, sum, kept);
            put(b, 0, sum);
            done(b);
        });
        let program = fixture.alone(element);
        let (outputs, interpreter) = pass(&program, &words(&[1, 20, 3, 40]));
        assert_eq!(outputs, words(&[1021, 1043]));
        assert_eq!(interpreter.counters(InstanceId(0)).firings, 4);
    }

    #[test]
    fn the_watchdog_ends_a_firing_that_does_not_end() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[], |b| {
            take(b, 0, 64);
            let block = b.new_block();
            b.jump(block);
            b.switch_to(block);
            b.jump(block);
        });
        let program = fixture.alone(element);
        let options = Options { turn_limit: 1_000, ..Options::default() };
        let mut interpreter = Interpreter::new(&program, &options).unwrap();
        let input = interpreter.endpoint("to_in0").unwrap();
        for word in words(&[1, 2]) {
            interpreter.feed_item(input, word).unwrap();
        }
        assert_eq!(interpreter.run(100), Ok(Outcome::Idle));
        let traps = &interpreter.counters(InstanceId(0)).traps;
        assert_eq!(traps.get(&TrapCode::Watchdog), Some(&2));
    }
}
