// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reasons why an operation did not happen, or may not have happened.

use crate::place::Place;
use thiserror::Error;

/// A failed operation.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Fault {
    /// The other place has died, or has begun anew. The operation may have happened in part.
    #[error("{0} is gone; try again when it is back, or use another place")]
    Gone(Place),
    /// The access is not inside the other place's memory.
    #[error("{place} has {size} B of memory, and not {bytes} B at {at}")]
    OutOfRange {
        /// The place.
        place: Place,
        /// First byte of the access.
        at: u64,
        /// Length of the access in bytes.
        bytes: u64,
        /// Size of the memory in bytes.
        size: u64,
    },
    /// The two places do not have such an operation between them.
    #[error("{from} has no {operation} to {to}")]
    NoPath {
        /// The place that asks.
        from: Place,
        /// The place that is asked.
        to: Place,
        /// The operation.
        operation: &'static str,
    },
    /// Memory or a file of a place does not work.
    #[error("{place}: {reason}")]
    Broken {
        /// The place.
        place: Place,
        /// The thing that does not work, and why.
        reason: String,
    },
}
