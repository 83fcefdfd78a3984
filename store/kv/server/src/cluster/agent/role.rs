// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes the part of the server in its shard. Each change waits for the workers.

use std::sync::mpsc::{Receiver, Sender};

use freeport_kv_cluster::SlotSet;
use freeport_kv_cluster::election;

use super::Event;
use crate::cluster::{Stopper, boot};
use crate::replication::{Leader, Replication, RoleError};
use crate::shared::Shared;

/// A change of the server's part.
#[derive(Debug)]
pub enum Change {
    /// It is the primary.
    Lead {
        /// Its term.
        term: u64,
    },
    /// It is a replica.
    Follow(election::Leader),
    /// It takes no more changes.
    Seal,
    /// Commands wait.
    Stop {
        /// Number of the request.
        number: u64,
    },
    /// They continue.
    Continue,
}

/// Makes changes one after the other, until there can be no more.
pub fn run(shared: &Shared, changes: &Receiver<Change>, events: &Sender<Event>) {
    let (Some(cluster), Some(replication)) = (&shared.cluster, &shared.replication) else { return };
    while let Ok(change) = changes.recv() {
        let event = match change {
            // Slots that come meanwhile wait too, and the log grows not even without slots.
            Change::Stop { number } => {
                cluster.stop(Stopper::HandOver, &SlotSet::all());
                Event::Stopped { number }
            }
            Change::Continue => {
                cluster.resume(Stopper::HandOver, &SlotSet::all());
                continue;
            }
            change => match change_role(shared, replication, change) {
                Ok(()) => Event::Changed { is_done: true },
                Err(error) => {
                    tracing::warn!(%error, "cannot change the role in the shard");
                    Event::Changed { is_done: false }
                }
            },
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

fn change_role(
    shared: &Shared,
    replication: &Replication,
    change: Change,
) -> Result<(), RoleError> {
    if let Some(persistence) = &shared.options.persistence
        && let Err(error) = boot::note(&persistence.folder)
    {
        // The next process is careful without need.
        tracing::warn!(%error, "cannot note the start of the machine");
    }
    match change {
        Change::Lead { term } => replication.lead(shared, term).map(drop),
        Change::Follow(election::Leader { node, address, term }) => {
            replication.follow(shared, Leader { node: Some(node), address, term })
        }
        // A primary takes no more writes. A part of a copy is not used.
        Change::Seal if !replication.is_replica() => replication.wait_for_leader(shared),
        Change::Seal => match replication.seal(shared) {
            Err(RoleError::Loading) => replication.wait_for_leader(shared),
            sealed => sealed.map(drop),
        },
        Change::Stop { .. } | Change::Continue => Ok(()),
    }
}
