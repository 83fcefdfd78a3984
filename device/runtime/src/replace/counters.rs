// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counters that continue over a replacement, so that a monitor never sees them decrease.

use crate::device::DeviceCounters;
use freeport_native::Manifest;
use std::collections::HashMap;

/// Maps the counters of the old graph, by name, to the ones that the new graph starts with.
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
