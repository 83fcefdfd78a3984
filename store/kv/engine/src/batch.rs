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
