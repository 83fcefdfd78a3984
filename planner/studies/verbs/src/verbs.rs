// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of a place, as a trait: what a study is written against.

use crate::fault::Fault;
use crate::place::{Address, Place, Way};
use std::fmt::{self, Debug};
use std::future::Future;
use std::time::Duration;

/// Memory of a place as its own code uses it. Other places read and write it at any time. Words of
/// 8 bytes at multiples of 8 are whole, and everything longer may be torn.
pub trait Memory {
    /// Returns the size in bytes.
    fn bytes(&self) -> u64;

    /// Returns bytes.
    ///
    /// # Panics
    /// They are not inside.
    fn load(&self, at: u64, bytes: usize) -> Vec<u8>;

    /// Stores bytes, in the order of addresses.
    ///
    /// # Panics
    /// They are not inside.
    fn store(&self, at: u64, data: &[u8]);

    /// Returns a word.
    fn load_word(&self, at: u64) -> u64 {
        let word = self.load(at, 8);
        u64::from_le_bytes(word.try_into().expect("8 bytes"))
    }

    /// Stores a word.
    fn store_word(&self, at: u64, word: u64) {
        self.store(at, &word.to_le_bytes());
    }
}

/// A file of a place that outlives it.
pub trait Stable {
    /// Appends data. If the place dies meanwhile, a part of them may be appended.
    ///
    /// # Errors
    /// The file does not work.
    fn append(&self, data: Vec<u8>) -> impl Future<Output = Result<(), Fault>>;

    /// Returns the whole contents.
    ///
    /// # Errors
    /// The file does not work.
    fn read(&self) -> Result<Vec<u8>, Fault>;

    /// Cuts the file to this number of bytes.
    ///
    /// # Errors
    /// The file does not work.
    fn truncate(&self, bytes: u64) -> Result<(), Fault>;
}

/// A message that waits for its answer.
pub struct Call {
    /// The place that sent it.
    pub from: Place,
    /// Its contents.
    pub message: Vec<u8>,
    reply: Box<dyn FnOnce(Vec<u8>)>,
}

impl Call {
    /// Creates a call, with what sends its answer.
    pub fn new(from: Place, message: Vec<u8>, reply: impl FnOnce(Vec<u8>) + 'static) -> Self {
        Self { from, message, reply: Box::new(reply) }
    }

    /// Answers it. A call that is dropped without an answer fails as if the place were gone.
    pub fn answer(self, answer: Vec<u8>) {
        (self.reply)(answer);
    }
}

impl Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("from", &self.from).field("message", &self.message).finish()
    }
}

/// The operations of a place. A clone is the same place; all tasks of a place run on one thread.
pub trait Verbs: Clone + 'static {
    /// Memory of the place.
    type Memory: Memory;
    /// The file of the place.
    type Stable: Stable;

    /// Returns the place.
    fn place(&self) -> Place;

    /// Reads another place's memory. Words are whole, and longer data may be torn.
    ///
    /// # Errors
    /// See [`Fault`].
    fn read(
        &self,
        from: Address,
        bytes: usize,
        way: Way,
    ) -> impl Future<Output = Result<Vec<u8>, Fault>>;

    /// Writes to another place's memory. When it is done, the data are there: writes that begin
    /// after that arrive later.
    ///
    /// # Errors
    /// See [`Fault`].
    fn write(
        &self,
        to: Address,
        data: Vec<u8>,
        way: Way,
    ) -> impl Future<Output = Result<(), Fault>>;

    /// Sends a message, and returns its answer.
    ///
    /// # Errors
    /// See [`Fault`].
    fn call(&self, to: Place, message: Vec<u8>) -> impl Future<Output = Result<Vec<u8>, Fault>>;

    /// Returns the next message to this place.
    fn receive(&self) -> impl Future<Output = Call>;

    /// Returns the memory of this place, which is zero when it begins.
    fn memory(&self) -> &Self::Memory;

    /// Returns the file of this place.
    fn stable(&self) -> &Self::Stable;

    /// Occupies a core of this place for a time. Where cores are real, the caller's own code does,
    /// and this returns at once.
    fn work(&self, time: Duration) -> impl Future<Output = ()>;

    /// Waits.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()>;

    /// Returns the time since some point in the past.
    fn now(&self) -> Duration;

    /// Runs a task of this place, until it ends or the place dies. A task of a machine that is gone
    /// is dropped.
    fn spawn(&self, task: impl Future<Output = ()> + 'static);
}

/// Defines the operations of a place that wraps another one, in an `impl Verbs`, as those of its
/// field: all that wrappers do not change. Reads, writes, calls, the place and its file are left.
#[macro_export]
macro_rules! forward {
    ($inner:ident) => {
        async fn receive(&self) -> $crate::Call {
            self.$inner.receive().await
        }

        fn memory(&self) -> &Self::Memory {
            self.$inner.memory()
        }

        async fn work(&self, time: ::std::time::Duration) {
            self.$inner.work(time).await;
        }

        async fn sleep(&self, time: ::std::time::Duration) {
            self.$inner.sleep(time).await;
        }

        fn now(&self) -> ::std::time::Duration {
            self.$inner.now()
        }

        fn spawn(&self, task: impl ::std::future::Future<Output = ()> + 'static) {
            self.$inner.spawn(task);
        }
    };
}
