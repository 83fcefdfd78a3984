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

/// Makes changes one after the other, until there can be no more. A change ends the wait for
/// commands that have to stop, such as a script that runs for long.
pub fn run(shared: &Shared, changes: &Receiver<Change>, events: &Sender<Event>) {
    let (Some(cluster), Some(replication)) = (&shared.cluster, &shared.replication) else { return };
    let mut next = None;
    while let Some(change) = next.take().or_else(|| changes.recv().ok()) {
        let event = match change {
            // Slots that come meanwhile wait too, and the log grows not even without slots.
            Change::Stop { number } => {
                let is_last = || {
                    next = changes.try_recv().ok();
                    next.is_none()
                };
                if !cluster.stop(Stopper::HandOver, &SlotSet::all(), is_last) {
                    continue;
                }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    use freeport_testbed::wait::wait_until;

    use super::*;
    use crate::cluster::stopping::{Counting, node};

    #[test]
    fn commands_continue_although_a_script_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = node(2, folder.path());
        let mut script = Counting::new(server.addresses()[0]);
        // One of these is at the worker of the script, which answers clients that it has already.
        let mut others = [(); 2].map(|()| Counting::new(server.addresses()[0]));
        assert_eq!(script.ask("CONFIG SET busy-reply-threshold 1"), "+OK");
        others.iter_mut().for_each(|other| assert_eq!(other.ask("PING"), "+PONG"));
        script.send(r#"EVAL "while true do end" 0"#);
        wait_until("the script runs", || {
            others.iter_mut().any(|other| other.ask("PING").starts_with("-BUSY"))
        });
        let (changes, to_change) = channel();
        let (events, reported) = channel();
        for change in [Change::Stop { number: 1 }, Change::Continue] {
            changes.send(change).expect("somebody receives it");
        }
        drop(changes);
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (shared, has_ended) = (server.shared(), &has_ended);
            scope.spawn(move || {
                run(shared, &to_change, &events);
                has_ended.store(true, Ordering::Relaxed);
            });
            wait_until("commands continue", || has_ended.load(Ordering::Relaxed));
        });
        assert!(reported.try_recv().is_err(), "they have not stopped");
        assert_eq!(others[0].ask("SCRIPT KILL"), "+OK");
        assert!(script.line().contains("Script killed by user"));
        assert_eq!(others[0].ask("SET key 1"), "+OK");
    }
}
