// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A registry in memory, for tests: its time can be advanced by hand, and calls can fail.
//!
//! [`MemoryRegistry`] has the contents. Each node of a test reaches them through a
//! [`MemoryClient`] of its own, which has [faults](Fault) of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use crate::id::NodeId;
use crate::registry::{Presence, Registry, RegistryError, Revision, State, SwapError, Versioned};
use crate::topology::Topology;

/// Contents of a registry in memory. Clones share them.
#[derive(Clone)]
pub struct MemoryRegistry(Arc<Shared>);

/// The way of one caller to a [`MemoryRegistry`]. Clones share its fault.
#[derive(Clone)]
pub struct MemoryClient {
    registry: MemoryRegistry,
    fault: Arc<Mutex<Fault>>,
}

/// How calls of a client fail, until another fault is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// They do not.
    #[default]
    None,
    /// Requests are lost: calls have no effect, and fail.
    Unreachable,
    /// Answers are lost: calls take effect, and fail.
    AnswerLost,
    /// Calls succeed after these times. With time by hand, a call advances the time itself, so a
    /// test with a single thread does not hang.
    Delayed {
        /// Time until a call takes effect.
        request: Duration,
        /// Time from then on until the caller has the answer.
        answer: Duration,
    },
}

/// The reason in the errors of faults.
const REASON: &str = "a test has made it unreachable";

enum Clock {
    Real(Instant),
    ByHand(Duration),
}

struct Shared {
    contents: Mutex<Contents>,
    /// Contents have changed, or the time by hand.
    changed: Condvar,
}

struct Contents {
    clock: Clock,
    topology: Option<Versioned>,
    leases: BTreeMap<NodeId, Lease>,
}

struct Lease {
    presence: Presence,
    end: Duration,
}

impl Default for MemoryRegistry {
    /// An empty registry whose leases end by the real clock.
    fn default() -> Self {
        Self::new(Clock::Real(Instant::now()))
    }
}

impl MemoryRegistry {
    /// An empty registry whose time stands still until [`MemoryRegistry::advance`].
    pub fn with_time_by_hand() -> Self {
        Self::new(Clock::ByHand(Duration::ZERO))
    }

    fn new(clock: Clock) -> Self {
        let contents = Contents { clock, topology: None, leases: BTreeMap::new() };
        Self(Arc::new(Shared { contents: Mutex::new(contents), changed: Condvar::new() }))
    }

    /// A client without faults.
    pub fn client(&self) -> MemoryClient {
        MemoryClient { registry: self.clone(), fault: Arc::default() }
    }

    /// Time since the registry was made.
    pub fn now(&self) -> Duration {
        self.contents().now()
    }

    /// Advances the time.
    ///
    /// # Panics
    /// The registry has the real time.
    pub fn advance(&self, by: Duration) {
        match &mut self.contents().clock {
            Clock::ByHand(now) => *now += by,
            Clock::Real(_) => panic!("the real time cannot be advanced"),
        }
        self.0.changed.notify_all();
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.contents.lock().expect("no holder of the lock panics")
    }

    /// Lets a part of a delay pass.
    fn pass(&self, time: Duration) {
        let is_by_hand = matches!(self.contents().clock, Clock::ByHand(_));
        if is_by_hand { self.advance(time) } else { thread::sleep(time) }
    }

    fn wait(&self, seen: &State, timeout: Duration) -> State {
        let mut contents = self.contents();
        let end = contents.now() + timeout;
        loop {
            let (state, now) = (contents.state(), contents.now());
            if state.is_news(seen) || now >= end {
                return state;
            }
            let next = contents.next_end().map_or(end, |lease| lease.min(end));
            contents = match contents.clock {
                Clock::ByHand(_) => {
                    self.0.changed.wait(contents).expect("no holder of the lock panics")
                }
                Clock::Real(_) => {
                    let waited = self.0.changed.wait_timeout(contents, next - now);
                    waited.expect("no holder of the lock panics").0
                }
            };
        }
    }
}

impl Contents {
    fn now(&self) -> Duration {
        match self.clock {
            Clock::Real(begin) => begin.elapsed(),
            Clock::ByHand(now) => now,
        }
    }

    fn has_lease(&self, node: NodeId) -> bool {
        self.leases.get(&node).is_some_and(|lease| self.now() < lease.end)
    }

    fn next_end(&self) -> Option<Duration> {
        let now = self.now();
        self.leases.values().map(|lease| lease.end).filter(|end| *end > now).min()
    }

    fn state(&self) -> State {
        let now = self.now();
        let held = self.leases.iter().filter(|(_, lease)| now < lease.end);
        let nodes = held.map(|(node, lease)| (*node, lease.presence.clone())).collect();
        State { topology: self.topology.clone(), nodes }
    }

    fn swap(
        &mut self,
        expected: Option<Revision>,
        absent: Option<NodeId>,
        topology: &Topology,
    ) -> Result<Revision, SwapError> {
        let stored = self.topology.as_ref().map(|stored| stored.revision);
        if stored != expected {
            return Err(SwapError::Changed);
        }
        if absent.is_some_and(|node| self.has_lease(node)) {
            return Err(SwapError::Present);
        }
        let revision = Revision(stored.unwrap_or_default().0 + 1);
        self.topology = Some(Versioned { revision, topology: topology.clone() });
        Ok(revision)
    }

    fn keep(
        &mut self,
        node: NodeId,
        presence: &Presence,
        time: Duration,
    ) -> Result<(), RegistryError> {
        let is_other = self.leases.get(&node).is_some_and(|lease| {
            lease.presence.session != presence.session && self.now() < lease.end
        });
        if is_other {
            return Err(RegistryError::Taken);
        }
        let lease = Lease { presence: presence.clone(), end: self.now() + time };
        self.leases.insert(node, lease);
        Ok(())
    }

    fn leave(&mut self, node: NodeId, session: u64) {
        if self.leases.get(&node).is_some_and(|lease| lease.presence.session == session) {
            self.leases.remove(&node);
        }
    }
}

impl MemoryClient {
    /// Sets how all later calls fail.
    pub fn set_fault(&self, fault: Fault) {
        *self.fault.lock().expect("no holder of the lock panics") = fault;
    }

    fn fault(&self) -> Fault {
        *self.fault.lock().expect("no holder of the lock panics")
    }

    /// Makes a call with the present fault. The inner result has what the call returned; `Err` says
    /// how it failed, and if it may have taken effect.
    fn call<T>(&self, call: impl FnOnce(&MemoryRegistry) -> T) -> Result<T, Lost> {
        match self.fault() {
            Fault::None => Ok(call(&self.registry)),
            Fault::Unreachable => Err(Lost::Request),
            Fault::AnswerLost => {
                call(&self.registry);
                Err(Lost::Answer)
            }
            Fault::Delayed { request, answer } => {
                self.registry.pass(request);
                let result = call(&self.registry);
                self.registry.pass(answer);
                Ok(result)
            }
        }
    }

    /// See [`MemoryClient::call`]; the call changes the contents.
    fn change<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> Result<T, Lost> {
        self.call(|registry| {
            let result = change(&mut registry.contents());
            registry.0.changed.notify_all();
            result
        })
    }
}

/// The part of a call that a fault has lost.
enum Lost {
    Request,
    Answer,
}

impl From<Lost> for RegistryError {
    fn from(_: Lost) -> Self {
        Self::Unavailable(REASON.to_owned())
    }
}

impl Registry for MemoryClient {
    fn read(&self) -> Result<State, RegistryError> {
        Ok(self.call(|registry| registry.contents().state())?)
    }

    fn wait(&self, seen: &State, timeout: Duration) -> Result<State, RegistryError> {
        Ok(self.call(|registry| registry.wait(seen, timeout))?)
    }

    fn swap(
        &self,
        expected: Option<Revision>,
        absent: Option<NodeId>,
        topology: &Topology,
    ) -> Result<Revision, SwapError> {
        topology.check().map_err(SwapError::Invalid)?;
        match self.change(|contents| contents.swap(expected, absent, topology)) {
            Ok(result) => result,
            Err(lost @ Lost::Request) => Err(SwapError::Failed(lost.into())),
            Err(lost @ Lost::Answer) => Err(SwapError::Unknown(lost.into())),
        }
    }

    fn keep(&self, node: NodeId, presence: &Presence, time: Duration) -> Result<(), RegistryError> {
        self.change(|contents| contents.keep(node, presence, time))?
    }

    fn leave(&self, node: NodeId, session: u64) -> Result<(), RegistryError> {
        Ok(self.change(|contents| contents.leave(node, session))?)
    }
}
