// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of a simulated place.

use super::Shared;
use super::place::{SimulatedMemory, SimulatedStable, State};
use super::steps::{GONE, picoseconds};
use crate::fault::Fault;
use crate::place::{Address, Place, Way};
use crate::verbs::{Call, Memory, Verbs};
use freeport_plan_model::route::Step;
use freeport_plan_model::{Operation, Side};
use futures::channel::oneshot;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

/// A place on the simulated machine.
#[derive(Clone)]
pub struct Simulated {
    shared: Rc<Shared>,
    place: Place,
    state: Rc<State>,
    stable: SimulatedStable,
}

impl Simulated {
    pub(super) fn new(shared: &Rc<Shared>, place: Place, state: Rc<State>) -> Self {
        let contents = Rc::clone(&state.contents);
        let stable = SimulatedStable { shared: Rc::clone(shared), contents };
        Self { shared: Rc::clone(shared), place, state, stable }
    }

    /// Returns another place and the number of its life.
    async fn other(&self, place: Place) -> Result<(Rc<State>, u64), Fault> {
        let other = self.shared.places.borrow().get(&place).cloned();
        match other.as_ref().and_then(|other| other.life()) {
            Some(life) => Ok((other.expect("it is alive"), life)),
            None => {
                self.shared.wait(GONE).await;
                Err(Fault::Gone(place))
            }
        }
    }

    /// Returns another place's memory for an access.
    async fn memory_of(&self, address: Address, bytes: usize) -> Result<(Rc<State>, u64), Fault> {
        let Address { place, at } = address;
        let (other, life) = self.other(place).await?;
        let (size, bytes) = (other.memory.bytes(), bytes as u64);
        if at.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(Fault::OutOfRange { place, at, bytes, size });
        }
        Ok((other, life))
    }
}

/// Returns the length of the first part of data: a multiple of 8, so that words stay whole.
fn first_part(bytes: usize) -> usize {
    bytes / 2 / 8 * 8
}

impl Verbs for Simulated {
    type Memory = SimulatedMemory;
    type Stable = SimulatedStable;

    fn place(&self) -> Place {
        self.place
    }

    async fn read(&self, from: Address, bytes: usize, way: Way) -> Result<Vec<u8>, Fault> {
        let between = self.shared.between([self.place, from.place], way, Operation::Read)?;
        let (other, life) = self.memory_of(from, bytes).await?;
        let first = first_part(bytes);
        let mut data = other.memory.load(from.at, first);
        self.shared.operate(between, self.place, Operation::Read, bytes).await;
        if other.life() != Some(life) {
            return Err(Fault::Gone(from.place));
        }
        data.extend(other.memory.load(from.at + first as u64, bytes - first));
        Ok(data)
    }

    async fn write(&self, to: Address, data: Vec<u8>, way: Way) -> Result<(), Fault> {
        let between = self.shared.between([self.place, to.place], way, Operation::Write)?;
        let (other, life) = self.memory_of(to, data.len()).await?;
        let first = first_part(data.len());
        other.memory.store(to.at, &data[..first]);
        self.shared.operate(between, self.place, Operation::Write, data.len()).await;
        if other.life() != Some(life) {
            return Err(Fault::Gone(to.place));
        }
        other.memory.store(to.at + first as u64, &data[first..]);
        Ok(())
    }

    async fn call(&self, to: Place, message: Vec<u8>) -> Result<Vec<u8>, Fault> {
        let ends = [self.place, to];
        let between = self.shared.between(ends, Way::Nic, Operation::Send)?;
        let (other, life) = self.other(to).await?;
        self.shared.message(between, ends, message.len()).await;
        if other.life() != Some(life) {
            return Err(Fault::Gone(to));
        }
        let (sender, answer) = oneshot::channel();
        // A caller that has died does not wait for the answer.
        let call = Call::new(self.place, message, move |answer| drop(sender.send(answer)));
        other.inbox.deliver(call);
        let Ok(answer) = answer.await else {
            self.shared.wait(GONE).await;
            return Err(Fault::Gone(to));
        };
        self.shared.answer(between, self.place, answer.len()).await;
        Ok(answer)
    }

    async fn receive(&self) -> Call {
        self.state.inbox.receive().await
    }

    fn memory(&self) -> &SimulatedMemory {
        &self.state.memory
    }

    fn stable(&self) -> &SimulatedStable {
        &self.stable
    }

    async fn work(&self, time: Duration) {
        let side = match self.place {
            Place::Client(_) => Side::Client,
            Place::Host => Side::Host,
            Place::Soc => Side::Soc,
            Place::Peer(_) => Side::Peer,
        };
        let time = picoseconds(time);
        self.shared.step(Step::Work { side, time }, 0).await;
    }

    async fn sleep(&self, time: Duration) {
        self.shared.wait(picoseconds(time)).await;
    }

    fn now(&self) -> Duration {
        self.shared.now()
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.shared.tasks.spawn(self.place, task);
    }
}
