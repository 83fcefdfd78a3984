// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons why an operation of the store fails.

use crate::layout::{KEY_MAX, LimitError};
use freeport_study_verbs::{Fault, Place};
use thiserror::Error;

/// A failed operation.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum KvError {
    /// A place does not work. A put or delete may have happened.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The store cannot exist.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The key has a wrong length.
    #[error("the key has {0} B; keys have 1 to {KEY_MAX} B")]
    Key(usize),
    /// The value is too long.
    #[error("the value has {bytes} B; the limit is value_max = {limit} B")]
    Value {
        /// Length of the value in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The item changed all the time, or a put of it never ended.
    #[error("the item was being changed for {0} ms; try again, or raise `patience`")]
    Changing(u128),
    /// The store has no room for the item. Nothing has changed.
    #[error("the store is full: {0}")]
    Full(String),
    /// A message cannot be understood.
    #[error("{0} sent a message that is not of this store; use the same version in all places")]
    Message(Place),
}
