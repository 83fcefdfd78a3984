// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of the role. Each happens while a worker holds all shards, so that no command runs. The
//! workers learn of it with the parameters, before they touch a key again.

use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use freeport_kv_cluster::Address;
use freeport_kv_journal::Position;
use thiserror::Error;

use super::{Leader, Link, Replication, Role, State};
use crate::shared::Shared;
use crate::worker::Core;

/// The role did not change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RoleError {
    /// The server ends.
    #[error("the server ends")]
    Stopping,
    /// The role has changed again meanwhile.
    #[error("the role has changed")]
    Changed,
    /// The replica has only a part of its primary's snapshot.
    #[error(
        "the replica has not got all keys of its primary yet; wait, or start it again to have \
         those of its own folder"
    )]
    Loading,
    /// The keys are not those of the log.
    #[error("the replica differs from its primary, and needs all keys of it")]
    Differs,
    /// The primary continues at another place than the end of the log.
    #[error("the primary does not continue where the replica's log ends")]
    Elsewhere,
    /// The file of histories cannot be written: why.
    #[error("the histories of the log cannot be written: {0}")]
    Lineage(String),
}

impl Replication {
    /// Makes the server a primary. Its log begins a new history, which is durable when this
    /// returns the position where it begins. A primary of the same term stays as it is.
    ///
    /// # Errors
    /// See [`RoleError`].
    pub fn lead(&self, shared: &Shared, term: u64) -> Result<Position, RoleError> {
        with_all_shards(shared, move |core| core.lead(term))
    }

    /// Makes the server a replica that follows a primary, from where its log ends if it can. One
    /// that follows this primary already, and is not sealed, stays as it is.
    ///
    /// # Errors
    /// See [`RoleError`].
    pub fn follow(&self, shared: &Shared, leader: Leader) -> Result<(), RoleError> {
        with_all_shards(shared, move |core| {
            core.follow_primary(Some(leader));
            Ok(())
        })
    }

    /// Makes the server a replica that follows nobody for now.
    ///
    /// # Errors
    /// See [`RoleError`].
    pub fn wait_for_leader(&self, shared: &Shared) -> Result<(), RoleError> {
        with_all_shards(shared, move |core| {
            core.follow_primary(None);
            Ok(())
        })
    }

    /// Takes no more changes of the present primary. Returns the end of the log, which stays the
    /// same until the next change of the role.
    ///
    /// # Errors
    /// [`RoleError::Loading`]: its keys are not those of any moment of its primary.
    pub fn seal(&self, shared: &Shared) -> Result<Position, RoleError> {
        with_all_shards(shared, Core::seal)
    }

    /// The role changes, and what the present link has brought counts no more. All shards are held.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        state.link.disconnect();
        state.link = Link::default();
        change(&mut state);
        let is_replica = matches!(state.role, Role::Replica { .. });
        self.is_replica.store(is_replica, Ordering::Release);
        self.attempt.fetch_add(1, Ordering::AcqRel);
        drop(state);
        self.changed.notify_all();
    }
}

/// Runs an errand, and waits for its result.
pub(super) fn with_all_shards<R: Send + 'static>(
    shared: &Shared,
    run: impl FnOnce(&mut Core) -> Result<R, RoleError> + Send + 'static,
) -> Result<R, RoleError> {
    let (sender, receiver) = sync_channel(1);
    shared.send_errand(move |core| {
        // Nobody waits for it any more if the caller's thread has failed.
        let _ = sender.send(run(core));
    });
    receiver.recv().map_err(|_| RoleError::Stopping)?
}

impl Core {
    /// See [`Replication::lead`]. All shards are here.
    ///
    /// # Errors
    /// The same.
    pub fn lead(&mut self, term: u64) -> Result<Position, RoleError> {
        let shared = self.shared.clone();
        let Some(replication) = &shared.replication else { return Err(RoleError::Stopping) };
        let end = replication.position();
        if replication.role() == (Role::Primary { term }) {
            return Ok(end);
        }
        if replication.is_copying() {
            return Err(RoleError::Loading);
        }
        // Only a primary's log begins a history.
        replication.journal.set_follower(false);
        if let Err(failure) = replication.journal.begin_history(term) {
            replication.journal.set_follower(replication.is_replica());
            return Err(RoleError::Lineage(failure.to_string()));
        }
        replication.change(|state| state.role = Role::Primary { term });
        // Those that follow already come again, and learn of the history before its first batch.
        // One that is added from now on knows the new role.
        replication.replicas.disconnect();
        self.store.shards_mut().for_each(|shard| shard.set_stretched(false));
        shared.has_changed();
        self.follow();
        tracing::info!(term, position = end.0, "the server is a primary");
        Ok(end)
    }

    /// See [`Replication::follow`]. All shards are here.
    pub fn follow_primary(&mut self, leader: Option<Leader>) {
        let shared = self.shared.clone();
        let Some(replication) = &shared.replication else { return };
        let wanted = Role::Replica { leader, is_sealed: false };
        if replication.role() == wanted {
            return;
        }
        self.flush_log();
        replication.journal.set_follower(true);
        let address = leader_address(&wanted).map(Address::to_string);
        replication.change(|state| state.role = wanted);
        // After the change: one that is added from now on is refused.
        replication.replicas.disconnect();
        self.store.shards_mut().for_each(|shard| shard.set_stretched(true));
        shared.has_changed();
        self.follow();
        tracing::info!(primary = address, "the server is a replica");
    }

    fn seal(&mut self) -> Result<Position, RoleError> {
        let shared = self.shared.clone();
        let Some(replication) = &shared.replication else { return Err(RoleError::Stopping) };
        if replication.is_copying() {
            return Err(RoleError::Loading);
        }
        replication.change(|state| {
            if let Role::Replica { is_sealed, .. } = &mut state.role {
                *is_sealed = true;
            }
        });
        Ok(replication.position())
    }
}

fn leader_address(role: &Role) -> Option<&Address> {
    match role {
        Role::Replica { leader, .. } => leader.as_ref().map(|leader| &leader.address),
        Role::Primary { .. } => None,
    }
}
