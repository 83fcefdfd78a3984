// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writes of an end of the machine to another machine with such a device.
//!
//! The other machine takes the same data over the same links, each once, so that it limits nothing
//! that is not a limit here already: it only adds its time.

use super::bus::INLINE_BYTES;
use super::{Resource, Route, Stage, Way, ns};

impl Way<'_> {
    /// Lays out a write to another machine.
    pub(super) fn to_peer(&self, route: &mut Route) {
        let here = self.request.path.requester();
        let profile = self.profile;
        self.posting(route, here);
        let is_inline = self.request.bytes <= INLINE_BYTES;
        self.up(&mut route.before, here, if is_inline { self.bytes } else { 0 });
        self.fetch(&mut route.before, here);
        route.before.push(Stage::Nic(self.cores(), self.nic_time()));
        if !is_inline {
            self.read(&mut route.each, here, self.bytes);
        }
        let packets = self.bytes.div_ceil(profile.network.mtu as u64).max(1);
        let time = self.network_time(self.bytes, profile.network.rate);
        let link = Resource::NetworkOut;
        let bytes = self.bytes;
        route.each.push(Stage::Transfer { link, time, bytes, packets });
        let there = ns(profile.client.nic + profile.host.write) + self.way_to(here);
        let network = ns(profile.network.latency);
        route.after.extend([Stage::Delay(network + there), Stage::Delay(network)]);
        self.completion(&mut route.after, here);
        route.after.push(Stage::Delay(ns(self.end(here).completion)));
    }
}
