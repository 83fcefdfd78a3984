// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The store as one client at a time sees it, for the checker of histories.

use freeport_testbed::history::{self, Model};
use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// An operation of a history.
pub type Operation = history::Operation<State>;

/// A request. Keys and values have numbers; no value is put twice.
#[derive(Clone, Debug)]
pub enum Call {
    Get(usize),
    Put(usize, u32),
    Delete(usize),
}

/// A reply.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    Value(Option<u32>),
    /// Whether a put or delete changed something.
    Done(bool),
}

/// The values of keys.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct State(BTreeMap<usize, u32>);

impl Model for State {
    type Call = Call;
    type Reply = Reply;

    fn apply(&mut self, _client: usize, call: &Call) -> Reply {
        match call {
            Call::Get(key) => Reply::Value(self.0.get(key).copied()),
            Call::Put(key, value) => {
                self.0.insert(*key, *value);
                Reply::Done(true)
            }
            Call::Delete(key) => Reply::Done(self.0.remove(key).is_some()),
        }
    }

    fn only_reads(call: &Call) -> bool {
        matches!(call, Call::Get(_))
    }
}

impl Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Call {
    /// Draws an operation on one of some keys, with a value for puts.
    pub fn random(random: &mut fastrand::Rng, keys: usize, value: u32) -> Self {
        let key = random.usize(..keys);
        match random.u8(..10) {
            0..2 => Self::Get(key),
            2..7 => Self::Put(key, value),
            _ => Self::Delete(key),
        }
    }

    /// Returns a key by its number.
    pub fn key(number: usize) -> String {
        char::from(b'a' + number as u8).into()
    }

    /// Returns a value by its number: some are longer than what is cached.
    pub fn value(number: u32) -> String {
        format!("{number:04}").repeat(if number.is_multiple_of(5) { 75 } else { 10 })
    }

    /// Returns the number of a value.
    ///
    /// # Panics
    /// It is not a value that was put.
    pub fn number(value: &str) -> u32 {
        let number = value.get(..4).and_then(|digits| digits.parse().ok()).expect("a number");
        assert_eq!(value, Self::value(number), "a value that nobody put");
        number
    }
}
