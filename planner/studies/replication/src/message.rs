// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages between places, and their answers.

use freeport_study_verbs::Way;

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// To the processor: fetch a chunk from the host's memory, and send it.
    Fetch { number: u64, at: u64, bytes: u64, way: Way },
    /// To a backup: a chunk is in a receive slot.
    Arrived { number: u64, at: u64, bytes: u64 },
    /// To a backup: answer when all backups from there on hold a chunk that was sent before.
    Await { number: u64 },
}

/// An answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// All backups from there on hold the chunk, which took this number of bytes to the first.
    Held { bytes: u64 },
    /// The backup does not have the chunk.
    Missing,
    /// The chunk was damaged, or there is no room for it yet: send it again.
    Again,
}

const KIND_BYTES: usize = 32;

impl Message {
    pub(crate) fn encode(self) -> Vec<u8> {
        let words = match self {
            Self::Fetch { number, at, bytes, way: Way::Nic } => [1, number, at, bytes],
            Self::Fetch { number, at, bytes, way: Way::Dma } => [2, number, at, bytes],
            Self::Arrived { number, at, bytes } => [3, number, at, bytes],
            Self::Await { number } => [4, number, 0, 0],
        };
        words.map(u64::to_le_bytes).concat()
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        let message: &[u8; KIND_BYTES] = message.try_into().ok()?;
        let word = |index: usize| {
            let word = message[8 * index..8 * index + 8].try_into().expect("8 bytes of 32");
            u64::from_le_bytes(word)
        };
        let (number, at, bytes) = (word(1), word(2), word(3));
        match word(0) {
            1 => Some(Self::Fetch { number, at, bytes, way: Way::Nic }),
            2 => Some(Self::Fetch { number, at, bytes, way: Way::Dma }),
            3 => Some(Self::Arrived { number, at, bytes }),
            4 => Some(Self::Await { number }),
            _ => None,
        }
    }
}

impl Answer {
    pub(crate) fn encode(self) -> Vec<u8> {
        let words = match self {
            Self::Held { bytes } => [1, bytes],
            Self::Missing => [2, 0],
            Self::Again => [3, 0],
        };
        words.map(u64::to_le_bytes).concat()
    }

    /// Reads an answer. One that is not an answer asks for another try.
    pub(crate) fn decode(answer: &[u8]) -> Self {
        let word = |at: usize| {
            let word: [u8; 8] = answer.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_le_bytes(word))
        };
        match (word(0), word(8)) {
            (Some(1), Some(bytes)) => Self::Held { bytes },
            (Some(2), Some(_)) => Self::Missing,
            _ => Self::Again,
        }
    }
}
