// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the decisions of an [`election::Agent`]: its lease, its part in its shard, and its view.
//!
//! Four threads work for it, so that the lease does not wait for other things:
//!
//! - `kv-agent` asks for the next action, prolongs the lease, and reads the registry;
//! - `kv-swap` changes the slot map in the registry;
//! - `kv-watch` waits for news of the registry;
//! - `kv-role` changes the part of the server in replication, which waits for its workers.

mod role;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use freeport_kv_cluster::election::{self, Action, Facts, Me, Swap};
use freeport_kv_cluster::{Presence, RegistryError, Revision, State, SwapError, boot_time};

use super::{Cluster, View, boot};
use crate::shared::Shared;
use role::Change;

/// The way to a running agent.
#[derive(Debug, Default)]
pub struct AgentHandle {
    events: Mutex<Option<Sender<Event>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    is_ending: AtomicBool,
}

/// Something that the agent has to know.
#[derive(Debug)]
enum Event {
    /// There are news of the registry.
    Saw(State),
    /// The slot map was changed, or not.
    Swapped(Result<Revision, SwapError>),
    /// A change of the role is done, or has failed.
    Changed {
        /// It is done.
        is_done: bool,
    },
    /// Commands have stopped.
    Stopped {
        /// Number of the request.
        number: u64,
    },
    /// An operator wants the node to lead.
    WantsToLead,
    /// Another part of the server has changed the registry.
    Refresh,
    /// The server ends.
    End,
}

impl AgentHandle {
    fn send(&self, event: Event) -> bool {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.as_ref().is_some_and(|events| events.send(event).is_ok())
    }

    /// Ends the lease, and waits for all threads. Workers have to have ended.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.send(Event::End);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic was reported by its thread.
            let _ = thread.join();
        }
    }
}

impl Cluster {
    /// Asks the primary of the shard to hand over to this node. Returns false if the node is no
    /// replica. Does not wait.
    pub fn ask_to_lead(&self) -> bool {
        let view = self.view();
        let is_replica = view.shard().is_some_and(|shard| shard.primary != self.me);
        is_replica && self.agent.send(Event::WantsToLead)
    }

    /// The registry has changed, and the view has to follow at once. Does not wait.
    pub fn refresh(&self) {
        self.agent.send(Event::Refresh);
    }
}

/// Starts the agent of a server that is a node of a cluster.
///
/// # Errors
/// The system has no thread, or a file of the folder cannot be written.
pub fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let (Some(cluster), Some(persistence)) = (&shared.cluster, &shared.options.persistence) else {
        return Ok(());
    };
    let me = Me {
        node: cluster.me,
        session: fastrand::u64(..),
        address: cluster.options.address.clone(),
        lease: cluster.options.timeout,
        may_have_lost: boot::was_started(&persistence.folder)?,
    };
    let (events, inbox) = channel();
    *cluster.agent.events.lock().unwrap_or_else(PoisonError::into_inner) = Some(events.clone());
    let (changes, to_change) = channel();
    let (swaps, to_swap) = channel();
    let runner = Runner {
        session: me.session,
        agent: election::Agent::new(me),
        shared: shared.clone(),
        inbox,
        changes,
        swaps,
        failure: None,
        had_lease: false,
        leads: false,
        stops: 0,
        has_stopped: false,
    };
    let (for_watch, for_swap, for_role) = (shared.clone(), shared.clone(), shared.clone());
    let (watched, swapped) = (events.clone(), events.clone());
    let threads = [
        Builder::new().name("kv-agent".into()).spawn(move || runner.run())?,
        Builder::new().name("kv-watch".into()).spawn(move || watch(&for_watch, &watched))?,
        Builder::new().name("kv-swap".into()).spawn(move || swap(&for_swap, &to_swap, &swapped))?,
        Builder::new()
            .name("kv-role".into())
            .spawn(move || role::run(&for_role, &to_change, &events))?,
    ];
    cluster.agent.threads.lock().unwrap_or_else(PoisonError::into_inner).extend(threads);
    Ok(())
}

/// Reports news of the registry until the server ends.
fn watch(shared: &Shared, events: &Sender<Event>) {
    let Some(cluster) = &shared.cluster else { return };
    let timeout = cluster.options.timeout;
    let mut seen = State::default();
    while !cluster.agent.is_ending.load(Ordering::Relaxed) {
        match cluster.options.registry.wait(&seen, (timeout / 3).min(LONGEST_WAIT)) {
            Ok(state) => {
                if state.is_news(&seen) && events.send(Event::Saw(state.clone())).is_err() {
                    return;
                }
                seen = state;
            }
            // The agent reports that the registry fails.
            Err(_) => std::thread::sleep((timeout / 15).min(LONGEST_WAIT)),
        }
    }
}

/// Changes the slot map as the agent wants it, until there can be no more.
fn swap(shared: &Shared, swaps: &Receiver<Box<Swap>>, events: &Sender<Event>) {
    let Some(cluster) = &shared.cluster else { return };
    while let Ok(swap) = swaps.recv() {
        let registry = &cluster.options.registry;
        let result = registry.swap(Some(swap.expected), swap.absent, &swap.topology);
        report(&result);
        if events.send(Event::Swapped(result)).is_err() {
            return;
        }
    }
}

/// The end of the server waits for this time at most.
const LONGEST_WAIT: Duration = Duration::from_millis(300);

struct Runner {
    session: u64,
    agent: election::Agent,
    shared: Arc<Shared>,
    inbox: Receiver<Event>,
    changes: Sender<Change>,
    swaps: Sender<Box<Swap>>,
    /// The last failure of the registry, until a call succeeds.
    failure: Option<RegistryError>,
    /// The node had a lease when it was looked at.
    had_lease: bool,
    /// The server is a primary.
    leads: bool,
    /// Number of the last request to stop commands or to let them continue.
    stops: u64,
    /// Commands have stopped, because another node becomes the primary.
    has_stopped: bool,
}

/// Makes the server end when the agent does.
struct StopAtEnd(Arc<Shared>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Runner {
    fn run(mut self) {
        let shared = self.shared.clone();
        let _end = StopAtEnd(shared.clone());
        let Some(cluster) = &shared.cluster else { return };
        loop {
            // The clock is read last: the facts may wait for others.
            let facts = self.facts();
            let action = self.agent.next(boot_time(), &facts);
            self.set_fence(cluster);
            let is_open = match action {
                Action::Wait(until) => self.wait(until),
                action => {
                    self.perform(cluster, action);
                    self.take_events()
                }
            };
            self.set_fence(cluster);
            if !is_open {
                break;
            }
        }
        self.leave(cluster);
    }

    /// The workers have ended: others may be elected at once.
    fn leave(&self, cluster: &Cluster) {
        cluster.fence.set(Duration::ZERO);
        if let Err(error) = cluster.options.registry.leave(cluster.me, self.session) {
            tracing::warn!(%error, "the lease of this node ends by itself");
        }
    }

    fn set_fence(&mut self, cluster: &Cluster) {
        if cluster.fence.set(self.agent.serves_until()) {
            cluster.rouse();
        }
        let has_lease = cluster.fence.is_valid();
        if std::mem::replace(&mut self.had_lease, has_lease) != has_lease {
            match has_lease {
                true => tracing::info!("the node has a lease, and serves"),
                false if self.agent.has_lease(boot_time()) => {
                    tracing::info!("the node begins a term, and refuses commands until then");
                }
                false => tracing::warn!("the lease of the node has run out: commands are refused"),
            }
        }
    }

    /// Reports a failure of the registry once, and its end.
    fn note_registry(&mut self, failure: Option<RegistryError>) {
        match &failure {
            Some(RegistryError::Taken) if self.failure != failure => {
                tracing::info!("waits until the lease of the process before ends");
            }
            Some(error) if self.failure != failure => tracing::warn!(%error, "the registry fails"),
            None if self.failure.is_some() => tracing::info!("the registry answers again"),
            _ => {}
        }
        self.failure = failure;
    }

    fn facts(&self) -> Facts {
        let Some(replication) = &self.shared.replication else { return Facts::default() };
        let confirmed =
            |report: crate::replication::ReplicaReport| Some((report.node?, report.acked.0));
        Facts {
            position: replication.position().0,
            term: replication.term(),
            is_copying: replication.is_copying(),
            confirmed: replication.replicas().into_iter().filter_map(confirmed).collect(),
            has_stopped: self.has_stopped,
        }
    }

    /// Waits for an event. Returns false if the server ends.
    fn wait(&mut self, until: Duration) -> bool {
        let time = until.saturating_sub(boot_time());
        match self.inbox.recv_timeout(time) {
            Ok(event) => self.take(event) && self.take_events(),
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }

    fn take_events(&mut self) -> bool {
        while let Ok(event) = self.inbox.try_recv() {
            if !self.take(event) {
                return false;
            }
        }
        true
    }

    fn take(&mut self, event: Event) -> bool {
        match event {
            Event::Saw(state) => self.agent.saw(state, false),
            Event::Swapped(result) => self.agent.swapped(boot_time(), &result),
            Event::Changed { is_done } => self.agent.carried_out(boot_time(), is_done),
            Event::Stopped { number } => self.has_stopped = number == self.stops,
            Event::WantsToLead => {
                self.agent.wants_to_lead(boot_time());
            }
            Event::Refresh => self.agent.refresh(),
            Event::End => return false,
        }
        true
    }

    fn perform(&mut self, cluster: &Cluster, action: Action) {
        let registry = &cluster.options.registry;
        match action {
            Action::Read => match registry.read() {
                Ok(state) => self.agent.saw(state, true),
                Err(error) => {
                    self.note_registry(Some(error));
                    self.agent.read_failed(boot_time());
                }
            },
            Action::Keep(presence) => self.keep(cluster, presence),
            Action::Swap(swap) => {
                if self.swaps.send(swap).is_err() {
                    let ends = RegistryError::Unavailable("the server ends".into());
                    self.agent.swapped(boot_time(), &Err(SwapError::Failed(ends)));
                }
            }
            Action::Show(state) => cluster.set_view(View::new(cluster.me, state)),
            Action::Lead { term } => {
                self.leads = true;
                self.change(Change::Lead { term });
            }
            Action::Follow(leader) => {
                self.step_down(cluster);
                self.change(Change::Follow(leader));
            }
            Action::Seal => {
                self.step_down(cluster);
                self.change(Change::Seal);
            }
            Action::Stop => {
                self.stops += 1;
                self.change(Change::Stop { number: self.stops });
            }
            Action::Continue => {
                self.stops += 1;
                self.has_stopped = false;
                self.change(Change::Continue);
            }
            // The caller waits.
            Action::Wait(_) => {}
        }
    }

    /// The server is the primary no more. Unless it has agreed, replies that wait may be wrong.
    fn step_down(&mut self, cluster: &Cluster) {
        if std::mem::take(&mut self.leads) && !self.has_stopped {
            cluster.fence.replace();
        }
    }

    fn change(&mut self, change: Change) {
        if self.changes.send(change).is_err() {
            self.agent.carried_out(boot_time(), false);
        }
    }

    fn keep(&mut self, cluster: &Cluster, presence: Presence) {
        let options = &cluster.options;
        let began = boot_time();
        let result = options.registry.keep(cluster.me, &presence, options.timeout);
        self.note_registry(result.as_ref().err().cloned());
        self.agent.kept(presence, (began, boot_time()), &result);
    }
}

fn report(result: &Result<Revision, SwapError>) {
    match result {
        Ok(revision) => tracing::info!(revision = revision.0, "the slot map was changed"),
        Err(SwapError::Changed | SwapError::Present) => {}
        Err(error) => tracing::warn!(%error, "cannot change the slot map"),
    }
}
