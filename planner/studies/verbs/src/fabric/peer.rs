// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A place that this one has connected to: operations on its memory, and calls to it.
//!
//! The kernel reports the end of the other process. Each operation on its memory asks for that when
//! it is done, because memory of a process that has ended can still be read and written here.

use super::frames::{Kind, MESSAGE_BYTES, Message};
use super::refusal::Refusal;
use super::transfers::Transfers;
use super::turns::Turns;
use super::wire::Wire;
use crate::fault::Fault;
use crate::place::Place;
use freeport_fabric::{Endpoint, Error};
use futures::channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Number of calls of a connection without an answer; more of them wait.
pub const CALLS_MAX: usize = 1024;
/// Number of bytes of their messages, and of answers that have not left; a single one may have
/// more.
pub const CALL_BYTES_MAX: usize = 64 << 20;

/// Number of answers after which calls that wait for room look again.
const WAKE_EVERY: usize = 64;

/// A connection to another place.
pub struct Peer<E: Endpoint> {
    place: Place,
    memory_bytes: u64,
    endpoint: E,
    turns: Rc<Turns>,
    wire: RefCell<Wire<E>>,
    transfers: Transfers<E>,
    /// Calls without an answer, with the lengths of their messages.
    calls: RefCell<HashMap<u64, (usize, oneshot::Sender<Message>)>>,
    call_bytes: Cell<usize>,
    /// Tasks that wait until another call has its answer.
    waiting: RefCell<Vec<Waker>>,
    number: Cell<u64>,
    /// Reason of the end, after it.
    ended: RefCell<Option<Fault>>,
}

impl<E: Endpoint> Peer<E> {
    /// Uses a connection to a place with memory of this number of bytes.
    pub fn new(
        (place, memory_bytes): (Place, u64),
        endpoint: E,
        there: E::Target,
        wire: Wire<E>,
        turns: Rc<Turns>,
    ) -> Self {
        Self {
            place,
            memory_bytes,
            transfers: Transfers::new(endpoint.clone(), there),
            endpoint,
            turns,
            wire: RefCell::new(wire),
            calls: RefCell::default(),
            call_bytes: Cell::new(0),
            waiting: RefCell::default(),
            number: Cell::new(0),
            ended: RefCell::new(None),
        }
    }

    /// Returns the endpoint, for its descriptor.
    pub fn endpoint(&self) -> &E {
        &self.endpoint
    }

    /// Returns whether the connection has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Reads memory.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, Fault> {
        self.check_range(at, bytes)?;
        let mut data = Vec::with_capacity(bytes);
        while data.len() < bytes {
            let at = at + data.len() as u64;
            let piece = Transfers::<E>::piece(at, bytes - data.len());
            let buffer = self.operate(|| self.transfers.read(at, piece)).await?;
            data.extend(buffer.data(at, piece));
        }
        self.check_alive()?;
        Ok(data)
    }

    /// Writes memory.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn write(&self, at: u64, data: &[u8]) -> Result<(), Fault> {
        self.check_range(at, data.len())?;
        let mut done = 0;
        while done < data.len() {
            let at = at + done as u64;
            let piece = &data[done..done + Transfers::<E>::piece(at, data.len() - done)];
            self.operate(|| self.transfers.write(at, piece)).await?;
            done += piece.len();
        }
        self.check_alive()
    }

    /// Posts an operation, and waits for its completion.
    async fn operate<T>(
        &self,
        post: impl Fn() -> Result<Option<oneshot::Receiver<T>>, Error>,
    ) -> Result<T, Fault> {
        let posted = loop {
            self.check_ended()?;
            match post() {
                Ok(Some(posted)) => break posted,
                Ok(None) => self.turns.next().await,
                Err(error) => return Err(self.end(&error.into())),
            }
        };
        self.progress();
        posted.await.map_err(|_| self.fault())
    }

    /// Sends a message, and returns its answer.
    ///
    /// # Errors
    /// See [`Fault`].
    pub async fn call(&self, contents: Vec<u8>) -> Result<Vec<u8>, Fault> {
        let (place, bytes) = (self.place, contents.len());
        if bytes > MESSAGE_BYTES {
            let reason = format!("a message of {bytes} B, but {MESSAGE_BYTES} B at most: split it");
            return Err(Fault::Broken { place, reason });
        }
        self.room(bytes).await?;
        let number = self.number.replace(self.number.get() + 1);
        let (sender, answer) = oneshot::channel();
        self.calls.borrow_mut().insert(number, (bytes, sender));
        self.call_bytes.set(self.call_bytes.get() + bytes);
        let sent = self.wire.borrow_mut().send(Message { kind: Kind::Call, number, contents });
        if let Err(refusal) = sent {
            return Err(self.end(&refusal));
        }
        match answer.await {
            Ok(Message { kind: Kind::Answer, contents, .. }) => Ok(contents),
            Ok(Message { kind: Kind::TooLong, .. }) => {
                let reason = format!("the answer is longer than {MESSAGE_BYTES} B: split it");
                Err(Fault::Broken { place, reason })
            }
            Ok(Message { kind: Kind::TooMany, .. }) => {
                let reason = format!(
                    "the answer has no room behind others of {CALL_BYTES_MAX} B together: \
                     make fewer calls at the same time"
                );
                Err(Fault::Broken { place, reason })
            }
            Ok(_) => Err(Fault::Gone(place)),
            Err(_) => Err(self.fault()),
        }
    }

    /// Waits until there is room for another call.
    async fn room(&self, bytes: usize) -> Result<(), Fault> {
        poll_fn(|context| {
            self.check_ended()?;
            let (calls, before) = (self.calls.borrow().len(), self.call_bytes.get());
            if calls == 0 || (calls < CALLS_MAX && before + bytes <= CALL_BYTES_MAX) {
                return Poll::Ready(Ok(()));
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Takes a call that has its answer. Now and then, and always after the last call, those that
    /// wait for room look again.
    fn answered(&self, number: u64) -> Option<oneshot::Sender<Message>> {
        let mut calls = self.calls.borrow_mut();
        let (bytes, caller) = calls.remove(&number)?;
        self.call_bytes.set(self.call_bytes.get() - bytes);
        if calls.len() < WAKE_EVERY || calls.len().is_multiple_of(WAKE_EVERY) {
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
        Some(caller)
    }

    /// Processes completions and answers. Returns whether there were any.
    pub fn progress(&self) -> bool {
        if self.has_ended() {
            return false;
        }
        self.try_progress().unwrap_or_else(|refusal| {
            self.end(&refusal);
            true
        })
    }

    fn try_progress(&self) -> Result<bool, Refusal> {
        let mut wire = self.wire.borrow_mut();
        let mut is_busy = wire.progress(|completion| self.transfers.completed(completion))?;
        while let Some(message) = wire.receive()? {
            is_busy = true;
            if message.kind == Kind::Call {
                return Err(Refusal::Message("a place that was called sends a call"));
            }
            let caller =
                self.answered(message.number).ok_or(Refusal::Message("an answer to no call"))?;
            // The task that called may have ended.
            let _ = caller.send(message);
        }
        Ok(is_busy)
    }

    /// Announces that this side sleeps; see [`Wire::arm`].
    pub fn arm(&self) -> bool {
        let armed = self.wire.borrow_mut().arm();
        armed.unwrap_or_else(|refusal| {
            self.end(&refusal);
            false
        })
    }

    /// Announces that this side is awake.
    pub fn disarm(&self) {
        self.wire.borrow_mut().disarm();
    }

    /// Ends the connection if the other process has ended. Answers that it has sent before are
    /// received.
    ///
    /// # Errors
    /// [`Fault`] of the connection: it has ended.
    pub fn check_alive(&self) -> Result<(), Fault> {
        if self.endpoint.peer_is_alive().unwrap_or(false) {
            return self.check_ended();
        }
        self.progress();
        Err(self.end(&Refusal::HungUp))
    }

    /// Ends the connection: operations fail, if it had not ended before. Returns their fault.
    pub fn end(&self, refusal: &Refusal) -> Fault {
        let fault = refusal.fault(self.place);
        let fault = self.ended.borrow_mut().get_or_insert(fault).clone();
        self.transfers.fail();
        self.calls.take();
        self.waiting.take().into_iter().for_each(Waker::wake);
        fault
    }

    fn fault(&self) -> Fault {
        self.ended.borrow().clone().unwrap_or(Fault::Gone(self.place))
    }

    fn check_ended(&self) -> Result<(), Fault> {
        self.ended.borrow().clone().map_or(Ok(()), Err)
    }

    fn check_range(&self, at: u64, bytes: usize) -> Result<(), Fault> {
        let (place, size, bytes) = (self.place, self.memory_bytes, bytes as u64);
        match at.checked_add(bytes) {
            Some(end) if end <= size => Ok(()),
            _ => Err(Fault::OutOfRange { place, at, bytes, size }),
        }
    }
}
