// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings over the model of a window: stores into the peer's memory that arrive later.

use super::Memory;
use super::world::{End, Flight, Source};
use freeport_fabric::bounds::within;
use freeport_fabric::endpoint::{Path, Target};
use freeport_fabric::{Completion, Error};
use freeport_ring::{Claimed, Local, Remote};
use std::rc::Rc;

/// Maximum number of stores in flight before a processor waits.
const STORES_MAX: usize = 64;

/// The path of a window.
#[derive(Debug)]
pub struct PostedPath {
    end: Rc<End>,
    here: Memory,
    there: Memory,
}

impl PostedPath {
    pub fn new(end: &Rc<End>, here: &Memory, there: &Memory) -> Self {
        Self { end: Rc::clone(end), here: here.clone(), there: there.clone() }
    }
}

impl Path for PostedPath {
    type Window = Window;
    type Inbox = Inbox;

    fn notes(&self, at: usize, bytes: usize) -> Result<Window, Error> {
        within("memory of the peer", at, bytes, Target::bytes(&self.there))?;
        Ok(Window { end: Rc::clone(&self.end), there: self.there.clone(), at })
    }

    fn ring(&self, at: usize, bytes: usize) -> Result<Window, Error> {
        self.notes(at, bytes)
    }

    fn own_notes(&self, at: usize, bytes: usize) -> Result<Inbox, Error> {
        within("memory of this side", at, bytes, Target::bytes(&self.here))?;
        Ok(Inbox { here: self.here.clone(), at })
    }

    fn own_ring(&self, at: usize, bytes: usize) -> Result<Inbox, Error> {
        self.own_notes(at, bytes)
    }

    fn completed(&self, completion: Completion) -> Result<Option<Completion>, Error> {
        Ok(Some(completion))
    }

    fn progress(&self) -> Result<(), Error> {
        Ok(())
    }

    fn is_idle(&self) -> bool {
        let state = self.end.step(false);
        !state.flights.iter().any(|flight| flight.side == self.end.side)
    }
}

/// A part of the peer's memory.
#[derive(Debug)]
pub struct Window {
    end: Rc<End>,
    there: Memory,
    at: usize,
}

impl Remote for Window {
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        let mut state = self.end.step(false);
        while state.flights.len() >= STORES_MAX {
            drop(state);
            state = self.end.step(false);
        }
        let to = (self.there.clone(), self.at + offset);
        let source = Source::Bytes(bytes.to_vec());
        let flight = Flight::new(self.end.side, source, to, bytes.len(), &mut state.random);
        state.flights.push(flight);
    }

    unsafe fn store(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `store`.
        unsafe { self.write(offset, &word.to_ne_bytes()) }
    }
}

/// A part of this side's memory.
#[derive(Debug)]
pub struct Inbox {
    here: Memory,
    at: usize,
}

impl Local for Inbox {
    unsafe fn load(&self, offset: usize) -> Claimed {
        // SAFETY: the caller guarantees that it is inside.
        unsafe { self.here.load(self.at + offset) }
    }

    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the caller guarantees that it is inside.
        unsafe { self.here.read(self.at + offset, into) }
    }
}
