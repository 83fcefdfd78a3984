// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests that are made before the measurement, one behind the other, so that a batch is sent
//! without being copied; and what each reply has to be.

use super::contents::{Contents, Form, Workload};
use super::packets::{self, Packer};
use super::wire::{Kind, Shape, Wire};
use crate::kv::draws::Spread;
use anyhow::{Result, bail, ensure};
use freeport_kv_study::workload::{Keys, Operation, Operations, Ranks};
use std::ops::Range;

/// The choice of operations, records and packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recipe {
    pub workload: Workload,
    pub spread: Spread,
    /// Operations in a packet at most, where there are packets.
    pub pipeline: usize,
    /// Seed of all draws.
    pub seed: u64,
}

/// Different values that an update may store. A read may return any of them, since other
/// connections store values at the same time.
const VERSIONS: u32 = 2;
/// Requests and bytes of a script at most. Their keys exceed the caches, if all records do.
const REQUESTS_MAX: u64 = 1 << 20;
const REQUESTS_PER_PAIR: u64 = 8;
const BYTES_MAX: usize = 96 << 20;
/// One of this number of replies is compared in every byte; begin, length and end of all are.
const COMPARED: usize = 64;

/// A request: where it ends, and what it does.
#[derive(Clone, Copy)]
struct Entry {
    end: u32,
    /// Records have less than 31 bits.
    rank: u32,
    kind: Kind,
}

/// Requests in order.
pub struct Script {
    contents: Contents,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    expected: Expected,
}

/// The form that replies must have.
enum Expected {
    /// For each kind of request, the shape of its reply.
    Single(Wire, [Shape; 3]),
    /// Packets of this number of operations.
    Packets(usize),
}

/// Replies that were received completely and are right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Replies {
    pub bytes: usize,
    pub count: usize,
    /// Bytes of the next packet, if they are known.
    pub next_bytes: usize,
}

impl Script {
    fn new(contents: Contents, pipeline: usize) -> Self {
        let Contents { form, key_bytes, value_bytes, .. } = contents;
        let expected = match form {
            Form::Single(wire) => Expected::Single(
                wire,
                Kind::ALL.map(|kind| Shape::new(wire, kind, key_bytes, value_bytes)),
            ),
            Form::Packets { .. } => Expected::Packets(contents.packet(pipeline).unwrap_or(1)),
        };
        Self { contents, bytes: vec![], entries: vec![], expected }
    }

    /// Stores the records with these ranks. Packets have `pipeline` operations at most.
    pub fn fill(contents: Contents, ranks: Range<u64>, pipeline: usize) -> Self {
        let mut maker = Maker::new(contents, pipeline);
        ranks.for_each(|rank| maker.request(Kind::Write, rank, 0));
        maker.finish()
    }

    /// The operations of a workload on records that are stored.
    pub fn mixed(contents: Contents, recipe: &Recipe) -> Self {
        let Recipe { workload, spread, seed, .. } = *recipe;
        let mut maker = Maker::new(contents, recipe.pipeline);
        let ranks = Ranks::new(spread.distribution(), contents.pairs, seed);
        let most = REQUESTS_MAX.min(contents.pairs.saturating_mul(REQUESTS_PER_PAIR)) as usize;
        let update = if workload.is_of_counters() { Kind::Add } else { Kind::Write };
        let mut version = 0;
        for operation in Operations::with_shares(workload.shares(), ranks, seed) {
            // A read-modify-write is two requests.
            if maker.script.len() + 2 > most || maker.script.bytes.len() > BYTES_MAX {
                break;
            }
            match operation {
                Operation::Read(rank) => maker.request(Kind::Read, rank, version),
                Operation::Update(rank) => maker.request(update, rank, version),
                Operation::ReadModifyWrite(rank) => {
                    maker.request(Kind::Read, rank, version);
                    maker.request(update, rank, version);
                }
                // The workloads have none.
                Operation::Insert(_) | Operation::Scan(..) => {}
            }
            version = (version + 1) % VERSIONS;
        }
        maker.finish()
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Operations in a packet, where there are packets. Each batch is one of them.
    pub fn packet(&self) -> Option<usize> {
        match self.expected {
            Expected::Single(..) => None,
            Expected::Packets(operations) => Some(operations),
        }
    }

    /// The bytes of consecutive requests.
    pub fn requests(&self, range: &Range<usize>) -> &[u8] {
        let start = range.start.checked_sub(1).map_or(0, |before| self.entries[before].end);
        let end = range.end.checked_sub(1).map_or(0, |last| self.entries[last].end);
        &self.bytes[start as usize..end as usize]
    }

    /// Bytes of the replies to consecutive requests; at most, where there are packets.
    pub fn reply_bytes(&self, range: &Range<usize>) -> usize {
        match &self.expected {
            Expected::Single(_, shapes) => {
                let entries = self.entries[range.clone()].iter();
                entries.map(|entry| shapes[entry.kind as usize].bytes()).sum()
            }
            Expected::Packets(_) => packets::reply_bytes(range.len(), self.contents.value_bytes),
        }
    }

    /// Checks the replies to the requests `open` that `received` begins with, as far as they are
    /// complete. With `compares`, values are compared with those that were stored.
    ///
    /// # Errors
    /// A reply is not what it has to be.
    pub fn replies(&self, open: &Range<usize>, received: &[u8], compares: bool) -> Result<Replies> {
        let is_compared = |at: usize| compares && at.is_multiple_of(COMPARED);
        match &self.expected {
            Expected::Single(wire, shapes) => {
                let mut replies = Replies::default();
                for at in open.clone() {
                    let rest = &received[replies.bytes..];
                    let shape = &shapes[self.entries[at].kind as usize];
                    if !shape.is_complete(rest)? {
                        break;
                    }
                    if is_compared(at) {
                        self.compare(*wire, at, &rest[..shape.bytes()])?;
                    }
                    replies.bytes += shape.bytes();
                    replies.count += 1;
                }
                Ok(replies)
            }
            Expected::Packets(operations) => {
                let packet = Self::open(open, *operations);
                packets::replies(&packet, received, |number, value| {
                    let at = open.start + number;
                    self.check(at, value, is_compared(at))
                })
            }
        }
    }

    /// Returns whether a datagram has the next of the missing replies `open`, not others that are
    /// late.
    pub fn is_awaited(&self, open: &Range<usize>, datagram: &[u8]) -> bool {
        match self.expected {
            Expected::Single(..) => true,
            Expected::Packets(operations) => {
                !open.is_empty() && packets::is_next(&Self::open(open, operations), datagram)
            }
        }
    }

    /// The packet of requests without a reply.
    fn open(open: &Range<usize>, operations: usize) -> packets::Open {
        packets::Open {
            number: packets::number(open.start / operations),
            first: open.start % operations,
            count: open.len(),
        }
    }

    /// Compares every byte of a complete reply to request `at`.
    fn compare(&self, wire: Wire, at: usize, reply: &[u8]) -> Result<()> {
        let entry = self.entries[at];
        let key = self.contents.keys().key(entry.rank.into());
        let is_right = match entry.kind {
            Kind::Read => self.versions(entry).any(|value| {
                let mut expected = vec![];
                wire.value(&key, &value, &mut expected);
                expected == reply
            }),
            // Its shape is all of it.
            Kind::Write => true,
            Kind::Add => {
                let end = reply.len() - b"\r\n".len();
                let sum = &reply[end - self.contents.value_bytes..end];
                sum.iter().all(u8::is_ascii_digit) && sum[0] == b'1'
            }
        };
        ensure!(is_right, "a wrong value of the key {}", String::from_utf8_lossy(&key));
        Ok(())
    }

    /// Checks what operation `at` of a packet has returned.
    #[inline]
    fn check(&self, at: usize, value: Option<&[u8]>, is_compared: bool) -> Result<()> {
        let entry = self.entries[at];
        let length = value.map(<[u8]>::len);
        let expected = (entry.kind != Kind::Write).then_some(self.contents.value_bytes);
        if length != expected {
            bail!("an unexpected reply: a value of {length:?} bytes, not {expected:?}");
        }
        if is_compared && entry.kind == Kind::Read {
            let mut versions = self.versions(entry);
            let key = self.contents.keys().key(entry.rank.into());
            let key = String::from_utf8_lossy(&key);
            let is_right = versions.any(|version| value == Some(&version));
            ensure!(is_right, "a wrong value of the key {key}");
        }
        Ok(())
    }

    /// The values that a record may have.
    fn versions(&self, entry: Entry) -> impl Iterator<Item = Vec<u8>> {
        let contents = self.contents;
        (0..VERSIONS).map(move |version| {
            let mut value = vec![];
            contents.write_value(entry.rank.into(), version, &mut value);
            value
        })
    }
}

/// Makes requests, with places for a key and a value.
struct Maker {
    script: Script,
    keys: Keys,
    way: Way,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// How requests are written.
enum Way {
    Single(Wire),
    Packed(Packer),
}

impl Maker {
    fn new(contents: Contents, pipeline: usize) -> Self {
        let script = Script::new(contents, pipeline);
        let way = match script.expected {
            Expected::Single(wire, _) => Way::Single(wire),
            Expected::Packets(operations) => Way::Packed(Packer::new(operations)),
        };
        Self { script, keys: contents.keys(), way, key: vec![], value: vec![] }
    }

    fn request(&mut self, kind: Kind, rank: u64, version: u32) {
        let Self { script, key, value, .. } = self;
        self.keys.write(rank, key);
        if kind == Kind::Write {
            script.contents.write_value(rank, version, value);
        }
        let bytes = &mut script.bytes;
        match &mut self.way {
            Way::Single(wire) => match kind {
                Kind::Read => wire.read(key, bytes),
                Kind::Write => wire.write(key, value, bytes),
                Kind::Add => wire.add(key, bytes),
            },
            Way::Packed(packer) => packer.push(kind, key, value, bytes),
        }
        script.entries.push(Entry { end: script.bytes.len() as u32, rank: rank as u32, kind });
    }

    fn finish(mut self) -> Script {
        if let Way::Packed(packer) = &mut self.way {
            packer.finish(&mut self.script.bytes);
        }
        self.script
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENTS: Contents = Contents {
        form: Form::Single(Wire::Text),
        key_bytes: 8,
        value_bytes: 20,
        pairs: 1_000,
        are_counters: false,
    };

    fn recipe(workload: Workload, spread: Spread) -> Recipe {
        Recipe { workload, spread, pipeline: 16, seed: 20 }
    }

    #[test]
    fn consecutive_requests_are_consecutive_bytes() {
        for form in [Form::Single(Wire::Text), Form::STREAM] {
            let script = Script::fill(Contents { form, ..CONTENTS }, 3..6, 1);
            let text = |range| script.requests(&range).to_vec();
            let is_packed = form == Form::STREAM;
            assert!(text(0..1).starts_with(if is_packed { b"KV" } else { b"set 00000003 0 0 20" }));
            assert_eq!([text(0..1), text(1..3)].concat(), text(0..3));
            assert_eq!((script.len(), text(1..1).len()), (3, 0));
        }
        let script = Script::fill(CONTENTS, 3..6, 1);
        assert_eq!(script.reply_bytes(&(0..3)), 3 * b"STORED\r\n".len());
    }

    #[test]
    fn workloads_have_their_kinds_and_end_in_whole_operations() {
        for (workload, share) in [
            (Workload::A, 0.5),
            (Workload::B, 0.05),
            (Workload::C, 0.0),
            (Workload::F, 1.0 / 3.0),
            (Workload::Put, 1.0),
            (Workload::FetchAdd, 0.0),
        ] {
            let script = Script::mixed(CONTENTS, &recipe(workload, Spread::Zipf));
            let of = |kind| script.entries.iter().filter(|entry| entry.kind == kind).count();
            let found = of(Kind::Write) as f64 / script.len() as f64;
            assert!((found - share).abs() < 0.03, "{workload:?}: {found}");
            assert_eq!(of(Kind::Add) > 0, workload == Workload::FetchAdd, "{workload:?}");
            assert!([7_999, 8_000].contains(&script.len()), "{}", script.len());
        }
    }

    #[test]
    fn every_byte_of_a_reply_is_compared() {
        let script = Script::mixed(CONTENTS, &recipe(Workload::C, Spread::Uniform));
        let at = 64;
        let rank = script.entries[at].rank.into();
        let (key, mut value) = (CONTENTS.keys().key(rank), vec![]);
        let found = |reply: &[u8]| script.replies(&(at..at + 1), reply, true);
        for version in 0..VERSIONS {
            let mut reply = vec![];
            CONTENTS.write_value(rank, version, &mut value);
            Wire::Text.value(&key, &value, &mut reply);
            let right = Replies { bytes: reply.len(), count: 1, next_bytes: 0 };
            assert_eq!(found(&reply).expect("it was stored"), right);
            assert!(found(&reply[1..]).is_err());
            assert_eq!(found(&reply[..20]).expect("its begin"), Replies::default());
            for at in [8, 30] {
                let mut wrong = reply.clone();
                wrong[at] ^= 1;
                assert!(found(&wrong).is_err());
            }
        }
    }

    #[test]
    fn sums_are_numbers_of_as_many_digits() {
        let contents = CONTENTS.of_counters();
        let script = Script::mixed(contents, &recipe(Workload::FetchAdd, Spread::Uniform));
        let found = |reply: &str| script.replies(&(0..1), reply.as_bytes(), true);
        assert_eq!(found("100000000000000017\r\n").expect("a sum").count, 1);
        assert_eq!(found("1000000000").expect("its begin").count, 0);
        for wrong in ["17\r\n                ", "10000000000000001x\r\n", "NOT_FOUND\r\n          "]
        {
            assert!(found(wrong).is_err(), "{wrong:?}");
        }
    }
}
