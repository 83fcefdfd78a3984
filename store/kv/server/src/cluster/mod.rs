// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server as a node of a cluster: what it knows of the others, and which slots it serves.
//!
//! The agent reads the registry and sets the [`View`]. Moves of slots [stop](Cluster::stop)
//! slots for a moment. Both make new [`Routes`], a state for each slot, which workers follow as
//! they follow the parameters.

mod agent;
mod boot;
mod fence;
mod identity;
#[cfg(test)]
mod loading;
mod redirect;
mod routes;
#[cfg(test)]
mod stopping;
#[cfg(test)]
pub mod testing;
mod view;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use freeport_kv_cluster::{Address, NodeId, Registry, Revision, SlotSet};

use crate::mail::{Mailbox, Message};
pub use agent::{AgentHandle, start as start_agent};
pub use fence::Fence;
pub use identity::{IdentityError, identity};
pub use redirect::{CROSS_SLOT, FENCED, Port, UNBOUND};
pub use routes::{Routes, SlotState, StoppedSlots, Stopper};
pub use view::View;

/// Time between two looks if it is still wanted that workers settle.
const SETTLE_LOOK: Duration = Duration::from_millis(10);

/// How a server takes part in a cluster.
#[derive(Clone)]
pub struct ClusterOptions {
    /// The place where the nodes agree.
    pub registry: Arc<dyn Registry>,
    /// Addresses of this node, as clients and other nodes reach it. A port that is 0 becomes that
    /// of the first listener of its kind.
    pub address: Address,
    /// Time after which a node without a sign of life counts as failed (`cluster-node-timeout`).
    pub timeout: Duration,
}

impl fmt::Debug for ClusterOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClusterOptions")
            .field("address", &self.address)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The node that a server is.
pub struct Cluster {
    /// Its name.
    pub me: NodeId,
    /// How it takes part.
    pub options: ClusterOptions,
    /// Whether its lease lasts.
    pub fence: Fence,
    /// The way to the agent.
    pub agent: AgentHandle,
    routes: Mutex<Arc<Routes>>,
    /// The routes have changed.
    changed: Condvar,
    /// Changes with the routes, and with everything else that workers follow.
    version: Arc<AtomicU64>,
    mailboxes: Arc<[Mailbox]>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { me, options, .. } = self;
        formatter
            .debug_struct("Cluster")
            .field("me", me)
            .field("options", options)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// A node that knows no other yet, and serves no slot.
    pub fn new(
        me: NodeId,
        options: ClusterOptions,
        version: Arc<AtomicU64>,
        mailboxes: Arc<[Mailbox]>,
    ) -> Self {
        let routes =
            Mutex::new(Arc::new(Routes::new(Arc::new(View::empty(me)), StoppedSlots::default())));
        let changed = Condvar::new();
        Self {
            me,
            options,
            fence: Fence::default(),
            agent: AgentHandle::default(),
            routes,
            changed,
            version,
            mailboxes,
        }
    }

    /// The present view.
    pub fn view(&self) -> Arc<View> {
        self.routes().view.clone()
    }

    /// The present state of each slot.
    pub fn routes(&self) -> Arc<Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the view. Clients that wait for keys of slots which the node no longer serves are
    /// redirected. Does not wait for the workers.
    pub fn set_view(&self, view: View) {
        self.change(|routes| Routes::new(Arc::new(view), routes.stopped.clone()));
    }

    /// Commands on these slots wait from now on. When this returns true, none is being executed,
    /// and all that were have been appended to the log. Waits for the workers, so no worker may
    /// call it. A script may run for long: returns false when this is no longer wanted meanwhile.
    /// Commands wait until they are [resumed](Cluster::resume) in either case.
    pub fn stop(
        &self,
        stopper: Stopper,
        slots: &SlotSet,
        mut is_wanted: impl FnMut() -> bool,
    ) -> bool {
        self.change_stopped(stopper, |stopped| stopped.union(slots));
        self.settle(&mut is_wanted)
    }

    /// Commands on these slots no longer wait, unless another has stopped them too.
    pub fn resume(&self, stopper: Stopper, slots: &SlotSet) {
        self.change_stopped(stopper, |stopped| stopped.without(slots));
    }

    fn change_stopped(&self, stopper: Stopper, change: impl FnOnce(&SlotSet) -> SlotSet) {
        self.change(|routes| {
            let mut stopped = routes.stopped.clone();
            let slots = stopped.by(stopper);
            *slots = change(slots);
            Routes::new(routes.view.clone(), stopped)
        });
    }

    /// Waits until the view has a later revision, but not longer than a time; returns the present
    /// one.
    pub fn wait_for_view(&self, seen: Revision, timeout: Duration) -> Arc<View> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |routes: &mut Arc<Routes>| routes.view.revision <= seen;
        let (routes, _) = self
            .changed
            .wait_timeout_while(routes, timeout, is_old)
            .unwrap_or_else(PoisonError::into_inner);
        routes.view.clone()
    }

    fn change(&self, change: impl FnOnce(&Routes) -> Routes) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        *routes = Arc::new(change(&routes));
        drop(routes);
        self.changed.notify_all();
        self.version.fetch_add(1, Ordering::Release);
        self.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::FollowRoutes));
    }

    /// Workers look at the fence.
    fn rouse(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.mailboxes.iter().for_each(Mailbox::rouse);
    }

    /// Waits until all workers follow the present routes, and have executed what they had taken up
    /// before, or until that is no longer wanted. Returns whether they have. The first round ends
    /// when nobody takes up anything by older routes; messages that were sent until then arrive
    /// before those of the second.
    fn settle(&self, is_wanted: &mut dyn FnMut() -> bool) -> bool {
        self.round(is_wanted) && self.round(is_wanted)
    }

    fn round(&self, is_wanted: &mut dyn FnMut() -> bool) -> bool {
        let (done, all_done) = channel();
        for mailbox in self.mailboxes.iter() {
            mailbox.send(Message::Settle { done: done.clone() });
        }
        drop(done);
        loop {
            match all_done.recv_timeout(SETTLE_LOOK) {
                // Every worker has answered, or is gone.
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) if !is_wanted() => return false,
                _ => {}
            }
        }
    }
}
