// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters that go on over a replacement, so that whoever watches them never sees them go back.

use crate::device::{DeviceCounters, EndpointCounters};
use freeport_ir::oracle::{ChannelCounters, InstanceCounters};
use freeport_native::Manifest;
use std::collections::HashMap;

/// The counters of the old graph as the new one begins with them: by its names.
pub(super) fn renamed(counted: &DeviceCounters, old: &Manifest, new: &Manifest) -> DeviceCounters {
    let instances = |of: &Manifest| names(&of.instances, |it| &it.name);
    let channels = |of: &Manifest| names(&of.channels, |it| &it.name);
    let endpoints = |of: &Manifest| names(&of.endpoints, |it| &it.name);
    DeviceCounters {
        instances: by_name(&counted.instances, instances(old), instances(new)),
        channels: by_name(&counted.channels, channels(old), channels(new)),
        fills: by_name(&counted.fills, channels(old), channels(new)),
        endpoints: by_name(&counted.endpoints, endpoints(old), endpoints(new)),
    }
}

fn names<T>(of: &[T], name: impl Fn(&T) -> &String) -> Vec<String> {
    of.iter().map(|it| name(it).clone()).collect()
}

fn by_name<T: Clone + Default>(counted: &[T], old: Vec<String>, new: Vec<String>) -> Vec<T> {
    let known: HashMap<String, &T> = old.into_iter().zip(counted).collect();
    new.iter().map(|name| known.get(name).map(|it| (*it).clone()).unwrap_or_default()).collect()
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
