// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Batches of plain requests, whose results a caller takes one by one. The stages of a batch are in
//! `pipeline`.

use std::ops::ControlFlow;

use crate::engine::{Engine, Stored, Value, ValueMut};
use crate::entry::Entry;
use crate::meter::Meter;
use crate::options::OutOfMemory;
use crate::pipeline::{Execute, Keys};

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

impl<M: Meter> Engine<M> {
    /// Executes requests in their order.
    pub fn run<R: Replies>(&mut self, requests: &[Request<'_>], replies: &mut R) {
        self.run_each(&Requests(requests), &mut Answers { requests, replies });
    }
}

/// Requests as keys.
struct Requests<'a, 'k>(&'a [Request<'k>]);

impl Keys for Requests<'_, '_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn key(&self, number: usize) -> &[u8] {
        self.0[number].key()
    }
}

/// Requests with a taker of their results.
struct Answers<'a, 'k, R> {
    requests: &'a [Request<'k>],
    replies: &'a mut R,
}

impl<M: Meter, R: Replies> Execute<M> for Answers<'_, '_, R> {
    #[inline(always)]
    fn execute(&mut self, number: usize, entry: &mut Entry<'_, M>) -> ControlFlow<()> {
        match self.requests[number] {
            Request::Get(_) => self.replies.get(number, entry.value()),
            Request::Update(_) => self.replies.update(number, entry.change()),
            Request::Put(_, value) => self.replies.put(number, entry.put(value)),
            Request::Delete(_) => self.replies.delete(number, entry.delete()),
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Index, Options};
    use crate::search::Portable;

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
            let mut answers = Answers { requests: &requests, replies: &mut first };
            portable.run_as::<Portable, _, _>(&Requests(&requests), &mut answers);
            usual.run(&requests, &mut second);
            assert_eq!(first, second);
        }
        assert!(usual.len() > 500 && usual.statistics().chained_buckets > 0);
        assert_eq!(portable.statistics(), usual.statistics());
    }
}
