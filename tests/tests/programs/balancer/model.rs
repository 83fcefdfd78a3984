// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a load balancer has to do, in the simplest words: a map of flows and a list of backends.

use std::collections::HashMap;

/// Source, target, ports and protocol.
pub type Key = (u32, u32, u16, u16, u8);

/// Ticks of idleness up to which a flow has certainly not ended, whatever real time passes besides.
const SURELY_ALIVE: u64 = 100_000;
/// Ticks of idleness from which on it has: the table's timeout is 228,882.
const SURELY_ENDED: u64 = 229_000;

/// As much for a flow that has had a FIN: time passes by more than it lingers, or not at all.
const LINGERED: u64 = 30_000;

/// Whether a packet's backend is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// By the flow, or by the turn.
    Backend(u16),
    /// One of those that get flows: the end of an unknown flow.
    Any,
    /// There is none.
    Drop,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Active { weight: u32 },
    Removed,
}

/// What a packet says of its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// Nothing.
    Goes,
    /// One side has sent everything: FIN.
    Closes,
    /// It is over: RST.
    Ends,
}

struct Seen {
    backend: u16,
    tick: u64,
    is_closing: bool,
}

impl Seen {
    /// From this idleness on it has surely ended.
    fn surely_ended(&self) -> u64 {
        if self.is_closing { LINGERED } else { SURELY_ENDED }
    }
}

/// Flows, backends, and the time.
pub struct Model {
    flows: HashMap<Key, Seen>,
    states: Vec<(u32, State)>,
    /// Numbers in their turn, the first one next, each with what is left of its turn.
    turns: Vec<(u16, u32)>,
    /// The same numbers as they were added.
    added: Vec<u16>,
    pub tick: u64,
    pub opened: u64,
}

impl Model {
    pub fn new() -> Self {
        let (flows, states, turns, added) = (HashMap::new(), vec![], vec![], vec![]);
        Self { flows, states, turns, added, tick: 0, opened: 0 }
    }

    /// Whether it is certain that the flow has ended, or that it has not.
    pub fn is_certain(&self, key: Key) -> bool {
        let Some(seen) = self.flows.get(&key) else { return true };
        let idle = self.tick - seen.tick;
        let surely_alive = if seen.is_closing { 0 } else { SURELY_ALIVE };
        idle <= surely_alive || idle >= seen.surely_ended()
    }

    /// A packet of a flow of which [`is_certain`](Self::is_certain).
    pub fn packet(&mut self, key: Key, sign: Sign) -> Expected {
        self.forget_ended();
        if let Some(seen) = self.flows.get_mut(&key) {
            seen.tick = self.tick;
            seen.is_closing |= sign == Sign::Closes;
            let backend = seen.backend;
            if sign == Sign::Ends {
                self.flows.remove(&key);
            }
            return Expected::Backend(backend);
        }
        let (tick, ends) = (self.tick, sign != Sign::Goes);
        match self.turns.first_mut() {
            None => Expected::Drop,
            Some(_) if ends => Expected::Any,
            Some((backend, left)) => {
                let backend = *backend;
                *left -= 1;
                if *left == 0 {
                    self.turns[0].1 = self.weight(backend);
                    self.turns.rotate_left(1);
                }
                self.flows.insert(key, Seen { backend, tick, is_closing: false });
                self.opened += 1;
                Expected::Backend(backend)
            }
        }
    }

    fn forget_ended(&mut self) {
        let tick = self.tick;
        self.flows.retain(|_, seen| tick - seen.tick < seen.surely_ended());
    }

    fn weight(&self, backend: u16) -> u32 {
        match self.states[usize::from(backend)].1 {
            State::Active { weight } => weight,
            _ => panic!("backend {backend} gets flows and is not active"),
        }
    }

    /// Adds a backend that is not there; its number. Its turn is after that of the one added last.
    pub fn add(&mut self, dip: u32, weight: u32) -> u16 {
        let free = self.states.iter().position(|(_, state)| *state == State::Free);
        let number = free.unwrap_or_else(|| {
            self.states.push((0, State::Free));
            self.states.len() - 1
        });
        self.states[number] = (dip, State::Active { weight });
        let last = self.added.last();
        let place = self.turns.iter().position(|(it, _)| Some(it) == last);
        self.turns.insert(place.map_or(0, |place| place + 1), (number as u16, weight));
        self.added.push(number as u16);
        number as u16
    }

    pub fn remove(&mut self, number: u16) {
        self.states[usize::from(number)].1 = State::Removed;
        self.turns.retain(|(it, _)| *it != number);
        self.added.retain(|it| *it != number);
    }

    /// Frees the number of a removed backend without flows.
    pub fn release(&mut self, number: u16) {
        assert_eq!(self.flows_of(number), 0);
        self.states[usize::from(number)].1 = State::Free;
    }

    pub fn active(&self) -> Vec<u16> {
        self.turns.iter().map(|(number, _)| *number).collect()
    }

    pub fn removed(&self) -> Vec<u16> {
        let removed = self.states.iter().enumerate();
        let removed = removed.filter(|(_, (_, state))| *state == State::Removed);
        removed.map(|(number, _)| number as u16).collect()
    }

    pub fn dip(&self, number: u16) -> u32 {
        self.states[usize::from(number)].0
    }

    /// Flows of a backend, if it is certain of all flows whether they have ended.
    pub fn flows_of(&self, number: u16) -> u64 {
        self.flows.values().filter(|seen| seen.backend == number).count() as u64
    }

    /// All flows that have not ended; none if that is uncertain of one.
    pub fn certain_size(&mut self) -> Option<u64> {
        self.forget_ended();
        let keys: Vec<Key> = self.flows.keys().copied().collect();
        let is_certain = keys.into_iter().all(|key| self.is_certain(key));
        is_certain.then_some(self.flows.len() as u64)
    }
}
