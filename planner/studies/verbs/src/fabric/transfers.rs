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
use std::rc::Rc;

/// Size of a buffer in bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// Number of buffers, and so of operations that are posted at the same time.
const BUFFERS: usize = 64;

type Buffer<E> = RegisteredMemory<<E as Endpoint>::Region>;

/// Buffers and outstanding operations of an endpoint.
pub struct Transfers<E: Endpoint> {
    endpoint: E,
    there: E::Target,
    free: Free<E>,
    made: Cell<usize>,
    posted: RefCell<HashMap<u64, Waiting<E>>>,
    number: Cell<u64>,
}

type Free<E> = Rc<RefCell<Vec<Buffer<E>>>>;

/// A buffer in use. It returns to the free ones when it is dropped, also by an operation that was
/// given up.
pub struct Lent<E: Endpoint> {
    buffer: Option<Buffer<E>>,
    free: Free<E>,
}

impl<E: Endpoint> Lent<E> {
    fn buffer(&self) -> &Buffer<E> {
        self.buffer.as_ref().expect("it has the buffer until it is dropped")
    }

    /// Returns the data of a read of a piece.
    pub fn data(&self, at: u64, bytes: usize) -> Vec<u8> {
        self.buffer().load(shift(at) as u64, bytes)
    }
}

impl<E: Endpoint> Drop for Lent<E> {
    fn drop(&mut self) {
        self.free.borrow_mut().extend(self.buffer.take());
    }
}

/// The buffer of an operation, and the task that waits for it.
type Waiting<E> = (Lent<E>, oneshot::Sender<Lent<E>>);

/// An operation that was posted; it returns the buffer.
pub type Posted<E> = oneshot::Receiver<Lent<E>>;

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
        buffer.buffer().store(shift(at) as u64, data);
        self.post(buffer, at, data.len(), |transfer| self.endpoint.write(transfer))
    }

    /// Processes a completion.
    pub fn completed(&self, completion: Completion) {
        let Completion::Done { token } = completion else { return };
        let posted = self.posted.borrow_mut().remove(&token);
        // The task that posted it may have ended.
        let _ = posted.map(|(buffer, sender)| sender.send(buffer));
    }

    /// Ends all operations: those that wait for them fail.
    pub fn fail(&self) {
        self.posted.take();
    }

    fn buffer(&self) -> Result<Option<Lent<E>>, Error> {
        let free = self.free.borrow_mut().pop();
        let buffer = match free {
            Some(buffer) => buffer,
            None if self.made.get() == BUFFERS => return Ok(None),
            None => {
                let region = self.endpoint.register(BUFFER_BYTES)?;
                self.made.set(self.made.get() + 1);
                RegisteredMemory::new(region, BUFFER_BYTES)
            }
        };
        Ok(Some(Lent { buffer: Some(buffer), free: Rc::clone(&self.free) }))
    }

    fn post(
        &self,
        buffer: Lent<E>,
        at: u64,
        bytes: usize,
        operation: impl FnOnce(Transfer<'_, E>) -> Result<(), Error>,
    ) -> Result<Option<Posted<E>>, Error> {
        let token = self.number.replace(self.number.get() + 1);
        let (here, there) = (&buffer.buffer().region(), &self.there);
        let there_at = usize::try_from(at).unwrap_or(usize::MAX);
        let transfer = Transfer { here, here_at: shift(at), there, there_at, bytes, token };
        match operation(transfer) {
            Ok(()) => {
                let (sender, posted) = oneshot::channel();
                self.posted.borrow_mut().insert(token, (buffer, sender));
                Ok(Some(posted))
            }
            Err(Error::QueueFull { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns the offset of an address in its word.
fn shift(at: u64) -> usize {
    (at % 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_fabric::shm::{Options, ShmEndpoint};

    /// Tasks end before and after the completion of their operation.
    #[test]
    fn operations_that_nobody_waits_for_return_their_buffers() {
        let (here, there) = ShmEndpoint::pair(&Options::with_capacity(1024)).expect("an endpoint");
        let memory = there.register(64).expect("memory");
        let target = here.import(there.export(&memory).expect("a key")).expect("its memory");
        let transfers = Transfers::new(here.clone(), target);
        for number in 0..4 * BUFFERS {
            let read = transfers.read(0, 8).expect("it works");
            let mut read = Some(read.expect("there is a free buffer"));
            if number % 2 == 0 {
                read.take();
            }
            while let Some(completion) = here.poll().expect("it works") {
                transfers.completed(completion);
            }
            drop(read);
        }
        assert_eq!((transfers.made.get(), transfers.free.borrow().len()), (1, 1));
    }
}
