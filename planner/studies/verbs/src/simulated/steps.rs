// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations of places as steps of the model, and waiting for them.

use super::Shared;
use crate::fault::Fault;
use crate::place::{Place, Way};
use freeport_plan_model::route::{Step, Time, ns};
use freeport_plan_model::{Operation, Path, Request, Side};
use futures::channel::oneshot;
use std::time::Duration;

/// Time in picoseconds after which a place notices that another one is gone. It is assumed,
/// and nothing was fitted with it.
pub(super) const GONE: Time = 20_000_000;

/// The connection between two places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Between {
    /// A path of the model.
    Path(Path),
    /// The network alone, which takes its time and has no other traffic.
    Network,
    /// None: both are the same place, whose cores access its own memory.
    Same,
}

impl Shared {
    /// Returns the connection between two places for an operation.
    ///
    /// # Errors
    /// [`Fault::NoPath`]: they have none with this operation.
    pub(super) fn between(
        &self,
        [from, to]: [Place; 2],
        way: Way,
        operation: Operation,
    ) -> Result<Between, Fault> {
        let between = match self.is_plain {
            _ if from == to => Some(Between::Same),
            true => plain_between(from, to),
            false => device_between(from, to, way),
        };
        between.filter(|between| has(*between, operation)).ok_or(Fault::NoPath {
            from,
            to,
            operation: match operation {
                Operation::Read => "read",
                Operation::Write => "write",
                Operation::Send => "call",
            },
        })
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

    /// Carries out a read or a write of a place.
    pub(super) async fn operate(
        &self,
        between: Between,
        from: Place,
        operation: Operation,
        bytes: usize,
    ) {
        match between {
            Between::Path(path) => {
                let request = Request::new(path, operation, bytes as u64);
                self.step(Step::Request(request), client(from)).await;
            }
            Between::Network => {
                self.one_way(bytes).await;
                self.one_way(0).await;
            }
            // As for the place's own accesses without an operation, it is part of its work.
            Between::Same => self.wait(0).await,
        }
    }

    /// Lets a message arrive at a core of another place.
    pub(super) async fn message(&self, between: Between, [from, to]: [Place; 2], bytes: usize) {
        match between {
            Between::Path(path) if path.has(Operation::Send) => {
                let message = Step::Message { path, bytes: bytes as u64 };
                self.step(message, client(from)).await;
            }
            Between::Path(path) => {
                let request = Request::new(path, Operation::Write, bytes as u64);
                self.step(Step::Request(request), 0).await;
                self.wait(ns(self.profile.host.notice)).await;
            }
            Between::Network => {
                self.one_way(bytes).await;
                self.wait(ns(self.profile.host.notice)).await;
            }
            Between::Same => self.wait(ns(self.profile.host.notice)).await,
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
    pub(super) async fn answer(&self, between: Between, from: Place, bytes: usize) {
        match between {
            Between::Path(path) if path.has(Operation::Send) => {
                let answer = Step::Answer { path, bytes: bytes as u64 };
                self.step(answer, client(from)).await;
            }
            Between::Path(_) | Between::Network => self.one_way(bytes).await,
            Between::Same => self.wait(ns(self.profile.host.notice)).await,
        }
    }

    async fn one_way(&self, bytes: usize) {
        let network = &self.profile.network;
        let nic = 2.0 * self.profile.client.nic;
        self.wait(ns(network.latency + nic + bytes as f64 * 8.0 / network.rate)).await;
    }
}

/// Returns the connection between two places of a machine with the device, and those around it.
fn device_between(from: Place, to: Place, way: Way) -> Option<Between> {
    let path = match (from, to, way) {
        (Place::Client(_), Place::Host, _) => Path::Host,
        (Place::Client(_), Place::Soc, _) => Path::Soc,
        (Place::Soc, Place::Host, Way::Nic) => Path::SocToHost,
        (Place::Soc, Place::Host, Way::Dma) => Path::DmaToHost,
        (Place::Host, Place::Soc, Way::Nic) => Path::HostToSoc,
        (Place::Host, Place::Soc, Way::Dma) => Path::DmaToSoc,
        (Place::Host, Place::Peer(_), _) => Path::HostToPeer,
        (Place::Soc, Place::Peer(_), _) => Path::SocToPeer,
        (Place::Client(_), Place::Client(_), _) => return None,
        // To clients, and to or from other machines.
        _ => return Some(Between::Network),
    };
    Some(Between::Path(path))
}

/// Returns the same for a machine with a plain NIC, which has no device's processor, and no path to
/// other such machines in the model.
fn plain_between(from: Place, to: Place) -> Option<Between> {
    match (from, to) {
        (Place::Client(_), Place::Host) => Some(Between::Path(Path::Rnic)),
        (Place::Host | Place::Peer(_), Place::Client(_)) => Some(Between::Network),
        (Place::Client(_) | Place::Peer(_), Place::Peer(_)) => Some(Between::Network),
        _ => None,
    }
}

/// Returns whether a connection has an operation. A path without messages has calls as well: they
/// are writes to a ring that the other place polls.
fn has(between: Between, operation: Operation) -> bool {
    match between {
        Between::Path(path) => operation == Operation::Send || path.has(operation),
        Between::Network | Between::Same => true,
    }
}

/// Returns a time in picoseconds. Longer ones than the clock of a run can have are cut: half of its
/// range, 106 days.
pub(super) fn picoseconds(time: Duration) -> Time {
    const LONGEST: Time = Time::MAX / 2;
    Time::try_from(time.as_nanos().saturating_mul(1000)).unwrap_or(LONGEST).min(LONGEST)
}

/// Returns the number of a machine of clients.
fn client(place: Place) -> u32 {
    match place {
        Place::Client(number) => number.into(),
        _ => 0,
    }
}
