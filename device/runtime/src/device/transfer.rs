// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a device offers for being replaced, and for replacing another: its state and its queues,
//! by their positions in its manifest, in bytes that are the same for every kind of device.
//!
//! None of this is for users of a device: it shows what the host may not see, and changes what only
//! elements may change.

use super::{DeviceCounters, DeviceError};
use freeport_native::{Graph, LooseItem, Manifest, Place};
use freeport_port::FrameQueue;
use std::ops::Range;
use std::sync::Arc;

/// Runs of a graph without new input until it is taken not to come to rest by itself.
pub(crate) const MOST_DRAIN_RUNS: u32 = 64;

/// Frames that wait at an endpoint.
#[derive(Clone, Debug, Default)]
pub struct WaitingFrames {
    /// In order.
    pub frames: FrameQueue,
    /// Bytes of the first one that the graph has taken already, as flits.
    pub taken_bytes: usize,
    /// What has left, as flits, of a frame that is not whole yet; it comes behind the others.
    pub begun: Option<Vec<u8>>,
}

/// What waits in a channel, and what passes it.
#[derive(Clone, Debug, Default)]
pub struct WaitingItems {
    /// In order.
    pub items: Vec<LooseItem>,
    /// Whether the packet that passes is being dropped, if the channel is lossy and of flits.
    pub is_dropping: bool,
    /// Whether a packet of flits that is kept has begun to enter, if the device knows.
    pub is_inside: Option<bool>,
}

impl WaitingFrames {
    /// How many frames these are.
    pub fn count(&self) -> usize {
        self.frames.waiting() + usize::from(self.begun.is_some())
    }
}

/// The inner side of a device.
pub trait Transfer {
    /// What there is, by name and type.
    fn manifest(&self) -> Arc<Manifest>;

    /// The graph, if this is native code: then memory goes from one to the other at once.
    fn native(&mut self) -> Option<&mut Graph> {
        None
    }

    /// Appends elements of a variable to `bytes`, each in whole bytes, the lowest first.
    fn read_elements(&mut self, at: Place, elements: Range<u64>, bytes: &mut Vec<u8>);

    /// Writes elements of a variable from `first` on.
    fn write_elements(&mut self, at: Place, first: u64, bytes: &[u8]);

    /// Tells keys and values of a table: in the order of their uses where that is kept, the longest
    /// unused first.
    fn read_entries(&mut self, at: Place, each: &mut dyn FnMut(&[u8], &[u8]));

    /// Sets an entry of a table; false if there is no room for it.
    fn write_entry(&mut self, at: Place, key: &[u8], value: &[u8]) -> bool;

    /// Removes the entry under exactly `key`, if there is one.
    fn delete_entry(&mut self, at: Place, key: &[u8]);

    /// The inputs that the next firing of an instance waits for.
    fn mask(&self, instance: usize) -> u64;

    /// Sets them.
    fn set_mask(&mut self, instance: usize, mask: u64);

    /// Whether the handler of an instance waits in the middle, with values that cannot be kept.
    fn is_suspended(&self, instance: usize) -> bool;

    /// Runs without new input until nothing moves, at most `MOST_DRAIN_RUNS` times. What comes
    /// out waits for the ports, whatever there is of it.
    ///
    /// # Errors
    /// What goes wrong in the device.
    fn drain(&mut self) -> Result<(), DeviceError>;

    /// Frames that wait at an endpoint, and those that are not whole there.
    fn waiting_frames(&mut self, endpoint: usize) -> usize;

    /// Items that wait in a channel that an instance writes.
    fn waiting_items(&mut self, channel: usize) -> usize;

    /// Takes out the frames that wait at an endpoint.
    fn take_frames(&mut self, endpoint: usize) -> WaitingFrames;

    /// Has frames wait at an endpoint at which nothing waits; how many of them can be.
    fn give_frames(&mut self, endpoint: usize, frames: WaitingFrames) -> usize;

    /// Most items that can be put into a channel.
    fn item_room(&self, channel: usize) -> usize;

    /// Takes out what waits in a channel that an instance writes.
    fn take_items(&mut self, channel: usize) -> WaitingItems;

    /// Puts items into an empty channel that an instance writes; how many of them could be.
    fn give_items(&mut self, channel: usize, items: WaitingItems) -> usize;

    /// Counts on from these counters.
    fn count_from(&mut self, counters: DeviceCounters);

    /// The time as `now` gives it, in nanoseconds, if it is this device's own.
    fn own_clock_ns(&self) -> Option<u64> {
        None
    }

    /// Has such a time go on from there.
    fn advance_own_clock(&mut self, _clock_ns: u64) {}
}
