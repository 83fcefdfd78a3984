// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random operations on pairs, and the replies that they have to get.

use fastrand::Rng;
use freeport_kv_client::{Batch, Replies};
use std::collections::HashMap;

/// Pairs that a server has to have.
#[derive(Default)]
pub struct Known {
    pairs: HashMap<Vec<u8>, Vec<u8>>,
    /// Replies to the operations that were added: whether the key was found, and a value.
    expected: Vec<(bool, Option<Vec<u8>>)>,
}

impl Known {
    /// Adds an operation on a key to a batch: it is removed, stored, or, half of the time, read.
    pub fn add(&mut self, batch: &mut Batch, key: Vec<u8>, rng: &mut Rng) {
        match rng.u8(..4) {
            0 => {
                batch.delete(&key);
                self.expected.push((self.pairs.remove(&key).is_some(), None));
            }
            1 => {
                let value = vec![rng.u8(..); rng.usize(..40)];
                batch.put(&key, &value);
                self.pairs.insert(key, value);
                self.expected.push((true, None));
            }
            _ => {
                batch.get(&key);
                let value = self.pairs.get(&key).cloned();
                self.expected.push((value.is_some(), value));
            }
        }
    }

    /// Compares the replies to all operations that were added since the last call.
    pub fn check(&mut self, replies: &Replies, round: usize) {
        assert!(!self.expected.is_empty());
        for (number, (found, value)) in self.expected.drain(..).enumerate() {
            let place = format!("round {round}, operation {number}");
            assert_eq!(replies.was_found(number), Ok(found), "{place}");
            assert_eq!(replies.get(number), Ok(value.as_deref()), "{place}");
        }
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.pairs.keys()
    }
}
