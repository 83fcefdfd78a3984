// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stages on the buses of the machine: reads and writes of memory by the NIC cores.

use super::{Pool, Resource, Stage, Way, ns};
use crate::path::{Path, Side};
use crate::profile::{End, Profile};

/// Payload up to which data come with the request that is posted.
pub(super) const INLINE_BYTES: u64 = 512;
/// Returns the number of banks that a range of addresses lies in; zero if a cache holds it.
pub(super) fn banks(profile: &Profile, side: Side, range: u64) -> u32 {
    let end = match side {
        Side::Soc => &profile.soc,
        _ => &profile.host,
    };
    if range as f64 <= end.cached * 1e6 {
        return 0;
    }
    let all = (end.channels * end.banks) as u64;
    range.div_ceil(end.bank_bytes as u64).clamp(1, all) as u32
}

impl Way<'_> {
    pub(super) fn end(&self, side: Side) -> &End {
        match side {
            Side::Soc => &self.profile.soc,
            _ => &self.profile.host,
        }
    }

    /// Returns whether requests pass the switch: on all paths but that of the plain NIC.
    fn has_switch(&self) -> bool {
        self.request.path != Path::Rnic
    }

    /// Returns the time of bytes with headers on a link.
    pub(super) fn wire(bytes: u64, packets: u64, header: f64, rate: f64) -> u64 {
        ns((bytes as f64 + packets as f64 * header) * 8.0 / rate)
    }

    fn link(&self, link: Resource, side: Side, bytes: u64) -> Stage {
        let Profile { pcie, pcie1, pcie0, internal, .. } = self.profile;
        let rate = match link {
            Resource::Pcie1Down | Resource::Pcie1Up => pcie1.rate,
            Resource::Pcie0Down | Resource::Pcie0Up => pcie0.rate,
            _ => internal.rate,
        };
        let mtu = if side == Side::Soc { pcie.mtu_soc } else { pcie.mtu_host };
        let packets = bytes.div_ceil(mtu as u64);
        let time = Self::wire(bytes, packets.max(1), pcie.header, rate);
        Stage::Transfer { link, time, bytes, packets }
    }

    fn hop(&self, side: Side) -> u64 {
        match side {
            Side::Soc => ns(self.profile.internal.latency),
            _ => ns(self.profile.pcie0.latency),
        }
    }

    /// Time from the NIC cores to an end, without queues and data.
    pub(super) fn way_to(&self, side: Side) -> u64 {
        let switch = ns(self.profile.pcie1.latency + self.profile.switch.pass);
        // The DMA engine is on the processor's side of the switch.
        let is_beside = self.request.path.is_dma() && side == Side::Soc;
        self.hop(side) + if self.has_switch() && !is_beside { switch } else { 0 }
    }

    /// Lays out the way of data from the NIC cores to an end.
    pub(super) fn down(&self, stages: &mut Vec<Stage>, side: Side, bytes: u64) {
        if self.has_switch() && !self.request.path.is_dma() {
            stages.push(self.link(Resource::Pcie1Down, side, bytes));
        }
        let last = if side == Side::Soc { Resource::InternalDown } else { Resource::Pcie0Down };
        stages.extend([self.link(last, side, bytes), Stage::Delay(self.way_to(side))]);
    }

    /// Lays out the way of data from an end to the NIC cores.
    pub(super) fn up(&self, stages: &mut Vec<Stage>, side: Side, bytes: u64) {
        let first = if side == Side::Soc { Resource::InternalUp } else { Resource::Pcie0Up };
        stages.extend([self.link(first, side, bytes), Stage::Delay(self.way_to(side))]);
        if self.has_switch() && !self.request.path.is_dma() {
            stages.push(self.link(Resource::Pcie1Up, side, bytes));
        }
    }

    fn memory(&self, stages: &mut Vec<Stage>, side: Side, bytes: u64, is_write: bool) {
        let end = self.end(side);
        // Small writes to a side with a cache end there.
        if !(is_write && end.cached > 0.0) {
            stages.push(Stage::Bank(side, ns(end.bank_busy)));
        }
        let data = Self::wire(bytes, 0, 0.0, end.channel_rate);
        let (time, least) = match is_write {
            true => (end.write, ns(end.channel_write)),
            false => (end.read, 0),
        };
        let channels = match side {
            Side::Soc => Resource::SocChannels,
            _ => Resource::HostChannels,
        };
        stages.extend([Stage::Serve(channels, data.max(least)), Stage::Delay(ns(time))]);
    }

    /// Returns the credits for a segment: one for each request on the bus, but never more than an
    /// eighth of all, since a segment stands for requests that follow each other.
    fn credits(&self, pool: Pool, bytes: u64) -> u32 {
        let requests = bytes.div_ceil(self.profile.pcie.read_request as u64).max(1);
        requests.min(u64::from(pool.credits(self.profile) / 8).max(1)) as u32
    }

    /// Lays out a read of an end's memory by the NIC cores.
    pub(super) fn read(&self, stages: &mut Vec<Stage>, side: Side, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let pool = if side == Side::Soc { Pool::SocReads } else { Pool::HostReads };
        let credits = self.credits(pool, bytes);
        stages.push(Stage::Take(pool, credits));
        self.down(stages, side, 0);
        self.memory(stages, side, bytes, false);
        self.up(stages, side, bytes);
        stages.push(Stage::Give(pool, credits));
    }

    /// Returns the stage of the NIC's tracking of a read from the device's processor. Parts that it
    /// does not track hold up those of all others.
    pub(super) fn track(&self) -> Stage {
        let time = |rate| Self::wire(self.bytes, 0, 0.0, rate);
        let Profile { nic, network, .. } = self.profile;
        Stage::Track { tracked: time(network.rate), untracked: time(nic.untracked) }
    }

    /// Lays out a write to an end's memory by the NIC cores.
    pub(super) fn write(&self, stages: &mut Vec<Stage>, side: Side, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let pool = if side == Side::Soc { Pool::SocWrites } else { Pool::HostWrites };
        let credits = self.credits(pool, bytes);
        stages.push(Stage::Take(pool, credits));
        self.down(stages, side, bytes);
        self.memory(stages, side, bytes, true);
        stages.push(Stage::Give(pool, credits));
    }

    /// Lays out the fetch of requests that were posted with one doorbell from an end's memory. A
    /// single request comes with its doorbell.
    pub(super) fn fetch(&self, stages: &mut Vec<Stage>, side: Side) {
        let batch = f64::from(self.request.batch);
        if batch > 1.0 {
            let round_trip = 2 * self.way_to(side) + ns(self.end(side).read);
            let together = batch.min(self.profile.nic.requests_per_fetch) as u64;
            let share = round_trip / together;
            stages.extend([Stage::Serve(Resource::Fetch, share), Stage::Delay(round_trip - share)]);
        }
    }

    /// Lays out the completion that the NIC cores write to an end.
    pub(super) fn completion(&self, stages: &mut Vec<Stage>, side: Side) {
        stages.push(Stage::Delay(self.way_to(side)));
    }
}
