// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A registry in etcd, over its JSON gateway.
//!
//! 1. The slot map is one key, and each node has a key with a lease of etcd. A change is one
//!    transaction, which compares revisions of keys; a missing key has revision 0.
//! 2. [`Registry::keep`] gets a new lease each time and puts the node's key under it. The old one
//!    ends without effect. Both steps pass etcd's consensus, so the time of the lease begins
//!    after the call did, whichever member answers. (Prolonging a lease does not: a member that no
//!    longer is the leader may confirm it.)
//! 3. [`Registry::wait`] has a copy of the contents, which a watch keeps up to date ([`mirror`]).

mod client;
mod contents;
mod endpoint;
mod http;
mod messages;
mod mirror;
mod options;
mod reading;
mod watch;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::client::{CallError, Client, Repeat};
use self::contents::Keys;
use self::messages::{GrantAnswer, TxnAnswer, delete, get, get_all, is_at, put, txn};
use self::mirror::{Mirror, MirrorError, Snapshot};
use self::watch::Watch;
use crate::id::NodeId;
use crate::registry::{Presence, Registry, RegistryError, Revision, State, SwapError};
use crate::stored::{check_length, decode, encode};
use crate::topology::Topology;

pub use self::options::EtcdOptions;
pub use self::reading::read_etcd_answer;

/// Longest time of a call. Calls of a process with a lease take at most a third of its time.
const CALL_LIMIT: Duration = Duration::from_secs(2);
/// Calls other than those that prolong a lease have this time at least.
const LEAST_LIMIT: Duration = Duration::from_millis(300);
/// Pause between two looks for changes without a watch.
const POLL: Duration = Duration::from_millis(100);
/// Attempts to change the key of a node. Each fails only if the key has changed since the last.
const ATTEMPTS: usize = 4;

const TXN: &str = "/v3/kv/txn";

/// A registry in etcd. See [`crate::open`].
pub struct EtcdRegistry {
    client: Client,
    keys: Keys,
    /// The revision of the last change that a call has made or seen.
    floor: AtomicU64,
    /// Longest time of a call in milliseconds, because of the lease that this process has.
    limit_ms: AtomicU64,
    /// Revisions at which this process has changed keys of nodes.
    own: Mutex<BTreeMap<NodeId, u64>>,
    /// Contents for [`Registry::wait`]. One thread uses it; others that wait meanwhile poll.
    mirror: Mutex<Option<Mirror>>,
}

impl EtcdRegistry {
    /// The registry in an etcd cluster. The first call connects.
    pub fn new(options: EtcdOptions) -> Self {
        Self {
            client: Client::new(&options),
            keys: Keys::new(&options.prefix),
            floor: AtomicU64::new(0),
            limit_ms: AtomicU64::new(CALL_LIMIT.as_millis() as u64),
            own: Mutex::default(),
            mirror: Mutex::default(),
        }
    }

    fn read_until(&self, deadline: Instant) -> Result<Snapshot, RegistryError> {
        let operations = vec![get(&self.keys.topology), get_all(&self.keys.nodes)];
        let request = txn(vec![], operations, vec![]);
        let answer: TxnAnswer = self.client.call(TXN, &request, deadline, Repeat::Yes)?;
        let mut state = State::default();
        answer.keys().try_for_each(|pair| self.keys.insert(&mut state, pair))?;
        Ok(Snapshot { state, revision: answer.header.revision })
    }

    /// The end of a call that begins now.
    fn deadline(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.limit_ms.load(Ordering::Relaxed))
    }

    fn raise_floor(&self, revision: u64) {
        self.floor.fetch_max(revision, Ordering::AcqRel);
    }

    fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// Changes the key of a node, unless another session has it.
    fn change_own(
        &self,
        node: NodeId,
        session: u64,
        change: Value,
        deadline: Instant,
    ) -> Result<(), RegistryError> {
        let key = self.keys.node(node);
        let mut expected = self.own().get(&node).copied().unwrap_or_default();
        for _ in 0..ATTEMPTS {
            let request = txn(vec![is_at(&key, expected)], vec![change.clone()], vec![get(&key)]);
            let answer: TxnAnswer = self.client.call(TXN, &request, deadline, Repeat::Yes)?;
            if answer.succeeded {
                self.own().insert(node, answer.header.revision);
                self.raise_floor(answer.header.revision);
                return Ok(());
            }
            expected = match answer.keys().next() {
                Some(pair) if decode::<Presence>(&key, &pair.value)?.session == session => {
                    pair.mod_revision
                }
                Some(_) => return Err(RegistryError::Taken),
                None => 0,
            };
        }
        Err(RegistryError::Unavailable(format!("{key} changes all the time")))
    }

    fn own(&self) -> MutexGuard<'_, BTreeMap<NodeId, u64>> {
        self.own.lock().expect("no holder of the lock panics")
    }

    /// A copy of the present contents with a watch.
    fn begin_mirror(&self, deadline: Instant) -> Result<Mirror, RegistryError> {
        let floor = self.floor();
        let snapshot = self.read_until(deadline)?;
        let first = snapshot.revision + 1;
        let watch = Watch::begin(&self.client, &self.keys.prefix, first, deadline)?;
        Ok(Mirror::new(snapshot, watch, floor))
    }

    /// One step of waiting: the copy has the changes of a message, or was compared.
    fn advance(
        &self,
        slot: &mut Option<Mirror>,
        end: Instant,
        floor: u64,
    ) -> Result<(), RegistryError> {
        let limit = call_deadline(end);
        let Some(mirror) = slot else {
            *slot = Some(self.begin_mirror(limit)?);
            return Ok(());
        };
        let (comparison, now) = (mirror.comparison(floor), Instant::now());
        let is_usable = if now < comparison {
            // After the end, only a change of this process is missing.
            let deadline = if now < end { comparison.min(end) } else { comparison };
            match mirror.advance(&self.keys, deadline) {
                Ok(()) => true,
                Err(MirrorError::Contents(error)) => return Err(error),
                Err(MirrorError::Watch) => {
                    // etcd may end every watch at once.
                    thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
                    false
                }
            }
        } else {
            mirror.compare(self.read_until(limit)?, floor)
        };
        if !is_usable {
            *slot = None;
        }
        Ok(())
    }

    /// Waits without a watch.
    fn poll(&self, seen: &State, end: Instant) -> Result<State, RegistryError> {
        loop {
            let state = self.read()?;
            let left = end.saturating_duration_since(Instant::now());
            if state.is_news(seen) || left.is_zero() {
                return Ok(state);
            }
            thread::sleep(POLL.min(left));
        }
    }
}

/// The end of a call by a caller that has time until `end`; half a second at least.
fn call_deadline(end: Instant) -> Instant {
    let now = Instant::now();
    end.clamp(now + Duration::from_millis(500), now + CALL_LIMIT)
}

impl Registry for EtcdRegistry {
    fn read(&self) -> Result<State, RegistryError> {
        let Snapshot { state, revision } = self.read_until(self.deadline())?;
        self.raise_floor(revision);
        Ok(state)
    }

    fn wait(&self, seen: &State, timeout: Duration) -> Result<State, RegistryError> {
        let end = Instant::now() + timeout;
        let Ok(mut slot) = self.mirror.try_lock() else { return self.poll(seen, end) };
        loop {
            let floor = self.floor();
            if let Some(mirror) = slot.as_ref().filter(|mirror| mirror.has_reached(floor))
                && (mirror.state.is_news(seen) || Instant::now() >= end)
            {
                return Ok(mirror.state.clone());
            }
            let advanced = self.advance(&mut slot, end, floor);
            if advanced.is_err() {
                *slot = None;
            }
            advanced?;
        }
    }

    fn swap(
        &self,
        expected: Option<Revision>,
        absent: Option<NodeId>,
        topology: &Topology,
    ) -> Result<Revision, SwapError> {
        topology.check().map_err(SwapError::Invalid)?;
        let value = encode(topology);
        check_length(&value)?;
        let key = &self.keys.topology;
        let expected = expected.unwrap_or_default().0;
        let absent = absent.map(|node| self.keys.node(node));
        let mut conditions = vec![is_at(key, expected)];
        conditions.extend(absent.iter().map(|absent| is_at(absent, 0)));
        let request = txn(conditions, vec![put(key, &value, None)], vec![get(key)]);
        let deadline = self.deadline();
        let answer: TxnAnswer = match self.client.call(TXN, &request, deadline, Repeat::No) {
            Ok(answer) => answer,
            Err(error @ CallError::Unknown(_)) => return Err(SwapError::Unknown(error.into())),
            Err(error) => return Err(SwapError::Failed(error.into())),
        };
        self.raise_floor(answer.header.revision);
        if answer.succeeded {
            return Ok(Revision(answer.header.revision));
        }
        let stored = answer.keys().next().map_or(0, |pair| pair.mod_revision);
        Err(if stored == expected { SwapError::Present } else { SwapError::Changed })
    }

    fn keep(&self, node: NodeId, presence: &Presence, time: Duration) -> Result<(), RegistryError> {
        let limit = CALL_LIMIT.min(time / 3);
        self.limit_ms.store(limit.max(LEAST_LIMIT).as_millis() as u64, Ordering::Relaxed);
        let deadline = Instant::now() + limit;
        // etcd counts whole seconds.
        let seconds = time.as_millis().div_ceil(1000) as u64;
        let request = json!({"TTL": seconds.max(1).to_string()});
        let grant: GrantAnswer =
            self.client.call("/v3/lease/grant", &request, deadline, Repeat::Yes)?;
        let change = put(&self.keys.node(node), &encode(presence), Some(grant.id));
        self.change_own(node, presence.session, change, deadline)
    }

    fn leave(&self, node: NodeId, session: u64) -> Result<(), RegistryError> {
        let change = delete(&self.keys.node(node));
        match self.change_own(node, session, change, self.deadline()) {
            Err(RegistryError::Taken) => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    #[test]
    fn calls_of_a_node_are_limited_by_its_lease() {
        // Nobody listens there.
        let registry = EtcdRegistry::new("127.0.0.1:1".parse().expect("options"));
        let presence = Presence {
            session: 1,
            address: Address::default(),
            position: 0,
            term: 0,
            is_copying: false,
            sealed: None,
            wants_to_lead: false,
        };
        assert_eq!(registry.limit_ms.load(Ordering::Relaxed), 2_000);
        for (lease_ms, limit_ms) in [(60_000, 2_000), (3_000, 1_000), (600, 300)] {
            let lease = Duration::from_millis(lease_ms);
            registry.keep(NodeId::random(), &presence, lease).expect_err("it is refused");
            assert_eq!(registry.limit_ms.load(Ordering::Relaxed), limit_ms);
        }
    }
}
