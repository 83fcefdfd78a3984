// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of stream commands.

use thiserror::Error;

/// Reasons for which a command fails. The texts are those of Redis 7.2, without the code `ERR` at
/// their front; `GroupExists` has its own code, `BUSYGROUP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamError {
    /// A text is no id, or no id of the form that the command accepts.
    #[error("Invalid stream ID specified as stream command argument")]
    InvalidId,
    /// No id lies behind the excluded start of an interval.
    #[error("invalid start ID for the interval")]
    InvalidStart,
    /// No id lies before the excluded end of an interval.
    #[error("invalid end ID for the interval")]
    InvalidEnd,
    /// A new entry cannot have the id `0-0`.
    #[error("The ID specified in XADD must be greater than 0-0")]
    ZeroId,
    /// The id of a new entry is not larger than the last id.
    #[error("The ID specified in XADD is equal or smaller than the target stream top item")]
    NotGreater,
    /// The last id is the largest one.
    #[error("The stream has exhausted the last possible ID, unable to add more items")]
    Exhausted,
    /// Fields and values of an entry have more than 1 GiB together.
    #[error("Elements are too large to be stored")]
    TooLarge,
    /// `XSETID` with a last id below its own largest deleted id.
    #[error("The ID specified in XSETID is smaller than the provided max_deleted_entry_id")]
    BelowGivenDeleted,
    /// `XSETID` with a last id below the largest deleted id of the stream.
    #[error("The ID specified in XSETID is smaller than current max_deleted_entry_id")]
    BelowDeleted,
    /// `XSETID` with a last id below the last entry.
    #[error("The ID specified in XSETID is smaller than the target stream top item")]
    BelowTop,
    /// `XSETID` with fewer added entries than the stream has entries.
    #[error("The entries_added specified in XSETID is smaller than the target stream length")]
    AddedBelowLength,
    /// A group of this name exists.
    #[error("BUSYGROUP Consumer Group name already exists")]
    GroupExists,
    /// No group of this name exists. The text of the reply contains the names of key and group,
    /// and depends on the command.
    #[error("NOGROUP No such consumer group")]
    NoGroup,
}
