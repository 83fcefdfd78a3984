// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Interface for replacing a device by another: its state and its queues, by their positions in its
//! manifest, in bytes that are the same for every kind of device.
//!
//! Users of a device do not use this: it exposes state that is hidden from the host, and changes
//! state that only elements may change.

use super::{DeviceCounters, DeviceError};
use freeport_native::{Graph, LooseItem, Manifest, Place};
use freeport_port::FrameQueue;
use std::ops::Range;
use std::sync::Arc;

/// Runs of a graph without new input after which it is considered not to come to rest.
pub(crate) const MOST_DRAIN_RUNS: u32 = 64;

/// Frames that wait at an endpoint.
#[derive(Clone, Debug, Default)]
pub struct WaitingFrames {
    /// The frames, in order.
    pub frames: FrameQueue,
    /// Bytes of the first frame that the graph has already taken, as flits.
    pub taken_bytes: usize,
    /// Part of an incomplete frame that has already left, as flits; it follows the other frames.
    pub begun: Option<Vec<u8>>,
}

/// The items that wait in a channel, and the state of the packet passing it.
#[derive(Clone, Debug, Default)]
pub struct WaitingItems {
    /// The items, in order.
    pub items: Vec<LooseItem>,
    /// Whether the packet passing is being dropped, if the channel is lossy and carries flits.
    pub is_dropping: bool,
    /// Whether a packet of flits that is kept has begun to enter, if the device knows.
    pub is_inside: Option<bool>,
}

impl WaitingFrames {
    /// Returns the number of frames.
    pub fn count(&self) -> usize {
        self.frames.waiting() + usize::from(self.begun.is_some())
    }
}

/// State transfer of a device.
pub trait Transfer {
    /// Describes the state, by name and type.
    fn manifest(&self) -> Arc<Manifest>;

    /// Returns the graph, if this is native code: then memory is moved directly.
    fn native(&mut self) -> Option<&mut Graph> {
        None
    }

    /// Appends elements of a variable to `bytes`, each in whole bytes, the lowest first.
    fn read_elements(&mut self, at: Place, elements: Range<u64>, bytes: &mut Vec<u8>);

    /// Writes elements of a variable from `first` on.
    fn write_elements(&mut self, at: Place, first: u64, bytes: &[u8]);

    /// Visits the keys and values of a table, least recently used first where the order of uses is
    /// kept.
    fn read_entries(&mut self, at: Place, each: &mut dyn FnMut(&[u8], &[u8]));

    /// Sets an entry of a table; returns false if there is no room for it.
    fn write_entry(&mut self, at: Place, key: &[u8], value: &[u8]) -> bool;

    /// Removes the entry with exactly this key, if there is one.
    fn delete_entry(&mut self, at: Place, key: &[u8]);

    /// Returns the inputs that the next firing of an instance waits for.
    fn mask(&self, instance: usize) -> u64;

    /// Sets the inputs that the next firing of an instance waits for.
    fn set_mask(&mut self, instance: usize, mask: u64);

    /// Returns whether the handler of an instance is suspended inside a firing, with values that
    /// cannot be kept.
    fn is_suspended(&self, instance: usize) -> bool;

    /// Runs without new input until nothing moves, at most `MOST_DRAIN_RUNS` times. All output
    /// waits for the ports.
    ///
    /// # Errors
    /// The device fails.
    fn drain(&mut self) -> Result<(), DeviceError>;

    /// Returns the number of frames that wait at an endpoint, incomplete ones included.
    fn waiting_frames(&mut self, endpoint: usize) -> usize;

    /// Returns the number of items that wait in a channel that an instance writes.
    fn waiting_items(&mut self, channel: usize) -> usize;

    /// Takes the frames that wait at an endpoint.
    fn take_frames(&mut self, endpoint: usize) -> WaitingFrames;

    /// Queues frames at an endpoint where none wait; returns how many fit.
    fn give_frames(&mut self, endpoint: usize, frames: WaitingFrames) -> usize;

    /// Returns the maximum number of items that can be put into a channel.
    fn item_room(&self, channel: usize) -> usize;

    /// Takes the items that wait in a channel that an instance writes.
    fn take_items(&mut self, channel: usize) -> WaitingItems;

    /// Puts items into an empty channel that an instance writes; returns how many fit.
    fn give_items(&mut self, channel: usize, items: WaitingItems) -> usize;

    /// Continues counting from these counters.
    fn count_from(&mut self, counters: DeviceCounters);

    /// Returns the time as `now` gives it, in nanoseconds, if the device has a clock of its own.
    fn own_clock_ns(&self) -> Option<u64> {
        None
    }

    /// Advances such a clock to this time.
    fn advance_own_clock(&mut self, _clock_ns: u64) {}
}
