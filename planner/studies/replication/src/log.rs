// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The log in a place's file, as a place finds it when it begins.

use crate::chunk::Chunk;
use crate::files::Files;
use freeport_study_verbs::{Fault, Stable};
use std::collections::VecDeque;

/// A log that was read from a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Log {
    /// Number of the last whole chunk; 0 if there is none.
    pub last: u64,
    /// The last chunks, as many as were asked for.
    pub recent: VecDeque<Chunk>,
    /// The files.
    pub files: Files,
    /// Length of all whole chunks in bytes.
    pub bytes: u64,
}

impl Log {
    /// Reads all whole chunks in their order, up to a torn one.
    pub fn read(contents: &[u8], recent: usize) -> Self {
        let mut log = Self::default();
        let chunks = std::iter::from_fn(|| {
            let (chunk, length) = Chunk::read(&contents[log.bytes as usize..], usize::MAX)?;
            if chunk.number != log.last + 1 {
                return None;
            }
            log.files.apply(chunk.body());
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

    /// Reads the log of a place, and cuts a torn chunk at its end, which nobody has acknowledged.
    ///
    /// # Errors
    /// The file does not work.
    pub(crate) fn recover(stable: &impl Stable, recent: usize) -> Result<Self, Fault> {
        let contents = stable.read()?;
        let log = Self::read(&contents, recent);
        if log.bytes < contents.len() as u64 {
            stable.truncate(log.bytes)?;
        }
        Ok(log)
    }
}
