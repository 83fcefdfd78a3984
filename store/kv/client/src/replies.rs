// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies to a batch.

use crate::error::OperationError;
use freeport_kv_protocol::batch::{Reply, Status};

/// Replies to a batch, in the order of its operations.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    /// Values, in the order in which they arrived.
    bytes: Vec<u8>,
    records: Vec<Record>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    status: Status,
    has_value: bool,
    bytes: u32,
    at: usize,
}

/// A reply that has not come yet: no other is at the end of the memory.
const MISSING: Record =
    Record { status: Status::Failed, has_value: false, bytes: 0, at: usize::MAX };

impl Replies {
    /// No replies: a place for those of [`run_into`](crate::Client::run_into).
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of replies.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// There are no replies.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The value that the operation with a number returned: `None` if there is no such key, and if
    /// the operation returns no value.
    ///
    /// # Errors
    /// The server's reason not to execute the operation.
    ///
    /// # Panics
    /// There is no such operation.
    #[inline]
    pub fn get(&self, number: usize) -> Result<Option<&[u8]>, OperationError> {
        value(self.reply(number))
    }

    /// Whether the key of the operation with a number existed.
    ///
    /// # Errors
    /// The server's reason not to execute the operation.
    ///
    /// # Panics
    /// There is no such operation.
    pub fn was_found(&self, number: usize) -> Result<bool, OperationError> {
        let reply = self.reply(number);
        value(reply).map(|_| reply.status == Status::Done)
    }

    /// The reply to the operation with a number, as the server sent it.
    ///
    /// # Panics
    /// There is no such operation.
    #[inline]
    pub fn reply(&self, number: usize) -> Reply<'_> {
        self.records[number].of(&self.bytes)
    }

    /// Values and errors of all operations; see [`get`](Self::get).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Result<Option<&[u8]>, OperationError>> {
        self.records.iter().map(|record| value(record.of(&self.bytes)))
    }

    /// The first error of an operation, with the operation's number.
    pub fn first_error(&self) -> Option<(usize, OperationError)> {
        let mut errors = self.iter().enumerate();
        errors.find_map(|(number, reply)| reply.err().map(|error| (number, error)))
    }

    /// Expects replies to a number of operations.
    pub(crate) fn expect(&mut self, count: usize) {
        self.bytes.clear();
        self.records.clear();
        self.records.resize(count, MISSING);
    }

    /// The reply to an operation has not come.
    pub(crate) fn is_missing(&self, number: usize) -> bool {
        self.records[number].at == MISSING.at
    }

    /// Keeps the reply to an operation.
    #[inline]
    pub(crate) fn set(&mut self, number: usize, reply: Reply<'_>) {
        let at = self.bytes.len();
        let value = reply.value.unwrap_or(&[]);
        self.bytes.extend_from_slice(value);
        let (status, has_value) = (reply.status, reply.value.is_some());
        // A payload has less than 4 GiB.
        self.records[number] = Record { status, has_value, bytes: value.len() as u32, at };
    }
}

impl Record {
    #[inline]
    fn of(self, bytes: &[u8]) -> Reply<'_> {
        let value = self.has_value.then(|| &bytes[self.at..][..self.bytes as usize]);
        Reply { status: self.status, value }
    }
}

#[inline]
fn value(reply: Reply<'_>) -> Result<Option<&[u8]>, OperationError> {
    if reply.status.is_error() { Err(error(reply)) } else { Ok(reply.value) }
}

#[cold]
fn error(reply: Reply<'_>) -> OperationError {
    let status = reply.status;
    let text = match reply.value {
        Some(text) => String::from_utf8_lossy(text).into_owned(),
        None => format!("the server replied with {status:?} and no reason"),
    };
    OperationError { status, text }
}
