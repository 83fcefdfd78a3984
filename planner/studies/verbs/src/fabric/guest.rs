// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A place that has connected to this one: it reads and writes this place's memory without any code
//! here, and its calls are received here.

use super::frames::{Kind, MESSAGE_BYTES, Message};
use super::peer::{CALL_BYTES_MAX, CALLS_MAX};
use super::refusal::Refusal;
use super::wire::Wire;
use crate::place::Place;
use crate::verbs::Call;
use freeport_fabric::Endpoint;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// A connection from another place.
pub struct Guest<E: Endpoint> {
    place: Place,
    endpoint: E,
    wire: RefCell<Wire<E>>,
    /// Number of calls without an answer, and of bytes of their messages.
    open: Cell<usize>,
    open_bytes: Cell<usize>,
    ended: RefCell<Option<Refusal>>,
}

impl<E: Endpoint> Guest<E> {
    /// Uses a connection from a place.
    pub fn new(place: Place, endpoint: E, wire: Wire<E>) -> Rc<Self> {
        let (wire, (open, open_bytes, ended)) = (RefCell::new(wire), Default::default());
        Rc::new(Self { place, endpoint, wire, open, open_bytes, ended })
    }

    /// Returns the endpoint, for its descriptor.
    pub fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// Returns why the connection has ended.
    pub fn ended(&self) -> Option<Refusal> {
        self.ended.borrow().clone()
    }

    /// Sends answers that waited for room, and passes on calls. Returns whether there were any.
    pub fn progress(self: &Rc<Self>, deliver: impl FnMut(Call)) -> bool {
        self.try_progress(deliver).unwrap_or_else(|refusal| {
            self.end(refusal);
            true
        })
    }

    fn try_progress(self: &Rc<Self>, mut deliver: impl FnMut(Call)) -> Result<bool, Refusal> {
        let mut is_busy = self.wire.borrow_mut().progress(|_| {})?;
        loop {
            let received = self.wire.borrow_mut().receive()?;
            let Some(Message { kind, number, contents }) = received else { return Ok(is_busy) };
            is_busy = true;
            if kind != Kind::Call {
                return Err(Refusal::Message("a place that calls sends an answer"));
            }
            let (calls, bytes) = (self.open.get(), self.open_bytes.get());
            // Answers that have not left do not count here as open, but take memory as well.
            let unsent = self.wire.borrow().waiting();
            if calls + unsent >= CALLS_MAX || (calls > 0 && bytes + contents.len() > CALL_BYTES_MAX)
            {
                return Err(Refusal::Message("more calls than may wait for their answers"));
            }
            self.open.set(calls + 1);
            self.open_bytes.set(bytes + contents.len());
            let reply = Reply { guest: Rc::downgrade(self), number, bytes: contents.len() };
            deliver(Call::new(self.place, contents, |answer| reply.send(answer)));
        }
    }

    /// Announces that this side sleeps; see [`Wire::arm`].
    pub fn arm(&self) -> bool {
        let armed = self.wire.borrow_mut().arm();
        armed.unwrap_or_else(|refusal| {
            self.end(refusal);
            false
        })
    }

    /// Announces that this side is awake.
    pub fn disarm(&self) {
        self.wire.borrow_mut().disarm();
    }

    /// Ends the connection if the other process has ended.
    pub fn check_alive(&self) {
        if !self.endpoint.peer_is_alive().unwrap_or(false) {
            self.end(Refusal::HungUp);
        }
    }

    fn end(&self, refusal: Refusal) {
        self.ended.borrow_mut().get_or_insert(refusal);
    }

    /// Sends an answer. One that would wait behind too many bytes of others is not kept.
    fn answer(&self, bytes: usize, mut message: Message) {
        self.open.set(self.open.get() - 1);
        self.open_bytes.set(self.open_bytes.get() - bytes);
        if self.ended.borrow().is_some() {
            return;
        }
        let waiting = self.wire.borrow().waiting_bytes();
        if waiting > 0 && waiting + message.contents.len() > CALL_BYTES_MAX {
            message = Message { kind: Kind::TooMany, contents: vec![], ..message };
        }
        let sent = self.wire.borrow_mut().send(message);
        if let Err(refusal) = sent {
            self.end(refusal);
        }
    }
}

/// Answers a call once, at the latest when it is dropped.
struct Reply<E: Endpoint> {
    guest: Weak<Guest<E>>,
    number: u64,
    bytes: usize,
}

impl<E: Endpoint> Reply<E> {
    fn send(mut self, contents: Vec<u8>) {
        match contents.len() {
            0..=MESSAGE_BYTES => self.finish(Kind::Answer, contents),
            _ => self.finish(Kind::TooLong, vec![]),
        }
    }

    /// A place that has ended needs no answer.
    fn finish(&mut self, kind: Kind, contents: Vec<u8>) {
        let message = Message { kind, number: self.number, contents };
        if let Some(guest) = std::mem::take(&mut self.guest).upgrade() {
            guest.answer(self.bytes, message);
        }
    }
}

impl<E: Endpoint> Drop for Reply<E> {
    fn drop(&mut self) {
        self.finish(Kind::NoAnswer, vec![]);
    }
}
