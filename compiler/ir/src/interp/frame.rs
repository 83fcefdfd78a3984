// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Running a function: its values, its objects, and where control goes.
//!
//! A frame is kept and used again, so that a firing allocates nothing. Values need no clearing,
//! since each is defined before it is used; objects go back to their initial contents. A suspended
//! handler simply keeps its frame as it is.

use super::choice::Exhausted;
use super::machine::Machine;
use super::memory::ObjectMemory;
use super::table::Reference;
use crate::analysis::{Dominators, Loops};
use crate::{Bits, BlockId, Function, FunctionId, TableId, Target, Term, TrapCode, Type, ValueId};
use smallvec::SmallVec;

/// A value at run time.
#[derive(Clone, Debug)]
pub(super) enum Datum {
    Bits(Bits),
    Reference(Reference),
    Table(TableId),
    /// A packet of the firing, an index into its packets.
    Packet(usize),
}

impl Datum {
    /// What a value is before it is defined.
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
}

impl From<Exhausted> for Stop {
    fn from(exhausted: Exhausted) -> Self {
        Stop::Exhausted(exhausted)
    }
}

/// The values and objects of a function that runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    values: Vec<Datum>,
    pub locals: Vec<ObjectMemory>,
    /// By block: how often the loop that it heads has run since it was entered.
    loop_runs: Vec<u64>,
}

impl Frame {
    /// A frame for `function`; none if its objects are beyond this machine.
    pub fn new(function: &Function) -> Option<Self> {
        Some(Self {
            values: function.values.iter().map(|value| Datum::initial(value.ty)).collect(),
            locals: function.locals.iter().map(ObjectMemory::new).collect::<Option<_>>()?,
            loop_runs: vec![0; function.blocks.len()],
        })
    }

    /// Makes it fit for another run of `function` from its start.
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

    /// A value that the verifier knows to be a bit vector.
    pub fn bits(&self, value: ValueId) -> &Bits {
        match self.datum(value) {
            Datum::Bits(bits) => bits,
            other => panic!("the verifier lets only bit vectors come here, not {other:?}"),
        }
    }

    /// A reference; to nothing for any other value.
    pub fn reference(&self, value: ValueId) -> Reference {
        match self.datum(value) {
            Datum::Reference(reference) => *reference,
            _ => Reference::default(),
        }
    }

    /// The packet's index; that of no packet for any other value.
    pub fn packet(&self, value: ValueId) -> usize {
        match self.datum(value) {
            Datum::Packet(packet) => *packet,
            _ => usize::MAX,
        }
    }

    /// The table of a handle.
    pub fn table(&self, value: ValueId) -> Option<TableId> {
        match self.datum(value) {
            Datum::Table(table) => Some(*table),
            _ => None,
        }
    }

    /// Gives the parameters of the block their values, all at once: an argument may be a parameter.
    fn pass(&mut self, function: &Function, target: &Target) {
        let args: SmallVec<[Datum; 4]> =
            target.args.iter().map(|arg| self.datum(*arg).clone()).collect();
        for (param, arg) in function.block(target.block).params.iter().zip(args) {
            self.set(*param, arg);
        }
    }
}

/// The loops of a function whose bound is checked.
///
/// What is counted is how often control goes from the header into its loop (the header itself
/// included) since the loop was entered; going there more often than the bound is a trap.
#[derive(Debug)]
pub(super) struct LoopBounds {
    by_header: Vec<Option<LoopBound>>,
}

#[derive(Debug)]
struct LoopBound {
    bound: u64,
    /// By block: whether it is in the loop.
    is_inside: Vec<bool>,
}

impl LoopBounds {
    pub fn of(function: &Function) -> Self {
        let loops = Loops::of(function, &Dominators::of(function));
        let mut by_header: Vec<_> = function.blocks.iter().map(|_| None).collect();
        for found in &loops.loops {
            if let Some(info) = function.blocks[found.header].loop_info {
                let mut is_inside = vec![false; function.blocks.len()];
                found.body.iter().for_each(|block| is_inside[*block] = true);
                by_header[found.header] = Some(LoopBound { bound: info.bound, is_inside });
            }
        }
        Self { by_header }
    }

    /// Notes a step of control; false if the bound of a loop forbids it.
    fn allow(&self, runs: &mut [u64], from: BlockId, to: BlockId) -> bool {
        let (from, to) = (from.index(), to.index());
        if let Some(left) = &self.by_header[from]
            && left.is_inside[to]
        {
            runs[from] += 1;
            if runs[from] > left.bound {
                return false;
            }
        }
        if let Some(entered) = &self.by_header[to]
            && !entered.is_inside[from]
        {
            runs[to] = 0;
        }
        true
    }
}

impl Machine<'_> {
    /// Runs a function from block `start` on.
    pub fn run(&mut self, id: FunctionId, frame: &mut Frame, start: BlockId) -> Result<End, Stop> {
        let function = self.program.function(id);
        let mut at = start;
        loop {
            let block = function.block(at);
            self.spend(block.insts.len() as u64 + 1)?;
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
        &self,
        id: FunctionId,
        frame: &mut Frame,
        from: BlockId,
        target: &Target,
    ) -> Result<BlockId, Stop> {
        if !self.loops[id.index()].allow(&mut frame.loop_runs, from, target.block) {
            return Err(Stop::Trap(TrapCode::LoopBound));
        }
        if !target.args.is_empty() {
            frame.pass(self.program.function(id), target);
        }
        Ok(target.block)
    }
}
