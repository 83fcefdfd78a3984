// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State shared by both sides of a model: the operations in flight, and the side whose turn it is.

use super::Memory;
use fastrand::Rng;
use freeport_fabric::{Completion, WriteOrder};
use freeport_ring::{Local, Remote};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// State shared by both threads.
pub struct World {
    state: Mutex<State>,
    turned: Condvar,
}

pub struct State {
    pub random: Rng,
    order: WriteOrder,
    /// The side whose turn it is.
    turn: usize,
    pub left: [bool; 2],
    /// Operations in flight, each side's in the order of posting.
    pub flights: Vec<Flight>,
    pub completions: [VecDeque<Completion>; 2],
    pub outstanding: [usize; 2],
    pub regions: Vec<Memory>,
    pub letters: [VecDeque<Vec<u8>>; 2],
}

/// Source of a write's bytes.
pub enum Source {
    /// Memory, read when the write is executed.
    Region(Memory, usize),
    /// Bytes of a store.
    Bytes(Vec<u8>),
}

/// A write in flight.
pub struct Flight {
    pub side: usize,
    source: Source,
    to: (Memory, usize),
    /// Pieces that have not been copied.
    pieces: VecDeque<Range<usize>>,
    pub data: Option<u32>,
    has_arrived: bool,
    /// Token of an operation that is reported when it is done.
    pub token: Option<u64>,
}

impl World {
    pub fn new(seed: u64, order: WriteOrder) -> Self {
        let state = State {
            random: Rng::with_seed(seed),
            order,
            turn: 0,
            left: [false; 2],
            flights: vec![],
            completions: Default::default(),
            outstanding: [0; 2],
            regions: vec![],
            letters: Default::default(),
        };
        Self { state: Mutex::new(state), turned: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Executes random steps of the writes in flight.
    fn move_on(&mut self) {
        for _ in 0..self.random.usize(..8) {
            let may_move = self.may_move();
            if may_move.is_empty() {
                return;
            }
            let chosen = self.random.usize(..may_move.len());
            self.advance(may_move[chosen]);
        }
    }

    /// Returns the writes that may proceed: where order is kept, a write begins when all before it
    /// have arrived.
    fn may_move(&self) -> Vec<usize> {
        let mut is_held = [false; 2];
        let mut may_move = |(at, flight): (usize, &Flight)| {
            let may_move = !is_held[flight.side];
            is_held[flight.side] |= self.order != WriteOrder::Nothing && !flight.has_arrived;
            may_move.then_some(at)
        };
        self.flights.iter().enumerate().filter_map(&mut may_move).collect()
    }

    fn advance(&mut self, at: usize) {
        let flight = &mut self.flights[at];
        if !flight.pieces.is_empty() {
            let next = match self.order {
                WriteOrder::Words => 0,
                _ => self.random.usize(..flight.pieces.len()),
            };
            return flight.copy(next);
        }
        if !flight.has_arrived {
            flight.has_arrived = true;
            let arrived = flight.data.map(|data| Completion::Arrived { data });
            return self.completions[1 - flight.side].extend(arrived);
        }
        let Flight { side, token, .. } = self.flights.remove(at);
        self.completions[side].extend(token.map(|token| Completion::Done { token }));
    }
}

impl Flight {
    pub fn new(
        side: usize,
        source: Source,
        to: (Memory, usize),
        bytes: usize,
        random: &mut Rng,
    ) -> Self {
        let pieces = pieces(to.1, bytes, random);
        Self { side, source, to, pieces, data: None, has_arrived: false, token: None }
    }

    /// Copies a piece.
    fn copy(&mut self, number: usize) {
        let Some(piece) = self.pieces.remove(number) else { return };
        let mut bytes = vec![0; piece.len()];
        match &self.source {
            // SAFETY: inside, as was checked at posting; only one thread runs.
            Source::Region(from, at) => unsafe { from.read(at + piece.start, &mut bytes) },
            Source::Bytes(from) => bytes.copy_from_slice(&from[piece.clone()]),
        }
        // SAFETY: as above.
        unsafe { self.to.0.write(self.to.1 + piece.start, &bytes) };
    }
}

/// Divides a write into pieces by ascending addresses, without splitting a whole word of the
/// target.
fn pieces(there_at: usize, bytes: usize, random: &mut Rng) -> VecDeque<Range<usize>> {
    let (mut pieces, mut start) = (VecDeque::new(), 0);
    while start < bytes {
        let words = random.usize(1..40) * 8;
        let end = ((there_at + start) / 8 * 8 + words - there_at).min(bytes);
        pieces.push_back(start..end);
        start = end;
    }
    pieces
}

/// One side.
pub struct End {
    world: Arc<World>,
    pub side: usize,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "side {}", self.side)
    }
}

impl End {
    pub fn new(world: Arc<World>, side: usize) -> Self {
        Self { world, side }
    }

    /// Executes random steps, and possibly lets the other side continue; always with `yields`.
    pub fn step(&self, yields: bool) -> MutexGuard<'_, State> {
        let mut state = self.world.lock();
        if state.turn == self.side {
            state.move_on();
            if (yields || state.random.u8(..) < 3) && !state.left[1 - self.side] {
                state.turn = 1 - self.side;
                self.world.turned.notify_all();
            }
        }
        while state.turn != self.side && !state.left[1 - self.side] {
            state = self.world.turned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.turn = self.side;
        state
    }
}

/// A side that ends lets the other one continue; its posted writes still arrive.
impl Drop for End {
    fn drop(&mut self) {
        self.world.lock().left[self.side] = true;
        self.world.turned.notify_all();
    }
}

#[test]
fn pieces_cover_a_write_and_cut_no_word() {
    let mut random = Rng::with_seed(3);
    for _ in 0..2000 {
        let (at, bytes) = (random.usize(..100), random.usize(..2000));
        let mut end = 0;
        for piece in pieces(at, bytes, &mut random) {
            assert!(piece.start == end && piece.end > end);
            assert!(end == 0 || (at + end).is_multiple_of(8), "a word is cut");
            end = piece.end;
        }
        assert_eq!(end, bytes);
    }
}
