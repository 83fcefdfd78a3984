// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conformance suite for transports, which each transport runs.
//!
//! A case has two parts that run concurrently, in two threads or in two processes; the instance
//! connects them. The cases check the guarantees that a transport's constants state.

mod ends;
mod memory;
mod rings;

use freeport_fabric::endpoint::Region;
use freeport_fabric::{Completion, Endpoint, Error, Key};
use std::thread;
use std::time::{Duration, Instant};

/// Exchange of keys between the two parties of a case.
pub trait Letters {
    fn send(&self, key: Key);
    fn receive(&self) -> Key;
}

/// One of the two parties of a case.
pub struct Party<E: Endpoint> {
    pub endpoint: E,
    pub letters: Box<dyn Letters>,
    /// Ends the party without closing its connection.
    pub vanish: fn(),
}

/// A case.
pub struct Case<E: Endpoint> {
    pub name: &'static str,
    pub first: fn(Party<E>),
    pub second: fn(Party<E>),
}

/// Instantiates the suite: a test for each case, which `$hold` runs by its name.
macro_rules! instantiate {
    ($hold:path) => {
        $crate::conformance::instantiate! { $hold:
            regions bounds arrivals polled_words completions reads atomics
            streams messages back_pressure doorbells late_arrivals last_words sudden_end
        }
    };
    ($hold:path: $($case:ident)*) => {
        $(#[test] fn $case() { $hold(stringify!($case)); })*
    };
}
pub(crate) use instantiate;

/// Returns the case of that name.
pub fn case<E: Endpoint>(name: &str) -> Case<E> {
    let cases = [memory::cases(), rings::cases(), ends::cases()];
    let case = cases.into_iter().flatten().find(|case| case.name == name);
    case.unwrap_or_else(|| panic!("there is no case {name}"))
}

/// Time after which a test is considered to hang.
pub const PATIENCE: Duration = Duration::from_secs(180);

impl<E: Endpoint> Party<E> {
    /// Sends a key and receives one.
    pub fn swap(&self, key: Key) -> Key {
        self.letters.send(key);
        self.letters.receive()
    }

    /// Waits until the other party gets here as well.
    pub fn meet(&self) {
        self.swap(Key::new(&[], None).expect("a short key"));
    }

    /// Registers a region, and imports the one that the other party registers at the same time.
    pub fn regions(&self, bytes: usize) -> (E::Region, E::Target) {
        let region = self.endpoint.register(bytes).expect("memory");
        let key = self.swap(self.endpoint.export(&region).expect("a key"));
        (region, self.endpoint.import(key).expect("the other's key"))
    }

    /// Returns the next completion; sleeps until there is one, if the transport supports it.
    pub fn next(&self) -> Completion {
        let since = Instant::now();
        loop {
            if let Some(completion) = self.endpoint.poll().expect("an honest peer") {
                return completion;
            }
            if self.endpoint.arm().expect("an honest peer") {
                self.endpoint.sleep(PATIENCE).expect("the other party is here");
            } else {
                thread::yield_now();
            }
            assert!(since.elapsed() < PATIENCE, "nothing completes, or no wake-up arrived");
        }
    }

    /// Waits for operations to be done and returns their tokens.
    pub fn done(&self, count: usize) -> Vec<u64> {
        let done = |_| match self.next() {
            Completion::Done { token } => token,
            other => panic!("{other:?} while waiting for operations"),
        };
        (0..count).map(done).collect()
    }

    /// Posts an operation, polling while the queue is full; returns the number of operations done
    /// in between.
    pub fn post(&self, mut operation: impl FnMut() -> Result<(), Error>) -> usize {
        let mut done = 0;
        loop {
            match operation() {
                Ok(()) => return done,
                Err(Error::QueueFull { .. }) => done += self.done(1).len(),
                Err(error) => panic!("refused: {error}"),
            }
        }
    }
}

/// Writes to own memory.
pub fn put(region: &impl Region, at: usize, bytes: &[u8]) {
    assert!(at + bytes.len() <= region.bytes());
    // SAFETY: the range is inside the region.
    unsafe { region.clone().write(at, bytes) };
}

/// Reads own memory.
pub fn get(region: &impl Region, at: usize, length: usize) -> Vec<u8> {
    assert!(at + length <= region.bytes());
    let mut bytes = vec![0; length];
    // SAFETY: the range is inside the region.
    unsafe { region.read(at, &mut bytes) };
    bytes
}

/// Reads a word of own memory.
pub fn word(region: &impl Region, at: usize) -> u64 {
    assert!(at.is_multiple_of(8) && at + 8 <= region.bytes());
    // SAFETY: the word is inside the region and aligned.
    let word = unsafe { region.load(at) };
    // CLAIM: only compared by tests.
    word.raw()
}
