// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients to the host or to the device's processor: paths 1 and 2, and the plain NIC.

use super::{Cores, Resource, Route, Stage, Way, ns};
use crate::path::{Operation, Path, Side};

impl Way<'_> {
    /// Returns the time of bytes with the headers of their packets on the network.
    pub(super) fn network_time(&self, bytes: u64, rate: f64) -> u64 {
        let network = &self.profile.network;
        let packets = bytes.div_ceil(network.mtu as u64);
        // A packet may have several segments, which share its header.
        let headers = if bytes < self.request.bytes { bytes as f64 / network.mtu } else { 1.0 };
        let headers = headers.max(packets as f64 - 1.0) * network.header;
        ns((bytes as f64 + headers) * 8.0 / rate)
    }

    /// Lays out data on the network between a client and the device.
    fn network(&self, stages: &mut Vec<Stage>, inbound: bool, bytes: u64) {
        let network = &self.profile.network;
        let packets = bytes.div_ceil(network.mtu as u64);
        let time = |rate| self.network_time(bytes, rate);
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
        if self.request.path.end() == Side::Soc { Cores::Soc } else { Cores::Host }
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
        let (cores, echo) = match (self.request.path, self.request.path.target()) {
            (Path::Rnic, _) => (Resource::HostCores, self.profile.rnic.echo),
            (_, Side::Soc) => (Resource::SocCores, self.profile.soc.echo),
            _ => (Resource::HostCores, self.profile.host.echo),
        };
        stages.push(self.notice());
        stages.push(Stage::Serve(cores, ns(echo)));
        stages.push(self.return_way());
    }

    /// Returns the time until a core of the target notices a message.
    pub(super) fn notice(&self) -> Stage {
        Stage::Delay(ns(self.end(self.request.path.target()).notice))
    }

    /// Returns the time of an answer on its way to the NIC cores.
    pub(super) fn return_way(&self) -> Stage {
        let profile = self.profile;
        let passes = (profile.switch.message_passes - 1.0).max(0.0);
        let hop = match self.request.path.target() {
            Side::Soc => profile.internal.latency,
            _ => profile.pcie0.latency,
        };
        Stage::Delay(ns(hop + passes * profile.switch.pass))
    }

    /// Lays out the way of an answer from the NIC cores to the client.
    pub(super) fn answer_to_client(&self, stages: &mut Vec<Stage>, bytes: u64) {
        let client = &self.profile.client;
        self.network(stages, false, bytes);
        stages.push(Stage::Delay(ns(client.nic + client.completion)));
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
                return self.answer_to_client(&mut route.after, self.request.bytes);
            }
        }
        route.after.push(Stage::Delay(ns(client.nic + client.completion)));
    }
}
