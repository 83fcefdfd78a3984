// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a device counts. The counters of a device that replaces another continue those of its
//! predecessor.

use freeport_ir::oracle::{ChannelCounters, InstanceCounters, Occupancy};

/// Everything a device counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceCounters {
    /// By instance.
    pub instances: Vec<InstanceCounters>,
    /// By channel.
    pub channels: Vec<ChannelCounters>,
    /// By channel.
    pub fills: Vec<Occupancy>,
    /// By endpoint.
    pub endpoints: Vec<EndpointCounters>,
}

/// What passed an outer end of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Frames that came in from the port, or that the port accepted.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that no port carries: none is bound, or the frame is empty or too long.
    pub dropped: u64,
}

impl DeviceCounters {
    /// These, counted on from `before`; what that has not counted from 0.
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
