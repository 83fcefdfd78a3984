// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of clients to the processor, and its replies.

use crate::entry::{Entry, Slot};
use crate::layout::ENTRY_BYTES;

/// A message of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Get by A2: index and item are in the host's memory.
    GetFromHost(Vec<u8>),
    /// Get by A3: the item is in the host's memory.
    GetByIndex(Vec<u8>),
    /// Get by A5: the item may be cached.
    GetCached {
        /// The key.
        key: Vec<u8>,
        /// Whether the reply shall have the addresses of cached copies.
        wants_copies: bool,
    },
    /// Put of a key and its value.
    Put(Vec<u8>, Vec<u8>),
    /// Delete of a key.
    Delete(Vec<u8>),
}

/// Cached copies of an item in the processor's memory.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Copies {
    /// Length of the item in bytes.
    pub bytes: u64,
    /// First byte of each copy.
    pub at: Vec<u64>,
}

/// The reply to a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// There is no such key.
    None,
    /// The value, and where its cached copies are, if that was asked.
    Value(Vec<u8>, Copies),
    /// Entries of which one may be the key's. The items are in the host's memory.
    Entries(Vec<Entry>),
    /// It is done.
    Done,
    /// The item changed all the time.
    Changing,
    /// There is no room, with the limit.
    Full(String),
    /// A place does not work, or the message is wrong.
    Failed,
}

impl Request {
    /// Returns the message.
    pub fn encode(&self) -> Vec<u8> {
        let nothing = Vec::new();
        let (kind, key, value) = match self {
            Self::GetFromHost(key) => (1, key, &nothing),
            Self::GetByIndex(key) => (2, key, &nothing),
            Self::GetCached { key, wants_copies: false } => (3, key, &nothing),
            Self::GetCached { key, wants_copies: true } => (4, key, &nothing),
            Self::Put(key, value) => (5, key, value),
            Self::Delete(key) => (6, key, &nothing),
        };
        [&[kind, key.len() as u8], key.as_slice(), value].concat()
    }

    /// Reads a message, if it is one.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let ([kind, key_bytes], rest) = message.split_first_chunk()?;
        let (key, value) = rest.split_at_checked((*key_bytes).into())?;
        let key = key.to_vec();
        if key.is_empty() || (*kind != 5 && !value.is_empty()) {
            return None;
        }
        match kind {
            1 => Some(Self::GetFromHost(key)),
            2 => Some(Self::GetByIndex(key)),
            3 | 4 => Some(Self::GetCached { key, wants_copies: *kind == 4 }),
            5 => Some(Self::Put(key, value.to_vec())),
            6 => Some(Self::Delete(key)),
            _ => None,
        }
    }
}

impl Reply {
    /// Returns the message.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::None => vec![0],
            Self::Value(value, copies) => {
                let mut reply = vec![1, copies.at.len() as u8];
                reply.extend((copies.bytes as u32).to_le_bytes());
                copies.at.iter().for_each(|at| reply.extend(at.to_le_bytes()));
                reply.extend(value);
                reply
            }
            Self::Entries(entries) => {
                let encoded = entries.iter().map(|entry| Slot::encode(Some(entry), entry.version));
                [2].into_iter().chain(encoded.flatten()).collect()
            }
            Self::Done => vec![3],
            Self::Changing => vec![4],
            Self::Full(limit) => [&[5], limit.as_bytes()].concat(),
            Self::Failed => vec![6],
        }
    }

    /// Reads a reply, if it is one.
    pub fn decode(reply: &[u8]) -> Option<Self> {
        let (kind, rest) = reply.split_first()?;
        match (kind, rest) {
            (0, []) => Some(Self::None),
            (1, [count, rest @ ..]) => {
                let (bytes, rest) = rest.split_first_chunk()?;
                let (copies, value) = rest.split_at_checked(usize::from(*count) * 8)?;
                let at = copies.as_chunks().0.iter().map(|at| u64::from_le_bytes(*at));
                let bytes = u32::from_le_bytes(*bytes).into();
                Some(Self::Value(value.to_vec(), Copies { bytes, at: at.collect() }))
            }
            (2, entries) if entries.len().is_multiple_of(ENTRY_BYTES as usize) => {
                let live = |slot| if let Slot::Live(entry) = slot { Some(entry) } else { None };
                Slot::of_bucket(entries).map(live).collect::<Option<_>>().map(Self::Entries)
            }
            (3, []) => Some(Self::Done),
            (4, []) => Some(Self::Changing),
            (5, limit) => Some(Self::Full(String::from_utf8_lossy(limit).into())),
            (6, []) => Some(Self::Failed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_written() {
        let key = || b"key".to_vec();
        let requests = [
            Request::GetFromHost(key()),
            Request::GetByIndex(key()),
            Request::GetCached { key: key(), wants_copies: false },
            Request::GetCached { key: key(), wants_copies: true },
            Request::Put(key(), b"value".to_vec()),
            Request::Put(vec![1; 255], vec![]),
            Request::Delete(key()),
        ];
        for request in requests {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        let entry = Entry { fingerprint: 3, version: 4, at: 640, bytes: 64 };
        let replies = [
            Reply::None,
            Reply::Value(vec![], Copies::default()),
            Reply::Value(b"value".to_vec(), Copies { bytes: 24, at: vec![8, 1 << 40] }),
            Reply::Entries(vec![entry; 2]),
            Reply::Done,
            Reply::Changing,
            Reply::Full("item_memory".into()),
            Reply::Failed,
        ];
        for reply in replies {
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
    }

    #[test]
    fn no_bytes_panic() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let length = random.usize(..40);
            let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            if let Some(first) = bytes.first_mut() {
                *first %= 8;
            }
            let _ = (Request::decode(&bytes), Reply::decode(&bytes));
        }
    }
}
