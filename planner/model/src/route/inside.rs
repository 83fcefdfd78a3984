// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests between host and the device's processor: path 3 through the NIC cores, and path 3* by
//! DMA.

use super::bus::INLINE_BYTES;
use super::{Resource, Route, Stage, Way, ns};
use crate::path::{Operation, Side};

impl Way<'_> {
    fn loopback(&self, stages: &mut Vec<Stage>, bytes: u64) {
        let time = Self::wire(bytes, 0, 0.0, self.profile.nic.loopback);
        stages.push(Stage::Transfer { link: Resource::Loopback, time, bytes, packets: 0 });
    }

    /// Returns the cores that post and answer messages at an end, if no others post.
    fn poster(&self, side: Side) -> Option<Resource> {
        let cores = if side == Side::Soc { Resource::SocCores } else { Resource::HostCores };
        (self.end(side).posting_cores == 0.0).then_some(cores)
    }

    /// Sets the times of posting at an end.
    pub(super) fn posting(&self, route: &mut Route, here: Side) {
        let end = self.end(here);
        let batch = f64::from(self.request.batch);
        (route.post, route.doorbell) = (ns(batch * end.post), ns(end.doorbell));
        route.poster = self.poster(here);
    }

    /// Lays out a request through the NIC cores: what is read at one end is written at the other.
    /// Small data come with the request.
    pub(super) fn inside(&self, route: &mut Route) {
        let (here, there) = (self.request.path.requester(), self.request.path.target());
        let bytes = self.bytes;
        self.posting(route, here);
        let is_inline =
            self.request.operation != Operation::Read && self.request.bytes <= INLINE_BYTES;
        self.up(&mut route.before, here, if is_inline { bytes } else { 0 });
        self.fetch(&mut route.before, here);
        route.before.push(Stage::Nic(self.cores(), self.nic_time() + ns(self.profile.nic.inside)));
        let each = &mut route.each;
        match self.request.operation {
            Operation::Read => {
                if there == Side::Soc {
                    each.push(self.track());
                }
                self.read(each, there, bytes);
                self.loopback(each, bytes);
                self.write(each, here, bytes);
            }
            Operation::Write | Operation::Send => {
                if !is_inline {
                    self.read(each, here, bytes);
                }
                self.loopback(each, bytes);
                self.write(each, there, bytes);
            }
        }
        let after = &mut route.after;
        match self.request.operation {
            Operation::Read => {}
            Operation::Write => self.completion(after, here),
            Operation::Send => {
                self.answer(after);
                return self.answer_inside(after, here);
            }
        }
        after.push(Stage::Delay(ns(self.end(here).completion)));
    }

    /// Lays out the way of an answer from the NIC cores to the end that sent the message.
    pub(super) fn answer_inside(&self, stages: &mut Vec<Stage>, here: Side) {
        self.write(stages, here, self.request.bytes);
        stages.push(Stage::Delay(ns(self.end(here).completion)));
    }

    /// Lays out a copy by the DMA engine, which is on the side of the device's processor.
    pub(super) fn by_dma(&self, route: &mut Route) {
        let (here, there) = (self.request.path.requester(), self.request.path.target());
        let (dma, end) = (&self.profile.dma, self.end(here));
        let batch = f64::from(self.request.batch);
        (route.post, route.doorbell) = (ns(batch * dma.post), ns(end.doorbell));
        route.poster = self.poster(here);
        route.before.push(Stage::Serve(Resource::Dma, ns(dma.copy)));
        let (from, to) = match self.request.operation {
            Operation::Read => (there, here),
            _ => (here, there),
        };
        let (bytes, each) = (self.bytes, &mut route.each);
        self.read(each, from, bytes);
        let time = Self::wire(bytes, 0, 0.0, dma.rate);
        each.push(Stage::Transfer { link: Resource::DmaRate, time, bytes, packets: 0 });
        self.write(each, to, bytes);
        route.after.push(Stage::Delay(ns(end.completion)));
    }
}
