// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads and writes of another place's memory, through registered buffers of this side.
//!
//! A buffer is used at the same offset in a word as the memory of the other place, so that a
//! transport that copies word by word keeps words whole.

use super::memory::RegisteredMemory;
use crate::verbs::Memory;
use freeport_fabric::endpoint::Transfer;
use freeport_fabric::{Completion, Endpoint, Error};
use futures::channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Size of a buffer in bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Number of buffers, and so of operations that are posted at the same time.
const BUFFERS: usize = 64;

type Buffer<E> = RegisteredMemory<<E as Endpoint>::Region>;

/// Buffers and outstanding operations of an endpoint.
pub struct Transfers<E: Endpoint> {
    endpoint: E,
    there: E::Target,
    free: RefCell<Vec<Buffer<E>>>,
    made: Cell<usize>,
    posted: RefCell<HashMap<u64, Waiting<E>>>,
    number: Cell<u64>,
}

/// The buffer of an operation, and the task that waits for it.
type Waiting<E> = (Buffer<E>, oneshot::Sender<Buffer<E>>);

/// An operation that was posted; it returns the buffer.
pub type Posted<E> = oneshot::Receiver<Buffer<E>>;

impl<E: Endpoint> Transfers<E> {
    /// Creates buffers for accesses to memory of the peer.
    pub fn new(endpoint: E, there: E::Target) -> Self {
        let (free, made, posted) = Default::default();
        Self { endpoint, there, free, made, posted, number: Cell::new(0) }
    }

    /// Returns the length of the first operation of an access.
    pub fn piece(at: u64, left: usize) -> usize {
        left.min(BUFFER_BYTES - shift(at))
    }

    /// Posts a read of a piece. None means that completions have to be processed first.
    ///
    /// # Errors
    /// The transport failed.
    pub fn read(&self, at: u64, bytes: usize) -> Result<Option<Posted<E>>, Error> {
        let Some(buffer) = self.buffer()? else { return Ok(None) };
        self.post(buffer, at, bytes, |transfer| self.endpoint.read(transfer))
    }

    /// Posts a write of a piece. None means that completions have to be processed first.
    ///
    /// # Errors
    /// The transport failed.
    pub fn write(&self, at: u64, data: &[u8]) -> Result<Option<Posted<E>>, Error> {
        let Some(buffer) = self.buffer()? else { return Ok(None) };
        buffer.store(shift(at) as u64, data);
        self.post(buffer, at, data.len(), |transfer| self.endpoint.write(transfer))
    }

    /// Returns the data of a read, and the buffer to the free ones.
    pub fn take(&self, buffer: Buffer<E>, at: u64, bytes: usize) -> Vec<u8> {
        let data = buffer.load(shift(at) as u64, bytes);
        self.give_back(buffer);
        data
    }

    /// Returns a buffer to the free ones.
    pub fn give_back(&self, buffer: Buffer<E>) {
        self.free.borrow_mut().push(buffer);
    }

    /// Processes a completion.
    pub fn completed(&self, completion: Completion) {
        let Completion::Done { token } = completion else { return };
        let posted = self.posted.borrow_mut().remove(&token);
        if let Some((buffer, sender)) = posted
            && let Err(buffer) = sender.send(buffer)
        {
            // The task that posted it has ended.
            self.give_back(buffer);
        }
    }

    /// Ends all operations: those that wait for them fail.
    pub fn fail(&self) {
        self.posted.take();
    }

    fn buffer(&self) -> Result<Option<Buffer<E>>, Error> {
        if let Some(buffer) = self.free.borrow_mut().pop() {
            return Ok(Some(buffer));
        }
        if self.made.get() == BUFFERS {
            return Ok(None);
        }
        let region = self.endpoint.register(BUFFER_BYTES)?;
        self.made.set(self.made.get() + 1);
        Ok(Some(RegisteredMemory::new(region, BUFFER_BYTES)))
    }

    fn post(
        &self,
        buffer: Buffer<E>,
        at: u64,
        bytes: usize,
        operation: impl FnOnce(Transfer<'_, E>) -> Result<(), Error>,
    ) -> Result<Option<Posted<E>>, Error> {
        let token = self.number.replace(self.number.get() + 1);
        let (here, there) = (&buffer.region(), &self.there);
        let there_at = usize::try_from(at).unwrap_or(usize::MAX);
        let transfer = Transfer { here, here_at: shift(at), there, there_at, bytes, token };
        match operation(transfer) {
            Ok(()) => {
                let (sender, posted) = oneshot::channel();
                self.posted.borrow_mut().insert(token, (buffer, sender));
                Ok(Some(posted))
            }
            Err(Error::QueueFull { .. }) => {
                self.give_back(buffer);
                Ok(None)
            }
            Err(error) => {
                self.give_back(buffer);
                Err(error)
            }
        }
    }
}

/// Returns the offset of an address in its word.
fn shift(at: u64) -> usize {
    (at % 8) as usize
}
