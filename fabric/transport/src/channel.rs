// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings over any transport: one in each direction, in a region of each side.
//!
//! | offset in a side's region | contents | written by the peer as |
//! |---|---|---|
//! | 0 | notes | the sender of the ring to this side |
//! | 128 | notes | the receiver of the ring to the peer |
//! | 256 | the ring to this side | its sender |
//!
//! The ends are those of [`freeport_ring`]: build a stream of bytes or messages on them. Their user
//! calls [`Channel::progress`] regularly, and [`Channel::sleep_unless`] to sleep.

use crate::endpoint::{Arrival, Completion, Endpoint, Path, Region, Target};
use crate::error::{Error, HelloError};
use crate::key::Key;
use freeport_ring::layout::{CAPACITY_MAX, CAPACITY_MIN, NOTES_BYTES, is_capacity};
use freeport_ring::{Receiver, Sender};
use std::time::Duration;

const RING_AT: usize = 2 * NOTES_BYTES;

/// The window type of an endpoint's paths.
pub type WindowOf<E> = <<E as Endpoint>::Path as Path>::Window;
/// The inbox type of an endpoint's paths.
pub type InboxOf<E> = <<E as Endpoint>::Path as Path>::Inbox;
/// The sender type of a channel.
pub type SenderOf<E> = Sender<WindowOf<E>, InboxOf<E>>;
/// The receiver type of a channel.
pub type ReceiverOf<E> = Receiver<InboxOf<E>, WindowOf<E>>;

/// Both ends of one side.
pub type EndsOf<E> = (SenderOf<E>, ReceiverOf<E>);

/// This side's part of a channel, before the peer's key has arrived.
#[derive(Debug)]
pub struct Prepared<E: Endpoint> {
    inbound: E::Region,
    capacity: usize,
}

/// Two rings between the sides of an endpoint.
#[derive(Debug)]
pub struct Channel<E: Endpoint> {
    endpoint: E,
    path: E::Path,
}

impl<E: Endpoint> Prepared<E> {
    /// Registers this side's region, for a ring of `capacity` bytes to this side, and returns it
    /// with its key, which has to be sent to the peer.
    ///
    /// # Errors
    /// A ring cannot have that capacity, or there is no memory.
    pub fn new(endpoint: &E, capacity: usize) -> Result<(Self, Key), Error> {
        if !is_capacity(capacity) {
            let (least, most, capacity) = (CAPACITY_MIN, CAPACITY_MAX, capacity as u64);
            return Err(Error::Capacity { capacity, capacity_max: capacity, least, most });
        }
        let inbound = endpoint.register(RING_AT + capacity)?;
        let key = endpoint.export(&inbound)?;
        Ok((Self { inbound, capacity }, key))
    }

    /// Opens the channel with the peer's key. `number` distinguishes the channels of one endpoint,
    /// and is the same on both sides.
    ///
    /// # Errors
    /// The key is invalid, or belongs to something other than the peer's part of the channel.
    pub fn open(
        self,
        endpoint: &E,
        key: Key,
        number: u16,
    ) -> Result<(Channel<E>, EndsOf<E>), Error> {
        let outbound = endpoint.import(key)?;
        let to_peer = outbound.bytes().saturating_sub(RING_AT);
        if !is_capacity(to_peer) {
            let (capacity, most) = (to_peer as u64, CAPACITY_MAX);
            return Err(HelloError::Capacity { capacity, capacity_max: capacity, most }.into());
        }
        let path = endpoint.path(&self.inbound, &outbound, number)?;
        let notes = path.notes(0, NOTES_BYTES)?;
        let own_notes = path.own_notes(NOTES_BYTES, NOTES_BYTES)?;
        let ring = path.ring(RING_AT, to_peer)?;
        // SAFETY: the path has checked the sizes; a region is zero when it is created.
        let sender = unsafe { Sender::new(ring, notes, own_notes, to_peer, Default::default()) };
        let notes = path.notes(NOTES_BYTES, NOTES_BYTES)?;
        let own_notes = path.own_notes(0, NOTES_BYTES)?;
        let ring = path.own_ring(RING_AT, self.inbound.bytes() - RING_AT)?;
        // SAFETY: as above.
        let receiver =
            unsafe { Receiver::new(ring, notes, own_notes, self.capacity, Default::default()) };
        let ends = sender.zip(receiver);
        let ends = ends.ok_or(Error::OutOfRange {
            what: "the capacities of rings",
            at: 0,
            bytes: self.capacity,
            size: CAPACITY_MAX,
        })?;
        Ok((Channel { endpoint: endpoint.clone(), path }, ends))
    }
}

impl<E: Endpoint> Channel<E> {
    /// Processes completions, and posts writes that waited for them. Completions of other
    /// operations are passed to `others`.
    ///
    /// # Errors
    /// The peer broke the protocol, or the transport failed.
    pub fn progress(&self, mut others: impl FnMut(Completion)) -> Result<(), Error> {
        self.path.progress()?;
        while let Some(completion) = self.endpoint.poll()? {
            if let Some(other) = self.path.completed(completion)? {
                others(other);
            }
        }
        Ok(())
    }

    /// Processes one completion, for a caller that polls the endpoint for several channels; returns
    /// the completion if it belongs to another one.
    ///
    /// # Errors
    /// The errors of [`progress`](Self::progress).
    pub fn completed(&self, completion: Completion) -> Result<Option<Completion>, Error> {
        self.path.completed(completion)
    }

    /// Returns whether everything that was written is in place.
    pub fn is_idle(&self) -> bool {
        self.path.is_idle()
    }

    /// Wakes the peer, if an operation of a ring requested it.
    ///
    /// # Errors
    /// The peer made its doorbell unusable.
    pub fn wake(&self, wake: bool) -> Result<(), Error> {
        if wake { self.endpoint.wake() } else { Ok(()) }
    }

    /// Sleeps for at most `longest`, unless `look` finds something. `announce` announces to the
    /// peer, by [the end of the ring](Receiver::announce_sleep) that this side waits for, that it
    /// sleeps, or that it no longer does; it is called only where arrivals do not wake by
    /// themselves. Both get `ends`.
    ///
    /// # Errors
    /// The errors of [`progress`](Self::progress); the peer is gone.
    pub fn sleep_unless<C, T>(
        &self,
        ends: &mut C,
        announce: impl Fn(&mut C, bool) -> bool,
        look: impl FnOnce(&mut C) -> Result<Option<T>, Error>,
        longest: Duration,
    ) -> Result<Option<T>, Error> {
        let announces = E::ARRIVAL == Arrival::Memory;
        if announces {
            self.wake(announce(ends, true))?;
        }
        let slept = self.sleep_armed(ends, look, longest);
        if announces {
            announce(ends, false);
        }
        slept
    }

    fn sleep_armed<C, T>(
        &self,
        ends: &mut C,
        look: impl FnOnce(&mut C) -> Result<Option<T>, Error>,
        longest: Duration,
    ) -> Result<Option<T>, Error> {
        let is_armed = self.endpoint.arm()?;
        let found = look(ends)?;
        if is_armed && found.is_none() {
            self.endpoint.sleep(longest)?;
        }
        Ok(found)
    }
}
