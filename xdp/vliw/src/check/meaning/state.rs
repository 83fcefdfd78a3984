// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Symbolic state of a program or its image on a path: registers, frames, memory, and the effects
//! so far.

use super::facts::{Asked, Facts, Question};
use super::log::{Change, Event, Place, Region, Seen, Views};
use super::values::{Id, Leaf, Node, Values};
use crate::operation::{Arithmetic, AtomicOperation, Condition, Width};
use freeport_ebpf::analysis::{Access, AccessKind, Space, graph};
use freeport_ebpf::helper_functions::{Argument, Effect as Does, signature};
use std::collections::{BTreeMap, HashSet};

/// Size of a frame in bytes.
const FRAME_BYTES: u64 = 512;

/// An effect that is visible outside the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// A helper call with its arguments and the memory that it may read.
    Call { number: u32, arguments: Vec<Id>, bytes: Vec<Id>, views: Vec<u32> },
    /// The exit, with register 0 and all memory except frames.
    Exit { value: Id, memory: u32 },
}

/// Parts of an effect.
struct Parts {
    /// Number of the helper, for a call.
    number: Option<u32>,
    values: Vec<Id>,
    views: Vec<u32>,
}

impl Effect {
    fn parts(&self) -> Parts {
        match self {
            Self::Call { number, arguments, bytes, views } => Parts {
                number: Some(*number),
                values: arguments.iter().chain(bytes).copied().collect(),
                views: views.clone(),
            },
            Self::Exit { value, memory } => {
                Parts { number: None, values: vec![*value], views: vec![*memory] }
            }
        }
    }
}

/// All values, views and decisions of a path.
#[derive(Default)]
pub(super) struct Path {
    pub values: Values,
    pub views: Views,
    pub facts: Facts,
    /// Assumptions, in order.
    pub trail: Vec<(Question, bool)>,
    /// Alternative outcomes: length of the trail before, the question, and its branch.
    pub forks: Vec<(usize, Question, bool, (usize, bool))>,
}

impl Path {
    /// Decides a question: as the assumptions imply, or as preferred.
    pub fn decide(&mut self, asked: Asked, place: usize, prefers: bool) -> bool {
        let (question, yes) = asked;
        if let Some(answer) = self.facts.answer(&self.values, question) {
            return answer == yes;
        }
        let answer = prefers == yes;
        self.forks.push((self.trail.len(), question, !answer, (place, !prefers)));
        self.assume(question, answer);
        prefers
    }

    /// Computes an operation on two values; masks without effect vanish.
    pub fn compute(&mut self, operation: Arithmetic, width: Width, left: Id, right: Id) -> Id {
        let values = &mut self.values;
        let mask = values.as_constant(right).filter(|mask| mask.wrapping_add(1).is_power_of_two());
        if let (Arithmetic::And, Some(mask)) = (operation, mask) {
            let left = if width == Width::Bits64 { left } else { values.truncate(left, 4) };
            if self.facts.bounds(values, left).1 <= mask {
                return left;
            }
        }
        values.compute(operation, width, left, right)
    }

    /// Simplifies a value by all that is known on this path.
    pub fn resolve(&mut self, id: Id) -> Id {
        if let Some(known) = self.facts.known(&self.values, id) {
            return self.values.constant(known);
        }
        match self.values.node(id).clone() {
            Node::Constant(_) | Node::Leaf(_) | Node::Memory { .. } => id,
            Node::Sum(terms, constant) => {
                let mut sum = self.values.constant(constant);
                for (term, factor) in terms {
                    let term = self.resolve(term);
                    sum = self.values.add_scaled(sum, term, factor);
                }
                sum
            }
            Node::Compute(operation, width, left, right) => {
                let (left, right) = (self.resolve(left), self.resolve(right));
                self.values.compute(operation, width, left, right)
            }
            Node::SignExtend(width, bits, value) => {
                let value = self.resolve(value);
                self.values.sign_extend(width, bits, value)
            }
            Node::Bytes(bytes) => {
                let bytes = bytes.map(|byte| self.resolve(byte));
                self.values.of_bytes(bytes)
            }
            Node::Extract(at, value) => {
                let value = self.resolve(value);
                self.values.bytes(value)[usize::from(at)]
            }
        }
    }

    fn resolve_view(&mut self, view: u32) -> Vec<Seen> {
        let changes = self.views.changes(view);
        let resolved = changes.iter().map(|(address, bytes, change)| match change {
            Change::Byte(value) => (*address, *bytes, Change::Byte(self.resolve(*value))),
            Change::Call(_) => (*address, *bytes, *change),
        });
        resolved.collect()
    }

    /// Returns whether effects are equal after simplification.
    pub fn is_same(&mut self, one: &Effect, other: &Effect) -> bool {
        let (one, other) = (one.parts(), other.parts());
        let mut same = |(one, another): (&Id, &Id)| self.resolve(*one) == self.resolve(*another);
        if one.number != other.number
            || one.values.len() != other.values.len()
            || !one.values.iter().zip(&other.values).all(&mut same)
        {
            return false;
        }
        let mut same = |(one, another): (&u32, &u32)| {
            one == another || self.resolve_view(*one) == self.resolve_view(*another)
        };
        one.views.len() == other.views.len() && one.views.iter().zip(&other.views).all(&mut same)
    }

    pub fn assume(&mut self, question: Question, answer: bool) {
        self.facts.assume(&self.values, question, answer);
        self.trail.push((question, answer));
    }
}

/// A function that waits for its callee to return.
#[derive(Clone, Debug)]
struct Frame {
    back: usize,
    /// Saved registers 6 to 10.
    saved: [Id; 5],
    number: usize,
}

/// State of a program or an image.
#[derive(Debug)]
pub(super) struct State {
    pub is_image: bool,
    is_callback: bool,
    pub registers: [Id; 16],
    pub effects: Vec<Effect>,
    /// Slot or row of each effect.
    pub effects_at: Vec<usize>,
    /// Bytes that were accessed.
    pub accessed: HashSet<(Id, i64)>,
    log: Vec<Event>,
    frames: Vec<Frame>,
    frame: usize,
    frames_made: usize,
    moves: usize,
}

impl State {
    /// Creates the state at the entry of the program, or of a function that a helper calls.
    pub fn new(path: &mut Path, is_image: bool, is_callback: bool) -> Self {
        let values = &mut path.values;
        let mut registers = [values.constant(0); 16];
        registers[1] = values.leaf(Leaf::Context);
        registers[10] = values.leaf(Leaf::Frame(0));
        if is_callback {
            for (register, value) in (0_u8..).zip(&mut registers) {
                *value = match register {
                    1..=5 => values.leaf(Leaf::Argument(register)),
                    10 => *value,
                    _ => values.leaf(Leaf::Lost(is_image, 0, register)),
                };
            }
        }
        Self {
            is_image,
            is_callback,
            registers,
            effects: vec![],
            effects_at: vec![],
            accessed: HashSet::new(),
            log: vec![],
            frames: vec![],
            frame: 0,
            frames_made: 0,
            moves: 0,
        }
    }

    /// Returns the place at an address.
    pub fn place(&self, path: &mut Path, address: Id, bytes: u8, accesses: &[Access]) -> Place {
        let moment = (self.frame, self.moves);
        Place::at(&mut path.values, address, Some(bytes.into()), accesses.into(), moment)
    }

    fn note_accessed(&mut self, place: &Place) {
        let Some((base, offset)) = place.address else { return };
        for at in 0..place.bytes.unwrap_or(0) {
            self.accessed.insert((base, offset.wrapping_add(at as i64)));
        }
    }

    /// Loads from memory; a context field that holds an address loads that address.
    pub fn load(&mut self, path: &mut Path, place: &Place, is_signed: bool) -> Id {
        self.note_accessed(place);
        let bytes = place.bytes.unwrap_or(0);
        if let Some((base, offset @ (0 | 4 | 8))) = place.address
            && bytes == 4
            && *path.values.node(base) == Node::Leaf(Leaf::Context)
        {
            return path.values.leaf(Leaf::Field(offset as u8, self.moves));
        }
        let mut all = [path.values.constant(0); 8];
        for (at, byte) in all.iter_mut().enumerate().take(bytes as usize) {
            *byte = path.views.byte(&mut path.values, &self.log, &place.byte(at as u64));
        }
        let value = path.values.of_bytes(all);
        if is_signed {
            return path.values.sign_extend(Width::Bits64, bytes as u8 * 8, value);
        }
        value
    }

    /// Loads from the context, at a known offset.
    pub fn load_context(&mut self, path: &mut Path, place: &Place, offset: i64) -> Id {
        self.note_accessed(place);
        let context = path.values.leaf(Leaf::Context);
        path.values.offset(context, offset)
    }

    /// Stores a value to memory.
    pub fn store(&mut self, path: &mut Path, place: &Place, value: Id) {
        self.note_accessed(place);
        let all = path.values.bytes(value);
        for (at, byte) in (0..place.bytes.unwrap_or(0)).zip(all) {
            let change = Change::Byte(byte);
            self.log.push(Event { place: place.byte(at), change });
        }
    }

    /// Executes an atomic operation: returns the old and the new contents of memory.
    pub fn change(
        &mut self,
        path: &mut Path,
        place: &Place,
        (operation, width): (AtomicOperation, Width),
        source: Id,
        at: usize,
    ) -> (Id, Id) {
        use AtomicOperation::*;
        let old = self.load(path, place, false);
        let arithmetic = match operation {
            Add => Arithmetic::Add,
            Or => Arithmetic::Or,
            And => Arithmetic::And,
            Xor => Arithmetic::Xor,
            Exchange => return (old, source),
            CompareExchange => {
                let expected = self.registers[0];
                let (equal, values) = (Condition::Equal, &mut path.values);
                let asked = super::facts::question(values, equal, width, old, expected);
                let is_made = path.decide(asked, at, true);
                return (old, if is_made { source } else { old });
            }
        };
        (old, path.values.compute(arithmetic, width, old, source))
    }

    /// Calls a helper: its inputs are an effect, and the memory that it writes becomes unknown.
    /// Returns the value of register 0.
    pub fn call(&mut self, path: &mut Path, number: u32, accesses: &[Access], at: usize) -> Id {
        let known = signature(number);
        let count = known.map_or(5, |it| it.arguments.len());
        let arguments = self.registers[1..=count].to_vec();
        let places = self.places(path, number, accesses);
        let (mut bytes, mut views) = (vec![], vec![]);
        for (place, kind) in &places {
            if *kind == AccessKind::Write {
                continue;
            }
            let is_own = matches!(place.region, Region::Stack(_));
            match place.bytes {
                Some(size) if is_own && size <= FRAME_BYTES && place.address.is_some() => {
                    bytes.extend(
                        (0..size).map(|at| {
                            path.views.byte(&mut path.values, &self.log, &place.byte(at))
                        }),
                    );
                }
                _ => views.push(path.views.of(&path.values, &self.log, place)),
            }
        }
        let call = self.effects.len();
        self.effects.push(Effect::Call { number, arguments, bytes, views });
        self.effects_at.push(at);
        let written = places.into_iter().filter(|(_, kind)| kind.writes());
        self.log.extend(written.map(|(place, _)| Event { place, change: Change::Call(call) }));
        let does = known.and_then(|it| it.effect);
        let calls_function = known.is_none_or(|it| it.calls_function());
        self.moves += usize::from(calls_function || does == Some(Does::MovesPacket));
        self.lose_registers(path, call, calls_function);
        path.values.leaf(Leaf::Result(call))
    }

    /// Returns the places that a helper accesses, with the kind of access.
    fn places(
        &self,
        path: &mut Path,
        number: u32,
        accesses: &[Access],
    ) -> Vec<(Place, AccessKind)> {
        let known = signature(number);
        let moment = (self.frame, self.moves);
        let mut places = vec![];
        let mut given: BTreeMap<u8, Vec<Access>> = BTreeMap::new();
        for access in accesses {
            match access.register {
                Some(register) => given.entry(register).or_default().push(*access),
                None => places.push((Place::of_access(access, moment), access.kind)),
            }
        }
        for (register, accesses) in given {
            let sizes: Option<Vec<_>> = accesses.iter().map(|access| access.size).collect();
            let bytes = sizes.and_then(|sizes| sizes.into_iter().max());
            let kinds: Vec<_> = accesses.iter().map(|access| access.kind).collect();
            let kind = if kinds.iter().all(|kind| *kind == kinds[0]) {
                kinds[0]
            } else {
                AccessKind::Change
            };
            let address = self.registers[usize::from(register)];
            let place = Place::at(&mut path.values, address, bytes, accesses.into(), moment);
            places.push((place, kind));
        }
        let is_record = |argument: &Argument| *argument == Argument::Record;
        if known.is_none_or(|it| it.calls_function()) {
            places.push((Place::all_of(Region::Unknown), AccessKind::Change));
        } else if number == graph::TAIL_CALL {
            places.push((Place::all_of(Region::Outside), AccessKind::Read));
        } else if known.is_some_and(|it| it.arguments.iter().any(is_record)) {
            places.push((Place::all_of(Region::Element), AccessKind::Change));
        }
        places
    }

    /// Sets the registers that a call clobbers to unknown values.
    fn lose_registers(&mut self, path: &mut Path, call: usize, calls_function: bool) {
        for register in [1_u8, 2, 3, 4, 5, 12, 13, 14, 15] {
            if calls_function || !self.is_image && register <= 5 {
                let lost = Leaf::Lost(self.is_image, call, register);
                self.registers[usize::from(register)] = path.values.leaf(lost);
            }
        }
    }

    /// Enters a function of the program that returns to `back`.
    pub fn enter(&mut self, path: &mut Path, back: usize) {
        let mut saved = [0; 5];
        saved.copy_from_slice(&self.registers[6..11]);
        self.frames.push(Frame { back, saved, number: self.frame });
        self.frames_made += 1;
        self.frame = self.frames_made;
        self.registers[10] = path.values.leaf(Leaf::Frame(self.frame));
    }

    /// Leaves the current function: returns where its caller continues, or records the exit.
    pub fn leave(&mut self, path: &mut Path, at: usize) -> Option<usize> {
        let Some(frame) = self.frames.pop() else {
            let value = self.registers[0];
            self.exit(path, value, at);
            return None;
        };
        self.registers[6..11].copy_from_slice(&frame.saved);
        self.frame = frame.number;
        // Frames are numbered beyond all calls, to distinguish the values lost by each.
        self.lose_registers(path, usize::MAX - self.frames_made, true);
        Some(frame.back)
    }

    /// Records the exit.
    pub fn exit(&mut self, path: &mut Path, value: Id, at: usize) {
        // Only the lower half of a verdict matters.
        let value = if self.is_callback { value } else { path.values.truncate(value, 4) };
        let memory = path.views.of(&path.values, &self.log, &Place::all_of(Region::Outside));
        self.effects.push(Effect::Exit { value, memory });
        self.effects_at.push(at);
    }

    /// Returns whether a place is only in the current frame or the context.
    pub fn is_own(&self, path: &Path, place: &Place) -> bool {
        let Some((base, offset)) = place.address else { return false };
        match path.values.node(base) {
            Node::Leaf(Leaf::Frame(_)) => {
                offset >= -(FRAME_BYTES as i64)
                    && offset.saturating_add_unsigned(place.bytes.unwrap_or(0)) <= 0
            }
            Node::Leaf(Leaf::Context | Leaf::MapValue(_)) => true,
            _ => false,
        }
    }

    /// Returns whether a place is where the analysis reports it, as far as its address is known: in
    /// the current frame, in the packet at its current position, or in the context.
    pub fn is_as_said(&self, path: &Path, place: &Place) -> bool {
        let Some((base, offset)) = place.address else { return true };
        let is_space = |access: &Access| match *path.values.node(base) {
            Node::Leaf(Leaf::Frame(number)) if number == self.frame => {
                Some(matches!(access.space, Space::Stack { calls_up: Some(0) | None }))
            }
            Node::Leaf(Leaf::Field(0, moves)) if moves == self.moves => {
                Some(access.space == Space::Packet)
            }
            Node::Leaf(Leaf::Context) => Some(access.space == Space::Context),
            _ => None,
        };
        let has = |access: &Access, at: i64| {
            let end =
                access.size.map_or(i64::MAX, |size| access.offset.1.saturating_add_unsigned(size));
            let exists = (access.offset.0..end).contains(&at);
            let is_unknown = matches!(access.space, Space::Unknown(_));
            is_unknown || is_space(access).is_none_or(|is_space| is_space && exists)
        };
        let mut bytes = offset..offset.saturating_add_unsigned(place.bytes.unwrap_or(0));
        bytes.all(|at| place.accesses.iter().any(|access| has(access, at)))
    }

    /// Returns the packet's current start address.
    pub fn packet(&self, path: &mut Path) -> Id {
        path.values.leaf(Leaf::Field(0, self.moves))
    }
}
