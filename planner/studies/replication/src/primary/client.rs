// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of the file system.

use super::Shared;
use super::open::Open;
use crate::entry::{Entry, PATH_BYTES, overhead};
use crate::files::FILE_BYTES;
use crate::log::LogError;
use crate::options::Policy;
use freeport_study_verbs::Verbs;
use std::rc::Rc;
use thiserror::Error;

/// A write that failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WriteError {
    /// The path is empty or too long.
    #[error("the path {0:?} has {bytes} B; give it 1 to {PATH_BYTES} B", bytes = .0.len())]
    Path(String),
    /// The file would become larger than memory can be.
    #[error("{path}: a write of {bytes} B at {offset} ends behind the largest file; write less")]
    TooLarge {
        /// The file.
        path: String,
        /// First byte in the file.
        offset: u64,
        /// Length of the data.
        bytes: usize,
    },
    /// The host's file does not work, or a backup refuses the log: nothing is acknowledged until
    /// the host begins anew.
    #[error("nothing is durable any more: {0}")]
    Broken(LogError),
}

/// A client. A clone is the same.
pub struct Client<V> {
    shared: Rc<Shared<V>>,
    number: u32,
    policy: Policy,
}

impl<V> Clone for Client<V> {
    fn clone(&self) -> Self {
        let Self { shared, number, policy } = self;
        Self { shared: Rc::clone(shared), number: *number, policy: *policy }
    }
}

impl<V: Verbs> Client<V> {
    pub(super) fn new(shared: &Rc<Shared<V>>, number: u32, policy: Policy) -> Self {
        Self { shared: Rc::clone(shared), number, policy }
    }

    /// Writes to a file, which is created if there is none. The write is durable after
    /// [`fsync`](Self::fsync). Writes to one file take effect in the order in which they return. If
    /// the host dies, one that is longer than a chunk may take effect in part.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write(&self, path: &str, offset: u64, data: &[u8]) -> Result<(), WriteError> {
        if path.is_empty() || path.len() > PATH_BYTES {
            return Err(WriteError::Path(path.into()));
        }
        let end = offset.checked_add(data.len() as u64);
        if end.is_none_or(|end| end > FILE_BYTES) {
            let (path, bytes) = (path.into(), data.len());
            return Err(WriteError::TooLarge { path, offset, bytes });
        }
        let shared = &self.shared;
        shared.verbs.work(shared.options.costs.write.of(data.len())).await;
        let piece = self.piece_bytes(path);
        let mut at = offset;
        for data in data.chunks(piece) {
            self.push(Entry { path, offset: at, data }).await?;
            at += data.len() as u64;
        }
        Ok(())
    }

    /// Waits until all backups hold all writes to a file that have returned, by any client.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn fsync(&self, path: &str) -> Result<(), WriteError> {
        let shared = &self.shared;
        if let Some(owner) = self.owner(path) {
            shared.complete(owner);
        }
        let last = shared.state.borrow().last_of.get(path).copied();
        // Writes from before the host began are in chunks that it recovered.
        let number = last.unwrap_or(shared.state.borrow().recovered);
        shared.wait_for(number).await
    }

    /// Returns the length of the longest chunk in bytes, without its header.
    pub fn chunk_bytes(&self) -> usize {
        self.shared.options.chunk_bytes
    }

    /// Returns the number of bytes that a chunk has for one write to a file.
    pub fn piece_bytes(&self, path: &str) -> usize {
        self.shared.options.chunk_bytes - overhead(path)
    }

    /// Returns the client whose incomplete chunk has a write to a file.
    fn owner(&self, path: &str) -> Option<u32> {
        let state = self.shared.state.borrow();
        state.open.iter().find(|(_, open)| open.paths.contains(path)).map(|(owner, _)| *owner)
    }

    async fn push(&self, entry: Entry<'_>) -> Result<(), WriteError> {
        let shared = &self.shared;
        let chunk_bytes = shared.options.chunk_bytes;
        loop {
            shared.working()?;
            // Another client's writes to this file come first.
            if let Some(owner) = self.owner(entry.path).filter(|owner| *owner != self.number) {
                shared.complete(owner);
            }
            let fits = {
                let state = shared.state.borrow();
                state.open.get(&self.number).map(|open| open.fits(&entry, chunk_bytes))
            };
            match fits {
                Some(true) => break,
                Some(false) => shared.complete(self.number),
                None => self.open().await?,
            }
        }
        let mut state = shared.state.borrow_mut();
        let open = state.open.get_mut(&self.number).expect("it fits");
        open.push(&entry);
        let is_full = open.body.len() == chunk_bytes;
        state.files.write(entry);
        drop(state);
        // The chunk may have got its place while others wait for one: nobody else completes it.
        if is_full || shared.slots.has_waiting() {
            shared.complete(self.number);
        }
        Ok(())
    }

    /// Opens a chunk. If all places are taken, incomplete chunks of others are completed.
    async fn open(&self) -> Result<(), WriteError> {
        let shared = &self.shared;
        let slot = match shared.slots.try_take() {
            Some(slot) => slot,
            None => {
                shared.complete_all();
                match shared.slots.take_unless_closed().await {
                    Some(slot) => slot,
                    None => return shared.working(),
                }
            }
        };
        let mut state = shared.state.borrow_mut();
        // Another task of this client may have been faster.
        state.open.entry(self.number).or_insert_with(|| Open::new(slot, self.policy));
        Ok(())
    }
}
