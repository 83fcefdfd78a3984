// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State transfer of the native-code device, for replacement.

use super::output::FramePlace;
use super::{CpuDevice, Lent};
use crate::device::{
    DeviceCounters, DeviceError, MOST_DRAIN_RUNS, Transfer, WaitingFrames, WaitingItems, port_error,
};
use freeport_ir::flit::Header;
use freeport_ir::{Direction, EndpointId, OnFull};
use freeport_native::manifest::ItemInfo;
use freeport_native::{BegunFrame, Graph, LooseItem, Manifest, Place, RunStatus};
use freeport_port::FrameQueue;
use std::ops::Range;
use std::sync::Arc;

impl Transfer for CpuDevice<'_> {
    fn manifest(&self) -> Arc<Manifest> {
        self.graph.manifest().clone()
    }

    fn native(&mut self) -> Option<&mut Graph> {
        Some(&mut self.graph)
    }

    fn read_elements(&mut self, at: Place, elements: Range<u64>, bytes: &mut Vec<u8>) {
        self.graph.read_elements(at, elements, bytes);
    }

    fn write_elements(&mut self, at: Place, first: u64, bytes: &[u8]) {
        self.graph.write_elements(at, first, bytes);
    }

    fn read_entries(&mut self, at: Place, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.graph.read_entries(at, each);
    }

    fn write_entry(&mut self, at: Place, key: &[u8], value: &[u8]) -> bool {
        self.graph.write_entry(at, key, value)
    }

    fn delete_entry(&mut self, at: Place, key: &[u8]) {
        self.graph.delete_entry(at, key);
    }

    fn mask(&self, instance: usize) -> u64 {
        self.graph.mask(instance)
    }

    fn set_mask(&mut self, instance: usize, mask: u64) {
        self.graph.set_mask(instance, mask);
    }

    fn is_suspended(&self, instance: usize) -> bool {
        self.graph.is_suspended(instance)
    }

    fn drain(&mut self) -> Result<(), DeviceError> {
        self.put_aside()?;
        for _ in 0..MOST_DRAIN_RUNS {
            let (status, has_moved) = self.drain_once()?;
            if !has_moved && status != RunStatus::Budget {
                break;
            }
        }
        Ok(())
    }

    fn waiting_frames(&mut self, endpoint: usize) -> usize {
        if self.program.graph.endpoints[endpoint].direction == Direction::Into {
            return self.held[endpoint].waiting();
        }
        let begun = self.graph.take_begun_frame(endpoint);
        if let Some(begun) = &begun {
            self.graph.put_begun_frame(endpoint, begun);
        }
        let waiting = self.outputs[endpoint].waiting.count() + self.earlier[endpoint].waiting();
        waiting + usize::from(begun.is_some())
    }

    fn waiting_items(&mut self, channel: usize) -> usize {
        self.graph.waiting(channel) as usize
    }

    fn take_frames(&mut self, endpoint: usize) -> WaitingFrames {
        if self.program.graph.endpoints[endpoint].direction == Direction::Into {
            let frames = std::mem::take(&mut self.held[endpoint]);
            let taken_bytes = self.graph.read_of_frame(endpoint) as usize;
            return WaitingFrames { frames, taken_bytes, begun: None };
        }
        let begun = self.graph.take_begun_frame(endpoint).map(|frame| frame.bytes);
        WaitingFrames { frames: std::mem::take(&mut self.earlier[endpoint]), taken_bytes: 0, begun }
    }

    fn give_frames(&mut self, endpoint: usize, waiting: WaitingFrames) -> usize {
        let count = waiting.frames.waiting();
        if self.program.graph.endpoints[endpoint].direction == Direction::Into {
            self.held[endpoint] = waiting.frames;
            self.graph.set_read_of_frame(endpoint, waiting.taken_bytes as u64);
            return count;
        }
        self.earlier[endpoint] = waiting.frames;
        let begun = waiting.begun.map(|bytes| BegunFrame { bytes, is_inside: true });
        let continues = begun.is_some_and(|begun| self.graph.put_begun_frame(endpoint, &begun));
        count + usize::from(continues)
    }

    fn item_room(&self, channel: usize) -> usize {
        self.graph.slots(channel) as usize
    }

    fn take_items(&mut self, channel: usize) -> WaitingItems {
        let (is_dropping, is_inside) = self.graph.passing(channel);
        // Native code keeps this state of lossy channels only.
        let is_lossy = self.program.graph.channels[channel].on_full == OnFull::DropCounted;
        let items = self.graph.take_items(channel);
        WaitingItems { items, is_dropping, is_inside: is_lossy.then_some(is_inside) }
    }

    fn give_items(&mut self, channel: usize, waiting: WaitingItems) -> usize {
        let item = self.graph.manifest().channels[channel].item;
        let is_inside = match (waiting.items.last(), item) {
            (Some(LooseItem::Bits(flit)), ItemInfo::Flit) => !Header::of(flit).eop,
            _ => waiting.is_inside == Some(true),
        };
        self.graph.set_passing(channel, (waiting.is_dropping, is_inside && !waiting.is_dropping));
        waiting.items.iter().take_while(|item| self.graph.put_item(channel, item)).count()
    }

    fn count_from(&mut self, counters: DeviceCounters) {
        self.counted_before = counters;
    }
}

impl CpuDevice<'_> {
    /// Runs the graph on the frames it holds, with all the room that its outputs have. Also returns
    /// whether a frame was taken or came out.
    fn drain_once(&mut self) -> Result<(RunStatus, bool), DeviceError> {
        let mut queues: Vec<FrameQueue> = self.held.iter_mut().map(std::mem::take).collect();
        let mut lent = vec![];
        for (at, queue) in queues.iter_mut().enumerate().filter(|(_, it)| it.waiting() > 0) {
            let batch = queue.lend(queue.waiting());
            lent.push(Lent { endpoint: EndpointId::new(at), batch, moved: &[], consumed: 0 });
        }
        let (status, _) = self.run_graph(&mut lent, None)?;
        let mut has_moved = lent.iter().any(|lent| lent.consumed > 0);
        has_moved |= self.outputs.iter().any(|output| output.waiting.count() > 0);
        self.outputs.iter_mut().for_each(|output| output.keep(&lent));
        lent.iter().try_for_each(|lent| self.hold(lent))?;
        self.put_aside()?;
        Ok((status, has_moved))
    }

    /// Copies the frames that wait in the buffers of the outputs, so that the buffers are free.
    fn put_aside(&mut self) -> Result<(), DeviceError> {
        for (at, (output, earlier)) in self.outputs.iter_mut().zip(&mut self.earlier).enumerate() {
            let waiting = &mut output.waiting;
            let mut first = waiting.gone;
            for stretch in &waiting.stretches {
                let frames = first..stretch.end.max(first);
                first = frames.end;
                if stretch.place == FramePlace::Nowhere {
                    waiting.dropped += frames.len() as u64;
                    continue;
                }
                for frame in &waiting.frames[frames] {
                    let bytes = &output.memory[frame.start..][..frame.length];
                    let pushed = earlier.push(bytes, frame.original_length, frame.timestamp_ns);
                    let id = EndpointId::new(at);
                    pushed.map_err(|source| port_error(&self.program, id, source))?;
                }
            }
            waiting.clear();
        }
        Ok(())
    }
}
