// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of a place that is a process.

use super::Shared;
use super::memory::RegisteredMemory;
use super::stable::FabricStable;
use super::turns;
use crate::fault::Fault;
use crate::place::{Address, Place, Way};
use crate::verbs::{Call, Verbs};
use freeport_fabric::shm::OwnPlace;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

/// Memory of a place that is a process.
pub type FabricMemory = RegisteredMemory<OwnPlace>;

/// A place that is a process.
#[derive(Clone)]
pub struct FabricVerbs {
    pub(super) shared: Rc<Shared>,
}

impl Verbs for FabricVerbs {
    type Memory = FabricMemory;
    type Stable = FabricStable;

    fn place(&self) -> Place {
        self.shared.mine.place
    }

    async fn read(&self, from: Address, bytes: usize, _: Way) -> Result<Vec<u8>, Fault> {
        let peer = self.shared.connection(from.place).await?;
        peer.read(from.at, bytes).await
    }

    async fn write(&self, to: Address, data: Vec<u8>, _: Way) -> Result<(), Fault> {
        let peer = self.shared.connection(to.place).await?;
        peer.write(to.at, &data).await
    }

    async fn call(&self, to: Place, message: Vec<u8>) -> Result<Vec<u8>, Fault> {
        let peer = self.shared.connection(to).await?;
        peer.call(message).await
    }

    async fn receive(&self) -> Call {
        self.shared.turns.breathe().await;
        self.shared.inbox.receive().await
    }

    fn memory(&self) -> &FabricMemory {
        &self.shared.memory
    }

    fn stable(&self) -> &FabricStable {
        &self.shared.stable
    }

    /// Returns at once, or in the next turn: the caller's own code occupies the core.
    async fn work(&self, _: Duration) {
        self.shared.turns.breathe().await;
    }

    async fn sleep(&self, time: Duration) {
        self.shared.turns.sleep(time).await;
    }

    /// Returns the time since the machine has begun, which all its processes share.
    fn now(&self) -> Duration {
        turns::now()
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.shared.tasks.spawn(self.place(), task);
    }
}
