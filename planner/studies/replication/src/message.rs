// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages between places, and their answers.

use crate::log::Refusal;
use freeport_study_verbs::{Place, Way};

/// A message. `held` is the number of a chunk that the sender knows all backups to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    /// To the processor: fetch a chunk from the host's memory, and send it.
    Fetch { number: u64, at: u64, bytes: u64, held: u64, way: Way },
    /// To a backup: a chunk is in a receive slot.
    Arrived { number: u64, at: u64, bytes: u64, held: u64 },
    /// To a backup: answer when all backups from there on hold a chunk that was sent before.
    Await { number: u64, identity: u64, held: u64 },
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
    /// A backup refuses the log: sending again does not help.
    Refused(Refusal),
}

const MESSAGE_BYTES: usize = 40;
const ANSWER_BYTES: usize = 32;

impl Message {
    pub(crate) fn encode(self) -> Vec<u8> {
        let words = match self {
            Self::Fetch { number, at, bytes, held, way: Way::Nic } => [1, number, at, bytes, held],
            Self::Fetch { number, at, bytes, held, way: Way::Dma } => [2, number, at, bytes, held],
            Self::Arrived { number, at, bytes, held } => [3, number, at, bytes, held],
            Self::Await { number, identity, held } => [4, number, identity, 0, held],
        };
        words.map(u64::to_le_bytes).concat()
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        let message: &[u8; MESSAGE_BYTES] = message.try_into().ok()?;
        let [kind, number, at, bytes, held] = words(message);
        match kind {
            1 => Some(Self::Fetch { number, at, bytes, held, way: Way::Nic }),
            2 => Some(Self::Fetch { number, at, bytes, held, way: Way::Dma }),
            3 => Some(Self::Arrived { number, at, bytes, held }),
            4 => Some(Self::Await { number, identity: at, held }),
            _ => None,
        }
    }
}

impl Answer {
    pub(crate) fn encode(self) -> Vec<u8> {
        let words = match self {
            Self::Held { bytes } => [1, bytes, 0, 0],
            Self::Missing => [2, 0, 0, 0],
            Self::Again => [3, 0, 0, 0],
            Self::Refused(Refusal::Differs { place, number }) => [4, peer(place), number, 0],
            Self::Refused(Refusal::Lost { place, last, held }) => [5, peer(place), last, held],
        };
        words.map(u64::to_le_bytes).concat()
    }

    /// Reads an answer. One that is not an answer asks for another try.
    pub(crate) fn decode(answer: &[u8]) -> Self {
        let Ok(answer) = <&[u8; ANSWER_BYTES]>::try_from(answer) else { return Self::Again };
        let [kind, one, two, three] = words(answer);
        let place = Place::Peer(one as u16);
        match kind {
            1 => Self::Held { bytes: one },
            2 => Self::Missing,
            4 => Self::Refused(Refusal::Differs { place, number: two }),
            5 => Self::Refused(Refusal::Lost { place, last: two, held: three }),
            _ => Self::Again,
        }
    }
}

/// Returns the number of a backup.
fn peer(place: Place) -> u64 {
    match place {
        Place::Peer(number) => number.into(),
        _ => unreachable!("{place} is no backup"),
    }
}

fn words<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let word = |index: usize| bytes[8 * index..8 * index + 8].try_into().expect("8 bytes");
    std::array::from_fn(|index| u64::from_le_bytes(word(index)))
}
