// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log in a place's file, as a place finds it when it begins, and reasons to refuse a log.

use crate::chunk::Chunk;
use crate::files::Files;
use freeport_study_verbs::{Fault, Place, Stable, Verbs};
use std::collections::VecDeque;
use thiserror::Error;

/// A log that was read from a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Log {
    /// Number of the last whole chunk; 0 if there is none.
    pub last: u64,
    /// Identities of all whole chunks, from the first on.
    pub identities: Vec<u64>,
    /// The last chunks, as many as were asked for.
    pub recent: VecDeque<Chunk>,
    /// The files.
    pub files: Files,
    /// Length of all whole chunks in bytes.
    pub bytes: u64,
}

/// A backup's reason to refuse the log of the place in front of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Refusal {
    /// A number stands for different contents: one of the logs was lost, cut, or exchanged.
    #[error(
        "chunk {number} of {place} differs from the one in front of it: end all places, copy the \
         right log over the files of the others, and begin all anew"
    )]
    Differs {
        /// The backup that refuses.
        place: Place,
        /// Number of the chunk.
        number: u64,
    },
    /// The backup has lost chunks that it has acknowledged, and that nobody keeps to send again.
    #[error(
        "{place} has {last} chunks, and has held {held}: end all places, copy the file of another \
         place over the file of {place}, and begin all anew"
    )]
    Lost {
        /// The backup that refuses.
        place: Place,
        /// Number of the last chunk that it has.
        last: u64,
        /// Number of a chunk that it has acknowledged.
        held: u64,
    },
}

/// A log that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LogError {
    /// The place's file does not work.
    #[error(transparent)]
    File(#[from] Fault),
    /// Whole chunks lie behind a damaged one, so it is not the torn end of the log.
    #[error(
        "{place}: the file is damaged at byte {at}, with a whole chunk behind it at byte {whole}; \
         copy the file of another place over it, and begin all places anew"
    )]
    Damaged {
        /// The place.
        place: Place,
        /// End of the whole chunks in front of the damage.
        at: u64,
        /// First byte of the next whole chunk.
        whole: u64,
    },
    /// A backup refuses the log.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Log {
    /// Reads all whole chunks in their order, up to one that is torn or does not follow the one in
    /// front of it.
    pub fn read(contents: &[u8], recent: usize) -> Self {
        let mut log = Self::default();
        let chunks = std::iter::from_fn(|| {
            let (chunk, length) = Chunk::read(&contents[log.bytes as usize..], usize::MAX)?;
            if chunk.number != log.last + 1 || chunk.previous() != log.identity() {
                return None;
            }
            log.files.apply(chunk.body());
            log.identities.push(chunk.identity());
            log.recent.push_back(chunk);
            if log.recent.len() > recent {
                log.recent.pop_front();
            }
            log.bytes += length as u64;
            log.last += 1;
            Some(())
        });
        chunks.for_each(drop);
        log
    }

    /// Returns the identity of the last chunk; 0 if there is none.
    pub(crate) fn identity(&self) -> u64 {
        self.identities.last().copied().unwrap_or_default()
    }

    /// Returns the number of the last chunk that all backups hold for certain: no place has more
    /// chunks in front of it than it keeps.
    pub(crate) fn held(&self) -> u64 {
        self.last - self.recent.len() as u64
    }

    /// Reads the log of a place, and cuts a torn chunk at its end, which nobody has acknowledged.
    ///
    /// # Errors
    /// The file does not work, or is damaged in front of whole chunks.
    pub(crate) fn recover(verbs: &impl Verbs, recent: usize) -> Result<Self, LogError> {
        let contents = verbs.stable().read()?;
        let log = Self::read(&contents, recent);
        if let Some(whole) = log.whole_behind(&contents) {
            return Err(LogError::Damaged { place: verbs.place(), at: log.bytes, whole });
        }
        if log.bytes < contents.len() as u64 {
            verbs.stable().truncate(log.bytes)?;
        }
        Ok(log)
    }

    /// Returns the first byte of a whole chunk behind the end of this log. The data of a torn chunk
    /// may themselves have a chunk in them; one at the end of the file is no data.
    fn whole_behind(&self, contents: &[u8]) -> Option<u64> {
        let end = self.bytes as usize;
        let is_torn = Chunk::stated_length(&contents[end..])
            .is_some_and(|length| end + length > contents.len());
        let is_whole = |at: &usize| {
            let rest = &contents[*at..];
            Chunk::is_begun(rest)
                && Chunk::read(rest, usize::MAX).is_some_and(|(chunk, length)| {
                    chunk.number > self.last && (!is_torn || length == rest.len())
                })
        };
        (end..contents.len()).find(is_whole).map(|at| at as u64)
    }
}
