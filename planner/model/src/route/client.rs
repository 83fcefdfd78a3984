// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients to the host or to the device's processor: paths 1 and 2, and the plain NIC.

use super::{Cores, Resource, Route, Stage, Way, ns};
use crate::path::{Operation, Path, Side};

impl Way<'_> {
    fn network(&self, stages: &mut Vec<Stage>, inbound: bool, bytes: u64) {
        let network = &self.profile.network;
        let packets = bytes.div_ceil(network.mtu as u64);
        // A packet may have several segments, which share its header.
        let headers = if bytes < self.request.bytes { bytes as f64 / network.mtu } else { 1.0 };
        let headers = headers.max(packets as f64 - 1.0) * network.header;
        let time = |rate| ns((bytes as f64 + headers) * 8.0 / rate);
        let link = if inbound { Resource::NetworkIn } else { Resource::NetworkOut };
        let device = Stage::Transfer { link, time: time(network.rate), bytes, packets };
        let client = Stage::ClientPort { inbound: !inbound, time: time(self.profile.client.rate) };
        let latency = Stage::Delay(ns(network.latency));
        match inbound {
            true => stages.extend([client, latency, device]),
            false => stages.extend([device, latency, client]),
        }
    }

    pub(super) fn cores(&self) -> Cores {
        if self.request.path.target() == Side::Soc { Cores::Soc } else { Cores::Host }
    }

    /// Returns the time of a NIC core for the request. Without payload, no memory is accessed.
    pub(super) fn nic_time(&self) -> u64 {
        let nic = &self.profile.nic;
        let memory = match self.request.operation {
            Operation::Read => nic.read,
            Operation::Write => nic.write,
            Operation::Send => nic.write + nic.message,
        };
        ns(nic.request + if self.request.bytes > 0 { memory } else { 0.0 })
    }

    /// Lays out what a core of the target does with a message, up to its answer in the NIC cores.
    pub(super) fn answer(&self, stages: &mut Vec<Stage>) {
        let side = self.request.path.target();
        let end = self.end(side);
        let (cores, echo) = match (side, self.request.path) {
            (_, Path::Rnic) => (Resource::HostCores, self.profile.rnic.echo),
            (Side::Soc, _) => (Resource::SocCores, end.echo),
            _ => (Resource::HostCores, end.echo),
        };
        let profile = self.profile;
        let passes = (profile.switch.message_passes - 1.0).max(0.0);
        let hop = match side {
            Side::Soc => profile.internal.latency,
            _ => profile.pcie0.latency,
        };
        stages.extend([
            Stage::Delay(ns(end.notice)),
            Stage::Serve(cores, ns(echo)),
            Stage::Delay(ns(hop + passes * profile.switch.pass)),
        ]);
    }

    /// Lays out a client's request.
    pub(super) fn of_client(&self, route: &mut Route) {
        let client = &self.profile.client;
        let batch = f64::from(self.request.batch);
        (route.post, route.doorbell) = (ns(batch * client.post), ns(client.doorbell));
        let fetch = if batch > 1.0 { client.fetch } else { 0.0 };
        let side = self.request.path.target();
        route.before.push(Stage::Delay(ns(client.nic + fetch)));
        let (bytes, each) = (self.bytes, &mut route.each);
        match self.request.operation {
            Operation::Read => {
                self.network(&mut route.before, true, 0);
                route.before.push(Stage::Nic(self.cores(), self.nic_time()));
                if side == Side::Soc {
                    each.push(self.track());
                }
                self.read(each, side, bytes);
                self.network(each, false, bytes);
            }
            Operation::Write => {
                route.before.push(Stage::Nic(self.cores(), self.nic_time()));
                self.network(each, true, bytes);
                self.write(each, side, bytes);
                self.network(&mut route.after, false, 0);
            }
            Operation::Send => {
                route.before.push(Stage::Nic(self.cores(), self.nic_time()));
                self.network(each, true, bytes);
                self.write(each, side, bytes);
                self.answer(&mut route.after);
                self.network(&mut route.after, false, self.request.bytes);
            }
        }
        route.after.push(Stage::Delay(ns(client.nic + client.completion)));
    }
}
