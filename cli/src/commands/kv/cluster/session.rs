// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The registry of a cluster: its state, changes of the slot map, and waiting for nodes.

use crate::progress::ProgressLine;
use anyhow::{Context, bail};
use clap::Args;
use freeport_kv_cluster::{
    NodeId, Presence, Registry, Shard, State, SwapError, Topology, Versioned,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names the registry, if no option does.
const VARIABLE: &str = "FREEPORT_KV_REGISTRY";
/// Most changes by others that may come first.
const TRIES: usize = 100;
/// Longest time to wait for news before the condition and the progress are looked at again.
const TURN: Duration = Duration::from_millis(500);

/// How long a command waits for nodes to do what it began.
#[derive(Args)]
pub struct Waiting {
    /// Wait until the nodes have done it, with progress on standard error
    #[arg(long)]
    pub wait: bool,
    /// Longest time to wait, in seconds; what was begun continues after that
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, requires = "wait")]
    timeout: u64,
}

/// A registry.
pub struct Session {
    registry: Arc<dyn Registry>,
}

impl Session {
    /// Opens the registry with this URL, or the one that the environment names.
    ///
    /// # Errors
    /// There is no URL, or it names no registry.
    pub fn open(url: Option<&str>) -> anyhow::Result<Self> {
        let variable = std::env::var(VARIABLE).ok().filter(|url| !url.is_empty());
        let url = url.map(str::to_owned).or(variable).with_context(|| {
            format!("name the registry: --registry file:FOLDER, or set {VARIABLE}")
        })?;
        Ok(Self::new(freeport_kv_cluster::open(&url)?))
    }

    /// A session with a registry.
    pub fn new(registry: Arc<dyn Registry>) -> Self {
        Self { registry }
    }

    /// The present contents.
    ///
    /// # Errors
    /// The registry does not answer.
    pub fn state(&self) -> anyhow::Result<State> {
        Ok(self.registry.read()?)
    }

    /// The contents after the next change, or after a time.
    ///
    /// # Errors
    /// The registry does not answer.
    pub fn next(&self, seen: &State, timeout: Duration) -> anyhow::Result<State> {
        Ok(self.registry.wait(seen, timeout)?)
    }

    /// Replaces the slot map by the one that `plan` makes of the present state; again if another
    /// change came first. Returns the new one.
    ///
    /// # Errors
    /// Those of `plan`, or the registry does not answer.
    pub fn change(
        &self,
        plan: impl FnMut(&State) -> anyhow::Result<Topology>,
    ) -> anyhow::Result<Topology> {
        self.change_without(None, plan)
    }

    /// As [`Session::change`], if a node has no lease.
    ///
    /// # Errors
    /// The node has a lease, or those of [`Session::change`].
    pub fn change_without(
        &self,
        absent: Option<NodeId>,
        mut plan: impl FnMut(&State) -> anyhow::Result<Topology>,
    ) -> anyhow::Result<Topology> {
        for _ in 0..TRIES {
            let state = self.state()?;
            let revision = state.topology.as_ref().map(|stored| stored.revision);
            let next = plan(&state)?;
            match self.registry.swap(revision, absent, &next) {
                Ok(_) => return Ok(next),
                Err(SwapError::Changed) => {}
                Err(SwapError::Unknown(_)) if self.has(&next) => return Ok(next),
                Err(error @ SwapError::Unknown(_)) => {
                    bail!("{error}; see `freeport kv cluster status` before you repeat the command")
                }
                Err(SwapError::Present) => {
                    bail!("the node is there; `freeport kv cluster remove` removes such a node")
                }
                Err(error) => return Err(error.into()),
            }
        }
        bail!("others change the cluster all the time; try again")
    }

    fn has(&self, topology: &Topology) -> bool {
        let state = self.registry.read();
        state.is_ok_and(|state| state.topology.is_some_and(|stored| stored.topology == *topology))
    }

    /// Waits until `check` returns a value. It may show how far the nodes are, and gets the time
    /// that is left.
    ///
    /// # Errors
    /// Those of `check`; the time has passed, or the registry does not answer.
    pub fn wait<T>(
        &self,
        waiting: &Waiting,
        check: impl FnMut(&State, &mut ProgressLine, Duration) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let limit = Duration::from_secs(waiting.timeout);
        self.wait_for(limit, check)?.with_context(|| late(waiting.timeout))
    }

    /// As [`Session::wait`]; `None` if the time has passed.
    ///
    /// # Errors
    /// Those of `check`, or the registry does not answer.
    pub fn wait_for<T>(
        &self,
        limit: Duration,
        mut check: impl FnMut(&State, &mut ProgressLine, Duration) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Option<T>> {
        let begin = Instant::now();
        let mut line = ProgressLine::default();
        let mut state = self.state()?;
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            if let Some(value) = check(&state, &mut line, left)? {
                return Ok(Some(value));
            }
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            state = self.next(&state, left.min(TURN))?;
        }
    }
}

/// The advice if nodes take longer than that.
pub fn late(seconds: u64) -> String {
    format!("it is not done after {seconds} s, and continues; see `freeport kv cluster status`")
}

/// The slot map of a state.
///
/// # Errors
/// There is none.
pub fn stored(state: &State) -> anyhow::Result<&Versioned> {
    let missing = "there is no cluster yet; make one with `freeport kv cluster create`";
    state.topology.as_ref().context(missing)
}

/// All nodes of the cluster have a lease, and follow their shard's primary with all of its keys.
pub fn is_settled(state: &State) -> bool {
    let Some(stored) = &state.topology else { return false };
    stored.topology.shards.iter().all(|shard| {
        let mut presences = shard.members.iter().map(|member| state.nodes.get(&member.id));
        presences.all(|presence| presence.is_some_and(|it| is_complete(shard, it)))
    })
}

/// The node has changes of the shard's primary, and gets no whole copy now.
pub fn is_complete(shard: &Shard, presence: &Presence) -> bool {
    presence.term > 0 && presence.term >= shard.since && !presence.is_copying
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_kv_cluster::{Fault, Member, MemoryRegistry, planning};

    fn member() -> Member {
        Member { id: NodeId::random(), address: freeport_kv_cluster::Address::default() }
    }

    #[test]
    fn a_change_is_planned_again_when_another_comes_first() {
        let registry = MemoryRegistry::default();
        let session = Session::new(Arc::new(registry.client()));
        let first = planning::create(&[member()], 0).expect("one node is enough");
        session.change(|_| Ok(first.clone())).expect("it is empty");
        let mut plans = 0;
        let done = session.change(|state| {
            plans += 1;
            let topology = &stored(state)?.topology;
            if plans == 1 {
                let other = planning::add_shard(topology, member()).expect("it is free");
                let revision = stored(state)?.revision;
                registry.client().swap(Some(revision), None, &other).expect("it is the present");
            }
            Ok(planning::add_shard(topology, member())?)
        });
        assert_eq!((plans, done.expect("it is done").shards.len()), (2, 3));
    }

    #[test]
    fn a_lost_answer_is_not_taken_for_a_failure_of_the_change() {
        let registry = MemoryRegistry::default();
        let client = registry.client();
        let session = Session::new(Arc::new(client.clone()));
        let map = planning::create(&[member()], 0).expect("one node is enough");
        let error = session.change(|_| {
            client.set_fault(Fault::AnswerLost);
            Ok(map.clone())
        });
        let error = error.expect_err("no answer comes").to_string();
        assert!(error.contains("kv cluster status"), "{error}");
        assert!(registry.client().read().expect("no fault").topology.is_some());
    }
}
