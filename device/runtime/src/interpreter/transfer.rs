// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State transfer of the interpreter, for replacement.

use super::{FIRINGS_AT_A_TIME, InterpreterDevice};
use crate::device::{
    DeviceCounters, DeviceError, MOST_DRAIN_RUNS, Transfer, WaitingFrames, WaitingItems,
};
use freeport_ir::flit::{Header, Joiner, PAYLOAD_BYTES};
use freeport_ir::interp::{Outcome, WaitingItem};
use freeport_ir::{Direction, EndpointId, Item, Source};
use freeport_native::{LooseItem, LoosePacket, Manifest, Place};
use freeport_port::FrameQueue;
use std::ops::Range;
use std::sync::Arc;

impl Transfer for InterpreterDevice<'_> {
    fn manifest(&self) -> Arc<Manifest> {
        Arc::new(Manifest::of(&self.program, true))
    }

    fn read_elements(&mut self, at: Place, elements: Range<u64>, bytes: &mut Vec<u8>) {
        self.interpreter.read_elements(at, elements, bytes);
    }

    fn write_elements(&mut self, at: Place, first: u64, bytes: &[u8]) {
        self.interpreter.write_elements(at, first, bytes);
    }

    fn read_entries(&mut self, at: Place, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.interpreter.read_entries(at, each);
    }

    fn write_entry(&mut self, at: Place, key: &[u8], value: &[u8]) -> bool {
        self.interpreter.write_entry(at, key, value)
    }

    fn delete_entry(&mut self, at: Place, key: &[u8]) {
        self.interpreter.delete_entry(at, key);
    }

    fn mask(&self, instance: usize) -> u64 {
        self.interpreter.mask(instance)
    }

    fn set_mask(&mut self, instance: usize, mask: u64) {
        self.interpreter.set_mask(instance, mask);
    }

    fn is_suspended(&self, instance: usize) -> bool {
        self.interpreter.is_suspended(instance)
    }

    fn drain(&mut self) -> Result<(), DeviceError> {
        for _ in 0..MOST_DRAIN_RUNS {
            let outcome = self.interpreter.run(FIRINGS_AT_A_TIME / u64::from(MOST_DRAIN_RUNS))?;
            self.collect()?;
            if !matches!(outcome, Outcome::Budget | Outcome::Waiting) {
                break;
            }
        }
        Ok(())
    }

    fn waiting_frames(&mut self, endpoint: usize) -> usize {
        let waiting = self.take_frames(endpoint);
        let count = waiting.count();
        self.give_frames(endpoint, waiting);
        count
    }

    fn waiting_items(&mut self, channel: usize) -> usize {
        let waiting = self.take_items(channel);
        let count = waiting.items.len();
        self.give_items(channel, waiting);
        count
    }

    fn take_frames(&mut self, endpoint: usize) -> WaitingFrames {
        let id = EndpointId::new(endpoint);
        let info = &self.program.graph.endpoints[endpoint];
        if info.direction == Direction::OutOf {
            let begun = match info.item {
                Item::Flit => self.interpreter.take_begun(id),
                _ => None,
            };
            let frames = std::mem::take(&mut self.waiting[endpoint]);
            return WaitingFrames { frames, taken_bytes: 0, begun };
        }
        let Some(channel) = self.program.graph.channel_from(Source::Endpoint(id)) else {
            return WaitingFrames::default();
        };
        let is_whole = info.item != Item::Flit;
        frames_of(self.interpreter.take_waiting(channel.index()), is_whole, self.clock_ns)
    }

    fn give_frames(&mut self, endpoint: usize, mut frames: WaitingFrames) -> usize {
        let id = EndpointId::new(endpoint);
        let count = frames.count();
        let info = &self.program.graph.endpoints[endpoint];
        if info.direction == Direction::OutOf {
            self.waiting[endpoint] = frames.frames;
            if let Some(begun) = frames.begun.filter(|_| info.item == Item::Flit) {
                self.interpreter.put_begun(id, begun);
            }
            return count;
        }
        let mut fed = 0;
        let batch = frames.frames.lend(usize::MAX);
        for (at, (frame, bytes)) in batch.as_frames().iter().enumerate() {
            self.clock_ns = self.clock_ns.max(frame.timestamp_ns);
            if at == 0 && frames.taken_bytes > 0 {
                self.interpreter.feed_rest(id, bytes, frames.taken_bytes);
                fed += 1;
            } else {
                fed += usize::from(self.interpreter.feed_packet(id, bytes).is_ok());
            }
        }
        fed
    }

    fn item_room(&self, channel: usize) -> usize {
        if self.is_from_instance(channel) { usize::MAX } else { 0 }
    }

    fn take_items(&mut self, channel: usize) -> WaitingItems {
        if !self.is_from_instance(channel) {
            return WaitingItems::default();
        }
        let (is_dropping, is_inside) = self.interpreter.passing(channel);
        let items: Vec<LooseItem> =
            self.interpreter.take_waiting(channel).into_iter().map(loose).collect();
        WaitingItems { items, is_dropping, is_inside }
    }

    fn give_items(&mut self, channel: usize, waiting: WaitingItems) -> usize {
        let mut is_inside = waiting.is_inside;
        if let (Some(LooseItem::Bits(flit)), Item::Flit) =
            (waiting.items.last(), self.program.graph.channels[channel].item)
        {
            is_inside = Some(!Header::of(flit).eop);
        }
        self.interpreter.set_passing(channel, (waiting.is_dropping, is_inside));
        let items = waiting.items.into_iter();
        items.map(|item| usize::from(self.interpreter.put_waiting(channel, tight(item)))).sum()
    }

    fn count_from(&mut self, counters: DeviceCounters) {
        self.counted_before = counters;
    }

    fn own_clock_ns(&self) -> Option<u64> {
        Some(self.interpreter.clock_ns())
    }

    fn advance_own_clock(&mut self, clock_ns: u64) {
        self.interpreter.advance_clock(clock_ns);
    }
}

impl InterpreterDevice<'_> {
    fn is_from_instance(&self, channel: usize) -> bool {
        let channel = &self.program.graph.channels[channel];
        matches!(channel.source, Source::Port(..))
    }
}

fn loose(item: WaitingItem) -> LooseItem {
    match item {
        WaitingItem::Bits(bits) => LooseItem::Bits(bits),
        WaitingItem::Packet { bytes, head_room, tail_room } => {
            let [head_room, tail_room] = [head_room, tail_room].map(|room| room as u32);
            LooseItem::Packet(LoosePacket { bytes, head_room, tail_room })
        }
    }
}

fn tight(item: LooseItem) -> WaitingItem {
    match item {
        LooseItem::Bits(bits) => WaitingItem::Bits(bits),
        LooseItem::Packet(LoosePacket { bytes, head_room, tail_room }) => {
            let [head_room, tail_room] = [head_room, tail_room].map(|room| room as usize);
            WaitingItem::Packet { bytes, head_room, tail_room }
        }
    }
}

/// Rebuilds frames from fed items. For a frame that was taken in part, a first flit of zeros is put
/// in front of the remaining ones and marked as taken; the number of flits already taken no longer
/// matters.
fn frames_of(items: Vec<WaitingItem>, is_whole: bool, clock_ns: u64) -> WaitingFrames {
    let mut waiting = WaitingFrames::default();
    let mut joiner = Joiner::default();
    let first = items.first();
    if let (false, Some(WaitingItem::Bits(flit))) = (is_whole, first)
        && !Header::of(flit).sop
    {
        joiner = Joiner::resumed(vec![0; PAYLOAD_BYTES]);
        waiting.taken_bytes = PAYLOAD_BYTES;
    }
    let push = |frames: &mut FrameQueue, bytes: &[u8]| {
        // Fed frames were received from a port, so they are neither empty nor too long.
        let _ = frames.push(bytes, bytes.len(), clock_ns);
    };
    for item in items {
        match item {
            WaitingItem::Packet { bytes, .. } => push(&mut waiting.frames, &bytes),
            WaitingItem::Bits(flit) => {
                if let Some(bytes) = joiner.push(&flit).ok().flatten() {
                    push(&mut waiting.frames, &bytes);
                }
            }
        }
    }
    waiting
}
