// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches: many operations, one after the other in their order, while the memory that later ones
//! need is fetched (KV-Direct, batching).
//!
//! Each operation passes three stages, and several operations lie between one stage and the next:
//!
//! 1. *Admit*: its key is hashed, and its bucket prefetched. The reservation station notes
//!    whether an earlier operation of the batch has the same key.
//! 2. *Scout*: if the bucket points to a block that may have the key, or to a chained bucket, that
//!    is prefetched. A table without blocks and chains skips this stage.
//! 3. *Execute*: in the order of the batch, so results are those of one operation at a time.
//!
//! An operation whose key an earlier one of the batch has takes the place that the earlier one
//! left in the station, without a search.

use crate::bucket::{BUCKET_BYTES, Bucket};
use crate::engine::{Engine, Stored, Value, ValueMut};
use crate::hash::Hash;
use crate::meter::Meter;
use crate::options::OutOfMemory;
use crate::search::{Compare, Portable};
use crate::station::Station;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The value of a key.
    Get(&'a [u8]),
    /// Stores a plain value under a key.
    Put(&'a [u8], &'a [u8]),
    /// Removes a key.
    Delete(&'a [u8]),
    /// Changes the value of a key in place, by [`Replies::update`].
    Update(&'a [u8]),
}

impl<'a> Request<'a> {
    /// The key.
    #[inline(always)]
    pub fn key(&self) -> &'a [u8] {
        match *self {
            Self::Get(key) | Self::Put(key, _) | Self::Delete(key) | Self::Update(key) => key,
        }
    }
}

/// Takes the results of a batch, in the order of its requests. `number` is that of the request.
pub trait Replies {
    /// Result of a get; none: no such key.
    fn get(&mut self, number: usize, value: Option<Value<'_>>);
    /// Result of a put.
    fn put(&mut self, number: usize, stored: Result<Stored, OutOfMemory>);
    /// Result of a delete: whether the key had a value.
    fn delete(&mut self, number: usize, is_deleted: bool);
    /// The value to be changed; none: no such key.
    fn update(&mut self, number: usize, value: Option<ValueMut<'_>>);
}

/// Operations between two stages.
const DISTANCE: usize = 12;
/// Operations between the first stage and the last.
const IN_FLIGHT: usize = 2 * DISTANCE;

/// Bytes of a block that are fetched before its operation.
const SCOUTED_BYTES: usize = 1280;

impl<M: Meter> Engine<M> {
    /// Executes requests in their order.
    pub fn run<R: Replies>(&mut self, requests: &[Request<'_>], replies: &mut R) {
        #[cfg(target_arch = "x86_64")]
        if crate::search::Vbmi::is_available() {
            // SAFETY: the processor has the instructions.
            return unsafe { self.run_by_permutations(requests, replies) };
        }
        self.run_as::<Portable, R>(requests, replies);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
    fn run_by_permutations<R: Replies>(&mut self, requests: &[Request<'_>], replies: &mut R) {
        self.run_as::<crate::search::Vbmi, R>(requests, replies);
    }

    #[inline(always)]
    fn run_as<C: Compare, R: Replies>(&mut self, requests: &[Request<'_>], replies: &mut R) {
        let mut station = Station::<IN_FLIGHT>::new();
        for (number, request) in requests.iter().enumerate().take(IN_FLIGHT) {
            self.admit(&mut station, number, request);
        }
        for number in 0..requests.len() {
            if let Some(request) = requests.get(number + IN_FLIGHT) {
                self.admit(&mut station, number + IN_FLIGHT, request);
            }
            if number + DISTANCE < requests.len() {
                self.scout::<C>(&station, number + DISTANCE);
            }
            self.execute::<C, R>(&mut station, number, requests, replies);
        }
    }

    #[inline(always)]
    fn admit(&self, station: &mut Station<IN_FLIGHT>, number: usize, request: &Request<'_>) {
        let hash = self.hash(request.key());
        let bucket = self.table.index.offset(hash);
        self.table.memory.prefetch(bucket);
        station.admit(number, hash, bucket);
    }

    #[inline(always)]
    fn scout<C: Compare>(&self, station: &Station<IN_FLIGHT>, number: usize) {
        let memory = &self.table.memory;
        let bucket = memory.bucket(station.bucket(number));
        if bucket.pointers() != 0 {
            self.scout_block::<C>(bucket, station.hash(number));
        } else if bucket.next() != 0 {
            memory.prefetch(memory.offset_of(bucket.next()));
        }
    }

    #[inline(always)]
    fn scout_block<C: Compare>(&self, bucket: &Bucket, hash: Hash) {
        let memory = &self.table.memory;
        let candidates = bucket.candidates::<C>(hash);
        if candidates == 0 {
            if bucket.next() != 0 {
                memory.prefetch(memory.offset_of(bucket.next()));
            }
            return;
        }
        let pointer = bucket.pointer(candidates.trailing_zeros() as usize);
        let block = memory.offset_of(pointer.unit);
        let bytes = (pointer.class.units() as usize) << self.table.unit_shift;
        // In a longer block the processor sees by itself that lines follow one another.
        for line in (0..bytes.min(SCOUTED_BYTES)).step_by(BUCKET_BYTES) {
            memory.prefetch(block + line);
        }
    }

    #[inline(always)]
    fn execute<C: Compare, R: Replies>(
        &mut self,
        station: &mut Station<IN_FLIGHT>,
        number: usize,
        requests: &[Request<'_>],
        replies: &mut R,
    ) {
        let request = &requests[number];
        let (key, hash) = (request.key(), station.hash(number));
        let mut place = match station.earlier(number, self.table.layout) {
            Some((earlier, place)) if requests[earlier].key() == key => place,
            _ => self.table.find::<C>(key, hash),
        };
        match *request {
            Request::Get(_) => replies.get(number, place.map(|place| self.value_at(place))),
            Request::Update(_) => replies.update(number, place.map(|place| self.change_at(place))),
            Request::Put(_, value) => {
                let stored = self.put_at((key, hash), value, false, place);
                if let Ok((_, new)) = stored {
                    place = Some(new);
                }
                replies.put(number, stored.map(|(stored, _)| stored));
            }
            Request::Delete(_) => {
                replies.delete(number, self.delete_at(hash, place));
                place = None;
            }
        }
        station.leave(number, place, self.table.layout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Index, Options};

    /// Results of gets, and the number of other results.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Seen {
        values: Vec<Option<Vec<u8>>>,
        others: Vec<String>,
    }

    impl Replies for Seen {
        fn get(&mut self, _: usize, value: Option<Value<'_>>) {
            self.values.push(value.map(|value| value.bytes.to_vec()));
        }

        fn put(&mut self, _: usize, stored: Result<Stored, OutOfMemory>) {
            self.others.push(format!("{stored:?}"));
        }

        fn delete(&mut self, _: usize, is_deleted: bool) {
            self.others.push(format!("{is_deleted}"));
        }

        fn update(&mut self, _: usize, value: Option<ValueMut<'_>>) {
            self.others.push(format!("{}", value.is_some()));
            if let Some(byte) = value.and_then(|value| value.bytes.first_mut()) {
                *byte = byte.wrapping_add(1);
            }
        }
    }

    /// A batch takes the instructions of the processor; the portable code must do the same.
    #[test]
    fn portable_batches_do_what_those_by_permutations_do() {
        let options = Options {
            memory_bytes: 4 << 20,
            index: Index::Fixed { ratio: 0.01 },
            ..Options::default()
        };
        let mut portable = Engine::new(options).expect("options are sound");
        let mut usual = Engine::new(options).expect("options are sound");
        let mut random = fastrand::Rng::with_seed(8);
        for _ in 0..500 {
            let keys: Vec<Vec<u8>> = (0..100)
                .map(|_| {
                    let number = random.u32(0..5_000);
                    let length = 4 + number as usize % 40;
                    let mut key = vec![number as u8; length];
                    key[..4].copy_from_slice(&number.to_le_bytes());
                    key
                })
                .collect();
            let value = vec![random.u8(..); random.usize(0..60)];
            let request = |key| match random.u8(0..4) {
                0 => Request::Put(key, &value),
                1 => Request::Delete(key),
                2 => Request::Update(key),
                _ => Request::Get(key),
            };
            let requests: Vec<Request<'_>> = keys.iter().map(|key| &key[..]).map(request).collect();
            let (mut first, mut second) = (Seen::default(), Seen::default());
            portable.run_as::<Portable, _>(&requests, &mut first);
            usual.run(&requests, &mut second);
            assert_eq!(first, second);
        }
        assert!(usual.len() > 500 && usual.statistics().chained_buckets > 0);
        assert_eq!(portable.statistics(), usual.statistics());
    }
}
