// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters of a device. The counters of a device that replaces another continue those of its
//! predecessor.

use freeport_ir::oracle::{ChannelCounters, InstanceCounters, Occupancy};

/// All counters of a device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceCounters {
    /// Counters by instance.
    pub instances: Vec<InstanceCounters>,
    /// Traffic by channel.
    pub channels: Vec<ChannelCounters>,
    /// Occupancy by channel.
    pub fills: Vec<Occupancy>,
    /// Counters by endpoint.
    pub endpoints: Vec<EndpointCounters>,
}

/// Traffic of an endpoint of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Frames received from the port, or accepted by it.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Frames that no port carries: none is bound, or the frame is empty or too long.
    pub dropped: u64,
}

impl DeviceCounters {
    /// Adds `before` to these counters; entries that `before` lacks count as 0.
    pub(crate) fn after(mut self, before: &Self) -> Self {
        for (at, counted) in self.instances.iter_mut().enumerate() {
            if let Some(before) = before.instances.get(at) {
                let InstanceCounters { firings, out_of_range, empty_reads, traps } = before;
                counted.firings += firings;
                counted.out_of_range += out_of_range;
                counted.empty_reads += empty_reads;
                for (code, count) in traps {
                    *counted.traps.entry(*code).or_default() += count;
                }
            }
        }
        for (at, counted) in self.channels.iter_mut().enumerate() {
            let ChannelCounters { items, packets, bytes, stalls, dropped } =
                before.channels.get(at).copied().unwrap_or_default();
            counted.items += items;
            counted.packets += packets;
            counted.bytes += bytes;
            counted.stalls += stalls;
            counted.dropped += dropped;
        }
        for (at, fill) in self.fills.iter_mut().enumerate() {
            let before = before.fills.get(at).copied().unwrap_or_default();
            fill.peak = fill.peak.max(before.peak.min(fill.room));
        }
        for (at, counted) in self.endpoints.iter_mut().enumerate() {
            let EndpointCounters { frames, bytes, dropped } =
                before.endpoints.get(at).copied().unwrap_or_default();
            counted.frames += frames;
            counted.bytes += bytes;
            counted.dropped += dropped;
        }
        self
    }
}
