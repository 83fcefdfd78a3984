// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Models of transports for tests, with the weakest guarantees that hardware may give.
//!
//! - [`Unordered`] and [`Ordered`] give the guarantees of RDMA. Writes take their bytes from the
//!   source when they are executed, in pieces of any order; data arrive some time after the last
//!   piece, and operations are done some time after that. The first does not even keep whole writes
//!   in order.
//! - [`Posted`] gives the guarantees of a PCIe window: the peer's memory is written directly, word
//!   by word in order, but with a delay; and neither side can be woken.
//!
//! None of them has reads or atomic operations. The sides are threads of which only one runs at a
//! time; at each call of an endpoint, a random number decides which writes make progress and which
//! thread continues. So a seed is a history, and a failure can be reproduced.

mod posted;
mod world;

use crate::conformance::{Case, Letters, Party, case};
use freeport_fabric::endpoint::{Path, Region, Target, Transfer};
use freeport_fabric::mirror::Mirror;
use freeport_fabric::{Arrival, Completion, Endpoint, Error, Key, WriteOrder};
use freeport_ring::{Claimed, Local, Mapped, Remote};
use posted::PostedPath;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;
use world::{End, Flight, Source, World};

/// Maximum number of outstanding operations of a side.
const OUTSTANDING_MAX: usize = 16;
/// Rounds that a sleeper waits for an event.
const SLEEP_ROUNDS: usize = 50;
/// Prefix of keys, which does not occur in the garbage that is tried as a key.
const KEYS: u64 = 0x6d6f_6465_6c00_0000;

/// Guarantees of a model.
pub trait Kind: Copy + Debug + 'static {
    const NAME: &'static str;
    const ARRIVAL: Arrival;
    const WRITE_ORDER: WriteOrder;
    type Path: Path;

    fn path(
        model: &Model<Self>,
        inbound: &Memory,
        outbound: &Memory,
        number: u16,
    ) -> Result<Self::Path, Error>;
}

/// Runs a case over a model, for some seeds.
pub fn hold<K: Kind>(name: &str, seeds: Range<u64>) {
    for seed in seeds {
        let world = Arc::new(World::new(seed, K::WRITE_ORDER));
        let Case { first, second, .. } = case::<Model<K>>(name);
        let (theirs, ours) = (Arc::clone(&world), world);
        let second = thread::spawn(move || play(theirs, 1, second));
        let played = catch_unwind(AssertUnwindSafe(|| play(ours, 0, first)));
        let others = second.join();
        for outcome in [played, others] {
            if let Err(panic) = outcome {
                eprintln!("{name} with the seed {seed}");
                resume_unwind(panic);
            }
        }
    }
}

fn play<K: Kind>(world: Arc<World>, side: usize, part: fn(Party<Model<K>>)) {
    let end = Rc::new(End::new(world, side));
    drop(end.step(false));
    let letters = Box::new(Mail(Rc::clone(&end)));
    part(Party { endpoint: Model { end, kind: PhantomData }, letters, vanish: || () });
}

/// Exchange of keys through the world.
struct Mail(Rc<End>);

impl Letters for Mail {
    fn send(&self, key: Key) {
        let mut state = self.0.step(false);
        state.letters[1 - self.0.side].push_back(key.bytes().to_vec());
    }

    fn receive(&self) -> Key {
        loop {
            let mut state = self.0.step(true);
            if let Some(letter) = state.letters[self.0.side].pop_front() {
                return Key::new(&letter, None).expect("a short key");
            }
            assert!(!state.left[1 - self.0.side], "the other party is gone");
        }
    }
}

/// The endpoint.
#[derive(Clone, Debug)]
pub struct Model<K> {
    end: Rc<End>,
    kind: PhantomData<K>,
}

/// A model of RDMA without any order.
#[derive(Clone, Copy, Debug)]
pub struct Unordered;

/// A model of RDMA with writes in order.
#[derive(Clone, Copy, Debug)]
pub struct Ordered;

/// A model of a PCIe window.
#[derive(Clone, Copy, Debug)]
pub struct Posted;

impl Kind for Unordered {
    const NAME: &'static str = "the model without order";
    const ARRIVAL: Arrival = Arrival::Completion;
    const WRITE_ORDER: WriteOrder = WriteOrder::Nothing;
    type Path = Mirror<Model<Self>>;

    fn path(
        model: &Model<Self>,
        inbound: &Memory,
        outbound: &Memory,
        number: u16,
    ) -> Result<Self::Path, Error> {
        Mirror::new(model, inbound, outbound, number)
    }
}

impl Kind for Ordered {
    const NAME: &'static str = "the model with order";
    const ARRIVAL: Arrival = Arrival::Completion;
    const WRITE_ORDER: WriteOrder = WriteOrder::Writes;
    type Path = Mirror<Model<Self>>;

    fn path(
        model: &Model<Self>,
        inbound: &Memory,
        outbound: &Memory,
        number: u16,
    ) -> Result<Self::Path, Error> {
        Mirror::new(model, inbound, outbound, number)
    }
}

impl Kind for Posted {
    const NAME: &'static str = "the model of a window";
    const ARRIVAL: Arrival = Arrival::Memory;
    const WRITE_ORDER: WriteOrder = WriteOrder::Words;
    type Path = PostedPath;

    fn path(
        model: &Model<Self>,
        inbound: &Memory,
        outbound: &Memory,
        _: u16,
    ) -> Result<PostedPath, Error> {
        Ok(PostedPath::new(&model.end, inbound, outbound))
    }
}

/// Memory of either side.
#[derive(Clone, Debug)]
pub struct Memory {
    words: Arc<[AtomicU64]>,
    index: usize,
}

impl Memory {
    fn mapped(&self) -> Mapped {
        // SAFETY: the memory lives as long as this value, and longer than the result is used.
        unsafe { Mapped::new(self.words.as_ptr().cast_mut().cast()) }
    }
}

impl Target for Memory {
    fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

impl Region for Memory {
    fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

impl Local for Memory {
    unsafe fn load(&self, offset: usize) -> Claimed {
        // SAFETY: the caller upholds the contract of `load`.
        unsafe { self.mapped().load(offset) }
    }

    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the caller upholds the contract of `read`.
        unsafe { self.mapped().read(offset, into) }
    }
}

impl Remote for Memory {
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller upholds the contract of `write`.
        unsafe { self.mapped().write(offset, bytes) }
    }

    unsafe fn store(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `store`.
        unsafe { self.mapped().store(offset, word) }
    }
}

impl<K: Kind> Model<K> {
    fn post(&self, transfer: &Transfer<'_, Self>, data: Option<u32>) -> Result<(), Error> {
        transfer.check()?;
        let side = self.end.side;
        let mut state = self.end.step(false);
        if state.left[1 - side] {
            return Err(Error::PeerDied { pid: 0 });
        }
        let outstanding = state.outstanding[side];
        if outstanding == OUTSTANDING_MAX {
            return Err(Error::QueueFull { outstanding });
        }
        state.outstanding[side] += 1;
        let source = Source::Region(transfer.here.clone(), transfer.here_at);
        let to = (transfer.there.clone(), transfer.there_at);
        let mut flight = Flight::new(side, source, to, transfer.bytes, &mut state.random);
        (flight.data, flight.token) = (data, Some(transfer.token));
        state.flights.push(flight);
        Ok(())
    }

    fn unsupported(&self, what: &'static str) -> Result<(), Error> {
        Err(Error::Unsupported { transport: K::NAME, what })
    }
}

impl<K: Kind> Endpoint for Model<K> {
    const NAME: &'static str = K::NAME;
    const ARRIVAL: Arrival = K::ARRIVAL;
    const WRITE_ORDER: WriteOrder = K::WRITE_ORDER;
    const READS: bool = false;
    const ATOMICS: bool = false;
    /// Small, so that a batch becomes several writes.
    const WRITE_BYTES_MAX: usize = 4096;
    const REGION_BYTES_MAX: usize = 1 << 24;

    type Region = Memory;
    type Target = Memory;
    type Path = K::Path;

    fn register(&self, bytes: usize) -> Result<Memory, Error> {
        let most = Self::REGION_BYTES_MAX;
        if bytes == 0 || !bytes.is_multiple_of(8) || bytes > most {
            return Err(Error::RegionBytes { bytes, most });
        }
        let mut state = self.end.step(false);
        let words = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        let memory = Memory { words, index: state.regions.len() };
        state.regions.push(memory.clone());
        Ok(memory)
    }

    fn export(&self, region: &Memory) -> Result<Key, Error> {
        Key::new(&(region.index as u64 ^ KEYS).to_le_bytes(), None)
    }

    fn import(&self, key: Key) -> Result<Memory, Error> {
        let state = self.end.step(false);
        let index = key.bytes().try_into().map(|key| u64::from_le_bytes(key) ^ KEYS);
        let memory = index.ok().and_then(|index| state.regions.get(index as usize));
        let what = "there is no such region";
        memory.cloned().ok_or(Error::Key { transport: Self::NAME, what })
    }

    fn write(&self, transfer: Transfer<'_, Self>) -> Result<(), Error> {
        self.post(&transfer, None)
    }

    fn write_with_data(&self, transfer: Transfer<'_, Self>, data: u32) -> Result<(), Error> {
        self.post(&transfer, Some(data))
    }

    fn read(&self, _: Transfer<'_, Self>) -> Result<(), Error> {
        self.unsupported("reads")
    }

    fn fetch_add(&self, _: &Memory, _: usize, _: u64, _: u64) -> Result<(), Error> {
        self.unsupported("atomic operations")
    }

    fn compare_swap(&self, _: &Memory, _: usize, _: u64, _: u64, _: u64) -> Result<(), Error> {
        self.unsupported("atomic operations")
    }

    fn poll(&self) -> Result<Option<Completion>, Error> {
        let mut state = self.end.step(false);
        let completion = state.completions[self.end.side].pop_front();
        if matches!(completion, Some(Completion::Done { .. })) {
            state.outstanding[self.end.side] -= 1;
        }
        Ok(completion)
    }

    fn arm(&self) -> Result<bool, Error> {
        let quiet = self.end.step(false).completions[self.end.side].is_empty();
        Ok(quiet && K::ARRIVAL == Arrival::Completion)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn sleep(&self, _: Duration) -> Result<(), Error> {
        for _ in 0..SLEEP_ROUNDS {
            let state = self.end.step(true);
            if !state.completions[self.end.side].is_empty() {
                break;
            }
            if state.left[1 - self.end.side] && state.flights.is_empty() {
                return Err(Error::PeerDied { pid: 0 });
            }
        }
        Ok(())
    }

    fn wake(&self) -> Result<(), Error> {
        Ok(())
    }

    fn peer_is_alive(&self) -> Result<bool, Error> {
        Ok(!self.end.step(true).left[1 - self.end.side])
    }

    fn path(&self, inbound: &Memory, outbound: &Memory, number: u16) -> Result<K::Path, Error> {
        K::path(self, inbound, outbound, number)
    }
}
