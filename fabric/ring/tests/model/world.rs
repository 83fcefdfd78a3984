// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A state of both sides and of the memory between them, and its possible successors.
//!
//! Each side performs one operation after another, and is reconstructed from its cursor for each,
//! as by another process. It is interrupted before each of its calls to the memory. A side that
//! cannot continue retries or goes to sleep as described in [`freeport_ring::sleep`].
//!
//! To reach further, only loads and stores of words are steps, and copies are merged with them.
//! This omits nothing as long as no side reads what the other has written without a later store of
//! a word: then the time of the write does not matter. Each load and each read checks this
//! condition.

use super::memory::{Call, Memory, Mutation, Order};
use super::sides::{self, Got, Item, Operation, Setting};
use freeport_ring::{ReceiverCursor, SenderCursor, layout};

/// Numbers of the sides.
pub const SENDER: usize = 0;
/// Number of the receiver.
pub const RECEIVER: usize = 1;

/// Bounds of the exploration.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The rings and what is sent over them.
    pub setting: Setting,
    /// Order in which writes become visible.
    pub order: Order,
    /// Whether every call to the memory is a step, and none of them has to be announced by a store.
    pub is_fine: bool,
    /// Whether barriers are real, instead of `membarrier` by the sleeper.
    pub has_fences: bool,
    /// The items that may be sent, up to `items` of them, in every order.
    pub choices: Vec<Item>,
    /// Number of items.
    pub items: usize,
    /// Lengths of messages that may be sent and received beforehand, in order.
    pub before: Vec<Vec<usize>>,
    /// Maximum number of moves of the ring.
    pub moves: usize,
    /// Sizes of the reader's buffer.
    pub rooms: Vec<usize>,
    /// Whether each side may retry without having slept.
    pub spins: [bool; 2],
    /// Whether each side may sleep.
    pub sleeps: [bool; 2],
    /// Whether sleeps are light, and the number of times of giving back without a sleep that ends
    /// this.
    pub light: Option<u32>,
}

/// State of a side, between its operations or within one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Try,
    Announce,
    Barrier,
    LookAgain,
    Asleep,
    Awake,
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Side<C> {
    cursor: C,
    ring: usize,
    phase: Phase,
    /// Results of the operation's calls so far.
    log: Vec<u64>,
    /// Whether it has to wake the other side before it continues.
    has_to_wake: bool,
    /// Whether the other side has executed a barrier since this one sleeps lightly.
    is_known: bool,
}

impl<C: Default> Side<C> {
    fn new() -> Self {
        let cursor = C::default();
        let phase = Phase::Try;
        Self { cursor, ring: 0, phase, log: vec![], has_to_wake: false, is_known: false }
    }
}

/// A state.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct World {
    memory: Memory,
    sender: Side<SenderCursor>,
    receiver: Side<ReceiverCursor>,
    /// The item that the sender is sending, and the number of items it has chosen.
    item: Option<Item>,
    items: usize,
    moves: usize,
    /// The size of the reader's buffer.
    room: Option<usize>,
    /// Number of bytes, or messages, sent and received.
    sent: usize,
    received: usize,
    /// Position at which a reader with room for more has found the end of the stream during a
    /// write.
    seen: Option<usize>,
    /// The lengths of messages in flight.
    lengths: Vec<usize>,
    /// Whether each side was woken since its last sleep.
    woken: [bool; 2],
}

/// The side, and its action.
pub type Label = (usize, String);
/// The successors of a state.
pub type Next = Result<Vec<(Label, World)>, String>;

impl World {
    /// Returns the initial states.
    pub fn initial(bounds: &Bounds) -> Result<Vec<Self>, String> {
        let mut worlds = vec![];
        for before in &bounds.before {
            let mut world = Self {
                memory: Memory::new(bounds.setting.words()),
                sender: Side::new(),
                receiver: Side::new(),
                item: None,
                items: 0,
                moves: 0,
                room: None,
                sent: 0,
                received: 0,
                seen: None,
                lengths: vec![],
                woken: [false; 2],
            };
            for &length in before {
                world.choose(bounds, Item::Send(length));
                world = world.complete(bounds, SENDER)?;
                world.room = bounds.rooms.iter().copied().max();
                world = world.complete(bounds, RECEIVER)?;
            }
            world.items = 0;
            worlds.push(world);
        }
        Ok(worlds)
    }

    /// Returns whether everything was sent and received.
    pub fn is_final(&self) -> bool {
        self.sender.phase == Phase::Done && self.receiver.phase == Phase::Done
    }

    /// Returns all successors.
    pub fn next(&self, bounds: &Bounds) -> Next {
        let mut next = vec![];
        for side in [SENDER, RECEIVER] {
            self.steps(bounds, side, &mut next)?;
        }
        Ok(next)
    }

    fn phase(&self, side: usize) -> Phase {
        [self.sender.phase, self.receiver.phase][side]
    }

    fn set_phase(&mut self, side: usize, phase: Phase) {
        *[&mut self.sender.phase, &mut self.receiver.phase][side] = phase;
    }

    fn log(&mut self, side: usize) -> &mut Vec<u64> {
        [&mut self.sender.log, &mut self.receiver.log].into_iter().nth(side).expect("a side")
    }

    fn steps(
        &self,
        bounds: &Bounds,
        side: usize,
        next: &mut Vec<(Label, Self)>,
    ) -> Result<(), String> {
        let mut world = self.clone();
        let has_to_wake =
            [&mut world.sender.has_to_wake, &mut world.receiver.has_to_wake].into_iter().nth(side);
        if has_to_wake.is_some_and(std::mem::take) {
            world.woken[1 - side] = true;
            next.push(((side, "wakes the other".into()), world));
            return Ok(());
        }
        match self.phase(side) {
            Phase::Barrier => {
                let is_known = match side {
                    SENDER => &mut world.sender.is_known,
                    _ => &mut world.receiver.is_known,
                };
                match bounds.has_fences {
                    _ if bounds.light.is_some() && *is_known => {}
                    _ if bounds.setting.mutation == Some(Mutation::NoMembarrier) => {}
                    true => world.memory.fence(side),
                    false => {
                        *is_known = true;
                        world.memory.membarrier(side);
                    }
                }
                let is_brave = bounds.setting.mutation == Some(Mutation::NoSecondLook);
                world.set_phase(side, if is_brave { Phase::Asleep } else { Phase::LookAgain });
                next.push(((side, "passes a barrier".into()), world));
            }
            Phase::Asleep if world.woken[side] => {
                world.woken[side] = false;
                world.set_phase(side, Phase::Awake);
                next.push(((side, "is woken".into()), world));
            }
            Phase::Asleep | Phase::Done => {}
            Phase::Try if side == SENDER && self.item.is_none() => {
                for item in self.choices(bounds) {
                    let mut world = self.clone();
                    world.choose(bounds, item);
                    world.advance(bounds, side, next)?;
                }
            }
            Phase::Try if side == RECEIVER && self.room.is_none() => {
                for &room in &bounds.rooms {
                    let mut world = self.clone();
                    world.room = Some(room);
                    world.advance(bounds, side, next)?;
                }
            }
            _ => world.advance(bounds, side, next)?,
        }
        Ok(())
    }

    fn choices(&self, bounds: &Bounds) -> Vec<Item> {
        if self.items == bounds.items {
            return vec![Item::End];
        }
        let next = Item::Move(self.moves + 1 >= bounds.setting.rings.len());
        let moves = (self.moves < bounds.moves).then_some(next);
        bounds.choices.iter().copied().chain(moves).collect()
    }

    fn choose(&mut self, bounds: &Bounds, item: Item) {
        if bounds.setting.flavour != sides::Flavour::Bytes {
            match item {
                Item::Send(length) => self.lengths.push(length),
                Item::Pair(first, second) => self.lengths.extend([first, second]),
                Item::End | Item::Move(_) => {}
            }
        }
        self.item = Some(item);
    }

    /// Takes the next call to memory of a side's operation, and adds the resulting states.
    fn advance(
        &self,
        bounds: &Bounds,
        side: usize,
        next: &mut Vec<(Label, Self)>,
    ) -> Result<(), String> {
        let phase = self.phase(side);
        let Some(call) = self.call(bounds, side) else {
            let label = (side, format!("{phase:?} without memory"));
            return self.ended(bounds, side, label, next);
        };
        let label = (side, format!("{phase:?} {:?} {:?}: {call:?}", self.item, self.room));
        for world in self.through(bounds, side, call)? {
            match world.call(bounds, side) {
                Some(_) => next.push((label.clone(), world)),
                None => world.ended(bounds, side, label.clone(), next)?,
            }
        }
        Ok(())
    }

    /// Returns the states after a call and the calls around it that are not steps of their own.
    fn through(&self, bounds: &Bounds, side: usize, call: Call) -> Result<Vec<Self>, String> {
        let is_step = |call: &Call| {
            bounds.is_fine || !matches!(call, Call::Read(..) | Call::Write(_) | Call::Barrier)
        };
        let mut found = vec![];
        let mut open = vec![(self.clone(), call, false)];
        while let Some((world, call, has_stepped)) = open.pop() {
            let has_stepped = has_stepped || is_step(&call);
            for world in world.after(bounds, side, call)? {
                match world.call(bounds, side) {
                    Some(Call::Barrier) => open.push((world, Call::Barrier, has_stepped)),
                    Some(call) if !(has_stepped && is_step(&call)) => {
                        open.push((world, call, has_stepped));
                    }
                    _ => found.push(world),
                }
            }
        }
        Ok(found)
    }

    fn after(&self, bounds: &Bounds, side: usize, call: Call) -> Result<Vec<Self>, String> {
        let log = |memory, given| {
            let mut world = Self { memory, ..self.clone() };
            world.log(side).push(given);
            world
        };
        let load = |at, mask| {
            if !bounds.is_fine && self.memory.has_race(side, at) {
                return Err(format!("{} reads what is being written", NAMES[side]));
            }
            let found = self.memory.load(side, at, bounds.order).into_iter();
            Ok(found.map(|(word, memory)| log(memory, word & mask)).collect())
        };
        let write = |writes| {
            let mut memory = self.memory.clone();
            memory.write(side, writes);
            Ok(vec![log(memory, 0)])
        };
        match call {
            Call::Load(at) => load(at, u64::MAX),
            Call::Read(at, mask) => load(at, mask),
            Call::Store(store) => write(vec![store]),
            Call::Write(writes) => write(writes),
            Call::Barrier => {
                let mut world = self.clone();
                world.barrier(bounds, side);
                Ok(vec![world])
            }
            Call::Fence => {
                let mut world = self.clone();
                world.memory.fence(side);
                world.log(side).push(0);
                Ok(vec![world])
            }
        }
    }

    fn barrier(&mut self, bounds: &Bounds, side: usize) {
        match bounds.has_fences {
            true => self.memory.fence(side),
            false => self.memory.issue(side),
        }
        self.log(side).push(0);
    }

    fn operation(&self, bounds: &Bounds, side: usize) -> Operation {
        match self.phase(side) {
            Phase::Announce => {
                bounds.light.map_or(Operation::AnnounceSleep, Operation::AnnounceLightSleep)
            }
            Phase::Awake => Operation::AnnounceAwake,
            _ => Operation::Main,
        }
    }

    /// Returns the next call of the side's operation; `None` if it has ended.
    fn call(&self, bounds: &Bounds, side: usize) -> Option<Call> {
        match side {
            SENDER => self.send(bounds).err(),
            _ => self.receive(bounds).err(),
        }
    }

    fn send(&self, bounds: &Bounds) -> Result<sides::Outcome<SenderCursor, usize>, Call> {
        let Side { cursor, ring, log, .. } = &self.sender;
        let item = self.item.unwrap_or(Item::End);
        let operation = self.operation(bounds, SENDER);
        sides::send(&bounds.setting, (*cursor, *ring), operation, (item, self.sent), log)
    }

    fn receive(&self, bounds: &Bounds) -> Result<sides::Outcome<ReceiverCursor, Got>, Call> {
        let Side { cursor, ring, log, .. } = &self.receiver;
        let operation = self.operation(bounds, RECEIVER);
        let room = self.room.unwrap_or(1);
        sides::receive(&bounds.setting, (*cursor, *ring), operation, room, log)
    }

    /// Returns the states after the end of an operation.
    fn ended(
        &self,
        bounds: &Bounds,
        side: usize,
        label: Label,
        next: &mut Vec<(Label, Self)>,
    ) -> Result<(), String> {
        let mut world = self.clone();
        let progress = match side {
            SENDER => world.has_sent(bounds)?,
            _ => world.has_received(bounds)?,
        };
        world.log(side).clear();
        world.memory.issue(side);
        let phase = self.phase(side);
        let phases: &[Phase] = match (phase, progress) {
            (Phase::Announce, _) => &[Phase::Barrier],
            (Phase::Awake, _) => &[Phase::Try],
            (_, Some(true)) => &[Phase::Done],
            (Phase::Try, Some(false)) => &[Phase::Try],
            (Phase::Try, None) => match (bounds.spins[side], bounds.sleeps[side]) {
                (true, true) => &[Phase::Try, Phase::Announce],
                (true, false) => &[Phase::Try],
                _ => &[Phase::Announce],
            },
            (_, Some(false)) => &[Phase::Awake],
            (_, None) => &[Phase::Asleep],
        };
        for &phase in phases {
            let mut world = world.clone();
            world.set_phase(side, phase);
            next.push((label.clone(), world));
        }
        Ok(())
    }

    /// Applies the result of an operation of the sender. Returns true if it was the last one,
    /// `None` if it waits.
    fn has_sent(&mut self, bounds: &Bounds) -> Result<Option<bool>, String> {
        let is_main = self.operation(bounds, SENDER) == Operation::Main;
        let Ok(outcome) = self.send(bounds) else { unreachable!("it has ended") };
        (self.sender.cursor, self.sender.ring) = (outcome.cursor, outcome.ring);
        self.sender.has_to_wake = outcome.wake;
        self.sender.is_known &= !outcome.is_new;
        let done = outcome.result.map_err(|fault| format!("the sender finds {fault}"))?;
        let Some(count) = done.filter(|_| is_main) else { return Ok(None) };
        let before = self.sent;
        self.sent += count;
        if let Some(seen) = self.seen.take().filter(|seen| (before + 1..self.sent).contains(seen)) {
            return Err(format!("of {count} bytes, the first {} were seen alone", seen - before));
        }
        let item = self.item.take().expect("it was sent");
        match item {
            Item::End => return Ok(Some(true)),
            Item::Move(_) => self.moves += 1,
            Item::Pair(_, second) if count == 1 => self.item = Some(Item::Send(second)),
            Item::Send(_) | Item::Pair(..) => self.items += 1,
        }
        Ok(Some(false))
    }

    /// The same for the receiver.
    fn has_received(&mut self, bounds: &Bounds) -> Result<Option<bool>, String> {
        let is_main = self.operation(bounds, RECEIVER) == Operation::Main;
        let Ok(outcome) = self.receive(bounds) else { unreachable!("it has ended") };
        (self.receiver.cursor, self.receiver.ring) = (outcome.cursor, outcome.ring);
        self.receiver.has_to_wake = outcome.wake;
        self.receiver.is_known &= !outcome.is_new;
        let got = outcome.result.map_err(|fault| format!("the receiver finds {fault}"))?;
        if !is_main {
            return Ok(None);
        }
        let Some(got) = got else { return Ok(None) };
        let room = self.room.take();
        if got == Got::End {
            let all = self.item == Some(Item::End) || self.sender.phase == Phase::Done;
            let is_complete = all && self.received == self.sent && self.lengths.is_empty();
            return is_complete.then_some(Some(true)).ok_or("the end came too early".into());
        }
        self.check(&got)?;
        let has_room = matches!(&got, Got::Bytes(bytes) if room > Some(bytes.len()));
        if has_room && self.seen.is_none() && self.received > self.sent {
            self.seen = Some(self.received);
        }
        Ok(Some(false))
    }

    /// Compares the received data with the sent data.
    fn check(&mut self, got: &Got) -> Result<(), String> {
        let wrong = || Err(format!("number {} came as {got:?}", self.received));
        match got {
            Got::Bytes(bytes) => {
                let end = self.received + bytes.len();
                let coming = match self.item {
                    Some(Item::Send(length)) => length,
                    _ => 0,
                };
                let expected = (self.received..end).map(sides::stream_byte);
                if end > self.sent + coming || !expected.eq(bytes.iter().copied()) {
                    return wrong();
                }
                self.received = end;
                return Ok(());
            }
            Got::Message(_) | Got::Entry(..) if self.lengths.is_empty() => return wrong(),
            Got::Message(bytes) => {
                if *bytes != sides::message(self.received, self.lengths[0]) {
                    return wrong();
                }
            }
            Got::Entry(length, [first, last]) => {
                let expected = sides::message(self.received, self.lengths[0]);
                let is_right = *length == expected.len()
                    && (*length < 8 || expected.starts_with(first) && expected.ends_with(last));
                if !is_right {
                    return wrong();
                }
            }
            Got::Changed => return wrong(),
            Got::End | Got::Moved => return Ok(()),
        }
        self.lengths.remove(0);
        self.received += 1;
        Ok(())
    }

    /// Completes the operation of a side, with all previous writes visible.
    fn complete(mut self, bounds: &Bounds, side: usize) -> Result<Self, String> {
        self.memory.fence(1 - side);
        while let Some(call) = self.call(bounds, side) {
            self = self.after(bounds, side, call)?.swap_remove(0);
        }
        let mut next = vec![];
        self.ended(bounds, side, (side, String::new()), &mut next)?;
        self.memory.fence(side);
        next.into_iter().next().map(|(_, world)| world).ok_or("an end".into())
    }

    fn is_between(&self, side: usize) -> bool {
        match side {
            SENDER => self.sender.log.is_empty() && !self.sender.has_to_wake,
            _ => self.receiver.log.is_empty() && !self.receiver.has_to_wake,
        }
    }

    /// Checks the invariants of every state.
    ///
    /// # Errors
    /// The violated invariant.
    pub fn is_sound(&self, bounds: &Bounds) -> Result<(), String> {
        for side in [SENDER, RECEIVER] {
            let sleeps = self.phase(side) == Phase::Asleep && !self.woken[side];
            if sleeps && self.is_between(1 - side) {
                let mut world = self.clone();
                world.set_phase(side, Phase::LookAgain);
                let world = world.complete(bounds, side)?;
                if world.phase(side) != Phase::Asleep {
                    return Err(format!("{} sleeps and will never be woken", NAMES[side]));
                }
            }
        }
        let is_open = self.item.is_none() && self.sender.phase != Phase::Done;
        let has_all = is_open && self.lengths.is_empty() && self.received == self.sent;
        if has_all && self.is_between(SENDER) && self.is_between(RECEIVER) {
            let mut memory = self.memory.clone();
            memory.fence(RECEIVER);
            let sender = (self.sender.cursor, self.sender.ring);
            let mut log = vec![];
            let has_room = loop {
                match sides::has_room(&bounds.setting, sender, &log) {
                    Ok(has_room) => break has_room,
                    Err(Call::Load(at)) => {
                        log.push(memory.load(SENDER, at, bounds.order)[0].0);
                    }
                    Err(_) => log.push(0),
                }
            };
            if !has_room {
                let longest = layout::message_max(bounds.setting.rings[self.sender.ring]);
                return Err(format!("all is read, and there is no room for {longest} bytes"));
            }
        }
        Ok(())
    }
}

/// Names of the sides.
pub const NAMES: [&str; 2] = ["the sender", "the receiver"];
