// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Growth of the index by one bucket: the pairs of one chain are divided between it and the chain
//! of the new bucket. The division is planned before anything moves, so that a chain which cannot
//! be divided for lack of memory stays as it is.

use crate::bucket::{BUCKET_BYTES, Bucket, SLOTS};
use crate::engine::Engine;
use crate::meter::{Cause, Meter};
use crate::place::{Found, Place};
use crate::table::Table;

/// A pair of the chain, and where it goes.
struct Move {
    from: Place,
    span: usize,
    goes_to_new: bool,
}

impl<M: Meter> Engine<M> {
    /// Adds a bucket. False: a fixed index, or no memory is left.
    pub(crate) fn split_bucket(&mut self) -> bool {
        let table = &self.table;
        let Some(split) = table.index.next_split() else { return false };
        let is_full = table.used_bytes() + BUCKET_BYTES > table.limit_bytes
            || table.index.bytes() + BUCKET_BYTES > table.memory.index_bytes();
        if is_full {
            return false;
        }
        let (old, new) = (split * BUCKET_BYTES, table.index.bytes());
        let mut index = table.index;
        index.grow();
        let moves: Vec<Move> = table
            .chain(old)
            .map(|found| Move {
                from: Place::new(found.bucket, found.slot),
                span: found.span,
                goes_to_new: index.offset(self.hash_of(&found)) == new,
            })
            .collect();
        if !self.table.divide(old, new, &moves) {
            return false;
        }
        self.table.index = index;
        true
    }
}

impl<M: Meter> Table<M> {
    /// All pairs of the chain that begins at a bucket.
    pub(crate) fn chain(&self, head: usize) -> impl Iterator<Item = Found> + '_ {
        self.buckets_of(head).flat_map(move |bucket| {
            self.memory
                .bucket(bucket)
                .pairs()
                .map(move |(slot, _)| self.found_at(Place::new(bucket, slot)))
        })
    }

    /// Offsets of the buckets of a chain.
    pub(crate) fn buckets_of(&self, head: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(head), |&offset| match self.memory.bucket(offset).next() {
            0 => None,
            unit => Some(self.memory.offset_of(unit)),
        })
    }

    /// Makes two chains of one. False: memory for chained buckets is missing, and nothing moved.
    fn divide(&mut self, old: usize, new: usize, moves: &[Move]) -> bool {
        let before: Vec<Bucket> =
            self.buckets_of(old).map(|offset| *self.memory.bucket(offset)).collect();
        let places: Vec<usize> = self.buckets_of(old).collect();
        let bucket_of = |place: Place| {
            let number = places.iter().position(|&offset| offset == place.bucket());
            before[number.expect("pairs lie in buckets of their chain")]
        };
        let mut chains = [vec![Bucket::EMPTY], vec![Bucket::EMPTY]];
        for step in moves {
            let chain = &mut chains[usize::from(step.goes_to_new)];
            let (number, slot) = place_in(chain, step.span);
            let bucket = bucket_of(step.from);
            chain[number].copy_pair(slot, &bucket, step.from.slot(), step.span);
        }
        let Some(mut units) = self.chained_buckets(&before, chains[0].len() + chains[1].len() - 2)
        else {
            return false;
        };
        for (head, mut chain) in [old, new].into_iter().zip(chains) {
            let mut offset = head;
            for number in 0..chain.len() {
                let next = if number + 1 < chain.len() {
                    units.pop().expect("there is a unit for each chained bucket")
                } else {
                    0
                };
                chain[number].set_next(next);
                *self.memory.bucket_mut(offset) = chain[number];
                self.meter.write(if offset == head { Cause::Bucket } else { Cause::Chain });
                offset = self.memory.offset_of(next);
            }
        }
        true
    }

    /// Units for `needed` chained buckets, first those of the chain `before`; surplus ones are
    /// given back.
    fn chained_buckets(&mut self, before: &[Bucket], needed: usize) -> Option<Vec<u32>> {
        let mut units: Vec<u32> =
            before.iter().map(Bucket::next).filter(|&unit| unit != 0).collect();
        let owned = units.len();
        while units.len() < needed {
            match self.allocate_bucket(0) {
                Ok(unit) => units.push(unit),
                Err(_) => {
                    units[owned..].iter().for_each(|&unit| self.free_bucket(unit));
                    return None;
                }
            }
        }
        units.drain(needed..).for_each(|unit| self.free_bucket(unit));
        Some(units)
    }
}

/// The first room in a chain that is not yet linked, which grows as it has to.
fn place_in(chain: &mut Vec<Bucket>, span: usize) -> (usize, usize) {
    debug_assert!(span <= SLOTS, "a pair fits into a bucket");
    let found =
        chain.iter().enumerate().find_map(|(number, bucket)| Some((number, bucket.room(span)?)));
    found.unwrap_or_else(|| {
        chain.push(Bucket::EMPTY);
        (chain.len() - 1, 0)
    })
}
