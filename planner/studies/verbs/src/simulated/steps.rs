// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations of places as steps of the model, and waiting for them.

use super::Shared;
use crate::place::{Place, Way};
use freeport_plan_model::route::{Step, Time, ns};
use freeport_plan_model::{Operation, Path, Request, Side};
use futures::channel::oneshot;

/// Time in picoseconds after which a place notices that another one is gone.
pub(super) const GONE: Time = 20_000_000;

impl Shared {
    /// Returns the path between two places, if the model has one.
    pub(super) fn path(&self, from: Place, to: Place, way: Way) -> Option<Path> {
        match (from, to, way) {
            (Place::Client(_), Place::Host, _) if self.is_plain => Some(Path::Rnic),
            (Place::Client(_), Place::Host, _) => Some(Path::Host),
            (Place::Client(_), Place::Soc, _) => Some(Path::Soc),
            (Place::Soc, Place::Host, Way::Nic) => Some(Path::SocToHost),
            (Place::Soc, Place::Host, Way::Dma) => Some(Path::DmaToHost),
            (Place::Host, Place::Soc, Way::Nic) => Some(Path::HostToSoc),
            (Place::Host, Place::Soc, Way::Dma) => Some(Path::DmaToSoc),
            (Place::Host, Place::Peer(_), _) => Some(Path::HostToPeer),
            (Place::Soc, Place::Peer(_), _) => Some(Path::SocToPeer),
            _ => None,
        }
    }

    /// Carries out a step.
    pub(super) async fn step(&self, step: Step, client: u32) {
        let (sender, done) = oneshot::channel();
        {
            let mut session = self.session.borrow_mut();
            let ticket = session.begin(step, client).expect("the step's path was looked up");
            self.waiting.borrow_mut().insert(ticket, sender);
        }
        // The sender lives until the step is over; with the world, it all ends.
        let _ = done.await;
    }

    /// Lets a time in picoseconds pass.
    pub(super) async fn wait(&self, time: Time) {
        let (sender, done) = oneshot::channel();
        let ticket = self.session.borrow_mut().wait(time);
        self.waiting.borrow_mut().insert(ticket, sender);
        let _ = done.await;
    }

    /// Carries out an operation from one place to another: on its path, or in the time of a network
    /// that nobody else uses.
    pub(super) async fn operate(
        &self,
        [from, to]: [Place; 2],
        way: Way,
        operation: Operation,
        bytes: usize,
    ) {
        let path = self.path(from, to, way).filter(|path| path.has(operation));
        match path {
            Some(path) => {
                let request = Request::new(path, operation, bytes as u64);
                self.step(Step::Request(request), client(from)).await;
            }
            None => {
                self.one_way(bytes).await;
                self.one_way(0).await;
            }
        }
    }

    /// Lets a message arrive at a core of another place.
    pub(super) async fn message(&self, [from, to]: [Place; 2], bytes: usize) {
        match self.path(from, to, Way::Nic) {
            Some(path) if path.has(Operation::Send) => {
                let message = Step::Message { path, bytes: bytes as u64 };
                self.step(message, client(from)).await;
            }
            Some(path) => {
                let request = Request::new(path, Operation::Write, bytes as u64);
                self.step(Step::Request(request), 0).await;
                self.wait(ns(self.profile.host.notice)).await;
            }
            None => {
                self.one_way(bytes).await;
                self.wait(ns(self.profile.host.notice)).await;
            }
        }
        let (side, echo) = match to {
            Place::Host if self.is_plain => (Side::Host, self.profile.rnic.echo),
            Place::Host => (Side::Host, self.profile.host.echo),
            Place::Soc => (Side::Soc, self.profile.soc.echo),
            Place::Client(_) | Place::Peer(_) => (Side::Peer, self.profile.host.echo),
        };
        self.step(Step::Work { side, time: ns(echo) }, 0).await;
    }

    /// Lets the answer to a message return.
    pub(super) async fn answer(&self, [from, to]: [Place; 2], bytes: usize) {
        match self.path(from, to, Way::Nic).filter(|path| path.has(Operation::Send)) {
            Some(path) => {
                let answer = Step::Answer { path, bytes: bytes as u64 };
                self.step(answer, client(from)).await;
            }
            None => self.one_way(bytes).await,
        }
    }

    async fn one_way(&self, bytes: usize) {
        let network = &self.profile.network;
        let nic = 2.0 * self.profile.client.nic;
        self.wait(ns(network.latency + nic + bytes as f64 * 8.0 / network.rate)).await;
    }
}

/// Returns the number of a machine of clients.
fn client(place: Place) -> u32 {
    match place {
        Place::Client(number) => number.into(),
        _ => 0,
    }
}
