// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests that are made before the measurement, one behind the other, so that a batch is sent
//! without being copied; and what each reply has to be.

use super::super::draws::Spread;
use super::wire::{Shape, Wire};
use anyhow::{Result, ensure};
use freeport_kv_study::workload::{Keys, Mix, Operation, Operations, Ranks, Sizes, Values};
use std::ops::Range;

/// The operations of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Workload {
    /// Half reads, half updates
    A,
    /// 5 % updates
    B,
    /// Reads only
    C,
    /// Half reads, half reads that an update of the same key follows
    F,
}

impl Workload {
    /// Letter in results.
    pub fn letter(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
            Self::F => "f",
        }
    }

    fn mix(self) -> Mix {
        match self {
            Self::A => Mix::A,
            Self::B => Mix::B,
            Self::C => Mix::C,
            Self::F => Mix::F,
        }
    }
}

/// The contents of a server: pairs of the ranks below `pairs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Protocol by which they are stored and read.
    pub wire: Wire,
    /// Bytes per key.
    pub key_bytes: usize,
    /// Bytes per value.
    pub value_bytes: usize,
    /// Number of pairs.
    pub pairs: u64,
}

impl Contents {
    fn keys(&self) -> Keys {
        // Keys of memcached's protocols are text.
        Keys::Decimal(self.key_bytes)
    }

    fn values(&self) -> Values {
        Values::new(Sizes::fixed(self.value_bytes))
    }

    /// Checks that there is a key for each pair, and that the protocol takes it.
    ///
    /// # Errors
    /// Keys are too short or too long.
    pub fn check(&self) -> Result<()> {
        let Self { wire, key_bytes, pairs, .. } = *self;
        ensure!(
            pairs <= self.keys().ranks(),
            "keys of {key_bytes} digits are too short for {pairs} pairs"
        );
        ensure!(
            key_bytes <= wire.key_bytes_max(),
            "keys of this protocol have at most {} bytes",
            wire.key_bytes_max()
        );
        Ok(())
    }
}

/// Different values that an update may store. A read may return any of them, since other
/// connections store values at the same time.
const VERSIONS: u32 = 2;
/// Requests and bytes of a script at most. Their keys exceed the caches, if all records do.
const REQUESTS_MAX: u64 = 1 << 20;
const REQUESTS_PER_PAIR: u64 = 8;
const BYTES_MAX: usize = 96 << 20;
const SEED: u64 = 20;

/// A request: where it ends, and what it does.
#[derive(Clone, Copy)]
struct Entry {
    end: u32,
    /// Records have less than 31 bits.
    rank: u32,
    is_write: bool,
}

/// Requests in order.
pub struct Script {
    contents: Contents,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    of_values: Shape,
    of_stored: Shape,
}

impl Script {
    fn new(contents: Contents) -> Self {
        let Contents { wire, key_bytes, value_bytes, .. } = contents;
        Self {
            contents,
            bytes: vec![],
            entries: vec![],
            of_values: Shape::of_values(wire, key_bytes, value_bytes),
            of_stored: Shape::of_stored(wire),
        }
    }

    /// Stores the records with these ranks.
    pub fn fill(contents: Contents, ranks: Range<u64>) -> Self {
        let mut own = Self::new(contents);
        let mut maker = Maker::new(contents);
        ranks.for_each(|rank| maker.write(rank, 0, &mut own));
        own
    }

    /// The operations of a workload on records that are stored.
    pub fn mixed(contents: Contents, workload: Workload, spread: Spread) -> Self {
        let mut own = Self::new(contents);
        let mut maker = Maker::new(contents);
        let ranks = Ranks::new(spread.distribution(), contents.pairs, SEED);
        let most = REQUESTS_MAX.min(contents.pairs.saturating_mul(REQUESTS_PER_PAIR)) as usize;
        let mut version = 0;
        for operation in Operations::with_shares(workload.mix().shares(), ranks, SEED) {
            // A read-modify-write is two requests.
            if own.len() + 2 > most || own.bytes.len() > BYTES_MAX {
                break;
            }
            match operation {
                Operation::Read(rank) => maker.read(rank, &mut own),
                Operation::Update(rank) => maker.write(rank, version, &mut own),
                Operation::ReadModifyWrite(rank) => {
                    maker.read(rank, &mut own);
                    maker.write(rank, version, &mut own);
                }
                // The workloads have none.
                Operation::Insert(_) | Operation::Scan(..) => {}
            }
            version = (version + 1) % VERSIONS;
        }
        own
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The bytes of consecutive requests.
    pub fn requests(&self, range: &Range<usize>) -> &[u8] {
        let start = range.start.checked_sub(1).map_or(0, |before| self.entries[before].end);
        let end = range.end.checked_sub(1).map_or(0, |last| self.entries[last].end);
        &self.bytes[start as usize..end as usize]
    }

    /// Bytes of the replies to consecutive requests.
    pub fn reply_bytes(&self, range: &Range<usize>) -> usize {
        self.entries[range.clone()].iter().map(|entry| self.shape(*entry).bytes()).sum()
    }

    #[inline]
    fn shape(&self, entry: Entry) -> &Shape {
        if entry.is_write { &self.of_stored } else { &self.of_values }
    }

    /// Returns the length of the reply to request `at` that `received` begins with; none if it is
    /// incomplete.
    ///
    /// # Errors
    /// It begins with something else.
    #[inline]
    pub fn reply(&self, at: usize, received: &[u8]) -> Result<Option<usize>> {
        let shape = self.shape(self.entries[at]);
        Ok(shape.is_complete(received)?.then_some(shape.bytes()))
    }

    /// Compares every byte of a complete reply to request `at`.
    ///
    /// # Errors
    /// It has another key, or a value that was never stored under it.
    pub fn compare(&self, at: usize, reply: &[u8]) -> Result<()> {
        let entry = self.entries[at];
        if entry.is_write {
            // Its shape is all of it.
            return Ok(());
        }
        let Contents { wire, .. } = self.contents;
        let (rank, values) = (u64::from(entry.rank), self.contents.values());
        let key = self.contents.keys().key(rank);
        let is_of = |version: u32| {
            let mut expected = vec![];
            wire.value(&key, &values.value(rank, version), &mut expected);
            expected == reply
        };
        let key = String::from_utf8_lossy(&key);
        ensure!((0..VERSIONS).any(is_of), "a wrong value of the key {key}");
        Ok(())
    }
}

/// Makes requests, with places for a key and a value.
struct Maker {
    wire: Wire,
    keys: Keys,
    values: Values,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Maker {
    fn new(contents: Contents) -> Self {
        let (keys, values) = (contents.keys(), contents.values());
        Self { wire: contents.wire, keys, values, key: vec![], value: vec![] }
    }

    fn read(&mut self, rank: u64, script: &mut Script) {
        self.keys.write(rank, &mut self.key);
        self.wire.read(&self.key, &mut script.bytes);
        script.entries.push(Entry {
            end: script.bytes.len() as u32,
            rank: rank as u32,
            is_write: false,
        });
    }

    fn write(&mut self, rank: u64, version: u32, script: &mut Script) {
        self.keys.write(rank, &mut self.key);
        self.values.write(rank, version, &mut self.value);
        self.wire.write(&self.key, &self.value, &mut script.bytes);
        script.entries.push(Entry {
            end: script.bytes.len() as u32,
            rank: rank as u32,
            is_write: true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENTS: Contents =
        Contents { wire: Wire::Text, key_bytes: 8, value_bytes: 20, pairs: 1_000 };

    #[test]
    fn consecutive_requests_are_consecutive_bytes() {
        let script = Script::fill(CONTENTS, 3..6);
        let text = |range| script.requests(&range).to_vec();
        assert!(text(0..1).starts_with(b"set 00000003 0 0 20\r\n"));
        assert_eq!([text(0..1), text(1..3)].concat(), text(0..3));
        assert_eq!((script.len(), text(1..1).len()), (3, 0));
        assert_eq!(script.reply_bytes(&(0..3)), 3 * b"STORED\r\n".len());
    }

    #[test]
    fn workloads_have_their_kinds_and_end_in_whole_operations() {
        for (workload, share) in
            [(Workload::A, 0.5), (Workload::B, 0.05), (Workload::C, 0.0), (Workload::F, 1.0 / 3.0)]
        {
            let script = Script::mixed(CONTENTS, workload, Spread::Zipf);
            let writes = script.entries.iter().filter(|entry| entry.is_write).count();
            let found = writes as f64 / script.len() as f64;
            assert!((found - share).abs() < 0.03, "{workload:?}: {found}");
            assert!([7_999, 8_000].contains(&script.len()), "{}", script.len());
        }
    }

    #[test]
    fn every_byte_of_a_reply_is_compared() {
        let script = Script::mixed(CONTENTS, Workload::C, Spread::Uniform);
        let rank = u64::from(script.entries[7].rank);
        let key = CONTENTS.keys().key(rank);
        for version in 0..VERSIONS {
            let mut reply = vec![];
            Wire::Text.value(&key, &CONTENTS.values().value(rank, version), &mut reply);
            assert_eq!(script.reply(7, &reply).expect("it has its shape"), Some(reply.len()));
            script.compare(7, &reply).expect("it was stored");
            for at in [8, 30] {
                let mut wrong = reply.clone();
                wrong[at] ^= 1;
                assert_eq!(script.reply(7, &wrong).expect("its shape is right"), Some(wrong.len()));
                assert!(script.compare(7, &wrong).is_err());
            }
        }
    }

    #[test]
    fn keys_that_do_not_fit_are_refused() {
        assert!(CONTENTS.check().is_ok());
        assert!(Contents { key_bytes: 2, ..CONTENTS }.check().is_err());
        assert!(Contents { key_bytes: 251, ..CONTENTS }.check().is_err());
        assert!(Contents { key_bytes: 251, wire: Wire::Resp, ..CONTENTS }.check().is_ok());
    }
}
