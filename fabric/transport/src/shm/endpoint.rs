// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared memory as a transport: each region is a segment of its own, and operations are copies,
//! which are done when the call returns. Words that are aligned on both sides are copied whole, in
//! the order of addresses, unless the two ranges overlap.
//!
//! Data of writes are sent as messages over a [`MessageConnection`], which also has the doorbells.

use super::copy::copy;
use super::hello::{Offer, Purpose};
use super::link::Link;
use super::messages::MessageConnection;
use super::segment::{self, Segment};
use super::{Memory, Options};
use crate::bounds::{within, word_within};
use crate::endpoint::{Arrival, Completion, Endpoint, Path, Region, Target, Transfer, WriteOrder};
use crate::error::Error;
use crate::key::Key;
use freeport_ring::{Claimed, Local, Remote};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

/// Number of unpolled completions at which further operations are refused.
const COMPLETIONS_MAX: usize = 4096;

/// An endpoint over shared memory; see [`Endpoint`].
#[derive(Clone, Debug)]
pub struct ShmEndpoint {
    shared: Rc<Shared>,
}

/// The first side of an endpoint, before the second side has answered.
#[derive(Debug)]
pub struct Offered {
    offer: Offer,
    options: Options,
}

impl Offered {
    /// Creates the first side. It waits only if the socket is not readable.
    ///
    /// # Errors
    /// The errors of [`ShmEndpoint::connect`].
    pub fn finish(self) -> Result<ShmEndpoint, Error> {
        let sides = Link::new(self.offer.finish()?, &self.options)?;
        ShmEndpoint::new(MessageConnection::new(sides))
    }
}

#[derive(Debug)]
struct Shared {
    messages: RefCell<MessageConnection>,
    done: RefCell<VecDeque<Completion>>,
    /// A duplicate that lives as long as this value: `messages` may be borrowed.
    descriptor: OwnedFd,
    fenced: bool,
}

impl ShmEndpoint {
    /// Creates both ends in one process. Each is for one thread; [`ShmEndpoint::connect`] and
    /// [`ShmEndpoint::accept`] create an end on the thread that uses it.
    ///
    /// # Errors
    /// The system refuses an operation.
    pub fn pair(options: &Options) -> Result<(Self, Self), Error> {
        let (first, second) = MessageConnection::pair_for(Purpose::Endpoint, options)?;
        Ok((Self::new(first)?, Self::new(second)?))
    }

    /// Creates the first side, with the peer connected by a socket. The options' capacity is that
    /// of the ring for data, 16 bytes each.
    ///
    /// # Errors
    /// The peer's hello is refused, or the system refuses an operation.
    pub fn connect(stream: UnixStream, options: &Options) -> Result<Self, Error> {
        Self::new(MessageConnection::connect_for(stream, Purpose::Endpoint, options)?)
    }

    /// Begins [`connect`](Self::connect) for an event loop, which continues when the socket is
    /// readable.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub fn offer(stream: UnixStream, options: &Options) -> Result<Offered, Error> {
        let offer = Offer::send(stream, Purpose::Endpoint, options)?;
        Ok(Offered { offer, options: *options })
    }

    /// Creates the second side. It waits only if the socket is not readable.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub fn accept(stream: UnixStream, options: &Options) -> Result<Self, Error> {
        Self::new(MessageConnection::accept_for(stream, Purpose::Endpoint, options)?)
    }

    fn new(messages: MessageConnection) -> Result<Self, Error> {
        let descriptor = segment::duplicate(messages.as_fd())?;
        let fenced = messages.is_fenced();
        let messages = RefCell::new(messages);
        let shared = Shared { messages, done: RefCell::default(), descriptor, fenced };
        Ok(Self { shared: Rc::new(shared) })
    }

    /// Checks before an operation whether there is room for its completion.
    fn check_queue(&self) -> Result<(), Error> {
        match self.shared.done.borrow().len() {
            outstanding if outstanding >= COMPLETIONS_MAX => Err(Error::QueueFull { outstanding }),
            _ => self.shared.messages.borrow().check_writing(),
        }
    }

    fn completed(&self, completion: Completion) {
        self.shared.done.borrow_mut().push_back(completion);
    }

    /// Returns the word of an atomic operation.
    fn word<'a>(&self, there: &'a Place, at: usize) -> Result<&'a AtomicU64, Error> {
        word_within("memory of the peer", at, there.bytes)?;
        self.check_queue()?;
        // SAFETY: inside and aligned; others also use it with atomic operations, or have to expect
        // any value.
        Ok(unsafe { AtomicU64::from_ptr(there.start(at).cast()) })
    }

    fn place(&self, segment: Segment, bytes: usize) -> Result<Place, Error> {
        Place::new(&Arc::new(segment), 0, bytes, self.shared.fenced)
    }
}

impl Endpoint for ShmEndpoint {
    const NAME: &'static str = "shared memory";
    const ARRIVAL: Arrival = Arrival::Memory;
    const WRITE_ORDER: WriteOrder = WriteOrder::Writes;
    const READS: bool = true;
    const ATOMICS: bool = true;
    const WRITE_BYTES_MAX: usize = 1 << 31;
    const REGION_BYTES_MAX: usize = 1 << 31;

    type Region = OwnPlace;
    type Target = Place;
    type Path = Direct;

    fn register(&self, bytes: usize) -> Result<OwnPlace, Error> {
        check_region(bytes)?;
        let (segment, descriptor) = Segment::create(bytes)?;
        let place = self.place(segment, bytes)?;
        Ok(OwnPlace { place, descriptor: Arc::new(descriptor) })
    }

    fn export(&self, region: &OwnPlace) -> Result<Key, Error> {
        let descriptor = segment::duplicate(region.descriptor.as_fd())?;
        Key::new(&(region.bytes() as u64).to_le_bytes(), Some(descriptor))
    }

    fn import(&self, key: Key) -> Result<Place, Error> {
        let refused = |what| Error::Key { transport: Self::NAME, what };
        let (bytes, descriptor) = key.into_parts();
        let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| refused("it does not have 8 bytes"))?;
        let bytes = usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX);
        let descriptor = descriptor.ok_or(refused("it has no descriptor"))?;
        check_region(bytes)?;
        self.place(Segment::import(descriptor, bytes)?, bytes)
    }

    fn write(&self, transfer: Transfer<'_, Self>) -> Result<(), Error> {
        transfer.check()?;
        self.check_queue()?;
        // Orders it after all earlier writes.
        fence(Ordering::Release);
        let Transfer { here, here_at, there, there_at, bytes, token } = transfer;
        // SAFETY: both ranges are inside.
        unsafe { copy(here.place.start(here_at), there.start(there_at), bytes) };
        self.completed(Completion::Done { token });
        Ok(())
    }

    fn write_with_data(&self, transfer: Transfer<'_, Self>, data: u32) -> Result<(), Error> {
        transfer.check()?;
        if !self.shared.messages.borrow_mut().has_room(size_of_val(&data))? {
            return Err(Error::QueueFull { outstanding: self.shared.done.borrow().len() });
        }
        self.write(transfer)?;
        self.shared.messages.borrow_mut().try_send(&[&data.to_ne_bytes()])
    }

    fn read(&self, transfer: Transfer<'_, Self>) -> Result<(), Error> {
        transfer.check()?;
        self.check_queue()?;
        let Transfer { here, here_at, there, there_at, bytes, token } = transfer;
        // SAFETY: both ranges are inside.
        unsafe { copy(there.start(there_at), here.place.start(here_at), bytes) };
        // Orders it before everything that depends on it.
        fence(Ordering::Acquire);
        self.completed(Completion::Done { token });
        Ok(())
    }

    fn fetch_add(&self, there: &Place, at: usize, addend: u64, token: u64) -> Result<(), Error> {
        let value = self.word(there, at)?.fetch_add(addend, Ordering::SeqCst);
        self.completed(Completion::Fetched { token, value });
        Ok(())
    }

    fn compare_swap(
        &self,
        there: &Place,
        at: usize,
        expected: u64,
        new: u64,
        token: u64,
    ) -> Result<(), Error> {
        let order = Ordering::SeqCst;
        let swapped = self.word(there, at)?.compare_exchange(expected, new, order, order);
        let (Ok(value) | Err(value)) = swapped;
        self.completed(Completion::Fetched { token, value });
        Ok(())
    }

    fn poll(&self) -> Result<Option<Completion>, Error> {
        if let Some(completion) = self.shared.done.borrow_mut().pop_front() {
            return Ok(Some(completion));
        }
        let mut data = [0; 4];
        match self.shared.messages.borrow_mut().try_receive(&mut data) {
            Ok(Some(4)) => Ok(Some(Completion::Arrived { data: u32::from_ne_bytes(data) })),
            Ok(Some(length)) | Err(Error::Longer { length, .. }) => Err(Error::Data { length }),
            Ok(None) | Err(Error::WouldBlock) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn arm(&self) -> Result<bool, Error> {
        let done = !self.shared.done.borrow().is_empty();
        Ok(!done && self.shared.messages.borrow_mut().arm()?)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.descriptor.as_fd())
    }

    fn sleep(&self, longest: Duration) -> Result<(), Error> {
        self.shared.messages.borrow_mut().sleep(longest)
    }

    fn wake(&self) -> Result<(), Error> {
        self.shared.messages.borrow_mut().wake()
    }

    fn peer_is_alive(&self) -> Result<bool, Error> {
        self.shared.messages.borrow_mut().peer_is_alive()
    }

    fn path(&self, inbound: &OwnPlace, outbound: &Place, _: u16) -> Result<Direct, Error> {
        Ok(Direct { here: inbound.place.clone(), there: outbound.clone() })
    }
}

fn check_region(bytes: usize) -> Result<(), Error> {
    let most = ShmEndpoint::REGION_BYTES_MAX;
    let fits = (1..=most).contains(&bytes) && bytes.is_multiple_of(8);
    if fits { Ok(()) } else { Err(Error::RegionBytes { bytes, most }) }
}

/// A part of a segment, which stays mapped as long as a part of it exists.
#[derive(Clone, Debug)]
pub struct Place {
    memory: Memory,
    bytes: usize,
    segment: Arc<Segment>,
}

impl Place {
    fn new(segment: &Arc<Segment>, at: usize, bytes: usize, fenced: bool) -> Result<Self, Error> {
        let size = segment.bytes();
        let what = "words of a segment";
        let place = segment.at(at, bytes).ok_or(Error::OutOfRange { what, at, bytes, size })?;
        let (memory, segment) = (Memory::new(place, fenced), Arc::clone(segment));
        Ok(Self { memory, bytes, segment })
    }

    /// Returns a part of a place that begins where its segment does.
    fn part(&self, at: usize, bytes: usize) -> Result<Self, Error> {
        within("a region", at, bytes, self.bytes)?;
        Self::new(&self.segment, at, bytes, self.memory.is_fenced())
    }

    fn start(&self, offset: usize) -> *mut u8 {
        self.memory.at().start().wrapping_add(offset)
    }
}

impl Target for Place {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Local for Place {
    #[inline]
    unsafe fn load(&self, offset: usize) -> Claimed {
        // SAFETY: the caller upholds the contract of `load`.
        unsafe { self.memory.load(offset) }
    }

    #[inline]
    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the caller upholds the contract of `read`.
        unsafe { self.memory.read(offset, into) }
    }
}

impl Remote for Place {
    #[inline]
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller upholds the contract of `write`.
        unsafe { self.memory.write(offset, bytes) }
    }

    #[inline]
    unsafe fn write_non_temporal(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller upholds the contract of `write_non_temporal`.
        unsafe { self.memory.write_non_temporal(offset, bytes) }
    }

    #[inline]
    fn ticks(&self) -> Option<u64> {
        self.memory.ticks()
    }

    #[inline]
    unsafe fn store(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `store`.
        unsafe { self.memory.store(offset, word) }
    }

    #[inline]
    unsafe fn set(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `set`.
        unsafe { self.memory.set(offset, word) }
    }

    #[inline]
    fn will_write(&self, offset: usize) {
        self.memory.will_write(offset);
    }

    #[inline]
    fn barrier(&self) {
        self.memory.barrier();
    }
}

/// A region: a segment, and the descriptor that is exported to the peer.
#[derive(Clone, Debug)]
pub struct OwnPlace {
    place: Place,
    descriptor: Arc<OwnedFd>,
}

impl Region for OwnPlace {
    fn bytes(&self) -> usize {
        self.place.bytes
    }
}

impl Local for OwnPlace {
    unsafe fn load(&self, offset: usize) -> Claimed {
        // SAFETY: the caller upholds the contract of `load`.
        unsafe { self.place.load(offset) }
    }

    unsafe fn read(&self, offset: usize, into: &mut [u8]) {
        // SAFETY: the caller upholds the contract of `read`.
        unsafe { self.place.read(offset, into) }
    }
}

impl Remote for OwnPlace {
    unsafe fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller upholds the contract of `write`.
        unsafe { self.place.write(offset, bytes) }
    }

    unsafe fn store(&mut self, offset: usize, word: u64) {
        // SAFETY: the caller upholds the contract of `store`.
        unsafe { self.place.store(offset, word) }
    }
}

/// The path over shared memory: direct access to both regions.
#[derive(Debug)]
pub struct Direct {
    here: Place,
    there: Place,
}

impl Path for Direct {
    type Window = Place;
    type Inbox = Place;

    fn notes(&self, at: usize, bytes: usize) -> Result<Place, Error> {
        self.there.part(at, bytes)
    }

    fn ring(&self, at: usize, bytes: usize) -> Result<Place, Error> {
        self.there.part(at, bytes)
    }

    fn own_notes(&self, at: usize, bytes: usize) -> Result<Place, Error> {
        self.here.part(at, bytes)
    }

    fn own_ring(&self, at: usize, bytes: usize) -> Result<Place, Error> {
        self.here.part(at, bytes)
    }

    fn completed(&self, completion: Completion) -> Result<Option<Completion>, Error> {
        Ok(Some(completion))
    }

    fn progress(&self) -> Result<(), Error> {
        Ok(())
    }

    fn is_idle(&self) -> bool {
        true
    }
}
