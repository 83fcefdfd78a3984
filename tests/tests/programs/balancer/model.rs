// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A simple model of a load balancer: a map of flows and a list of backends.

use std::collections::HashMap;

/// Source, target, ports and protocol.
pub type Key = (u32, u32, u16, u16, u8);

/// Number of idle ticks up to which a flow has certainly not ended, however much real time passes.
const SURELY_ALIVE: u64 = 100_000;
/// Number of idle ticks from which a flow has certainly ended: the table's timeout is 228,882.
const SURELY_ENDED: u64 = 229_000;

/// The same for a flow with a FIN: either more time passes than it lingers, or none.
const LINGERED: u64 = 30_000;

/// Expected backend of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// The backend of the flow, or the next in turn.
    Backend(u16),
    /// Any active backend: the end of an unknown flow.
    Any,
    /// No backend is available.
    Drop,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Active { weight: u32 },
    Removed,
}

/// Meaning of a packet for its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    /// Ordinary packet.
    Goes,
    /// FIN: one side has sent everything.
    Closes,
    /// RST: the flow is over.
    Ends,
}

struct Seen {
    backend: u16,
    tick: u64,
    is_closing: bool,
}

impl Seen {
    /// Number of idle ticks from which it has certainly ended.
    fn surely_ended(&self) -> u64 {
        if self.is_closing { LINGERED } else { SURELY_ENDED }
    }
}

/// Flows, backends, and the time.
pub struct Model {
    flows: HashMap<Key, Seen>,
    states: Vec<(u32, State)>,
    /// Numbers of backends in order of their turn, each with the rest of its turn.
    turns: Vec<(u16, u32)>,
    /// The same numbers in order of their addition.
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

    /// Handles a packet of a flow for which [`is_certain`](Self::is_certain) holds.
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

    /// Adds a new backend, and returns its number. Its turn comes after that of the previously
    /// added one.
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

    /// Number of flows of a backend, valid if every flow is certain.
    pub fn flows_of(&self, number: u16) -> u64 {
        self.flows.values().filter(|seen| seen.backend == number).count() as u64
    }

    /// Number of flows that have not ended; `None` if one is uncertain.
    pub fn certain_size(&mut self) -> Option<u64> {
        self.forget_ended();
        let keys: Vec<Key> = self.flows.keys().copied().collect();
        let is_certain = keys.into_iter().all(|key| self.is_certain(key));
        is_certain.then_some(self.flows.len() as u64)
    }
}
