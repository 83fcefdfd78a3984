// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The source hands slots over to a target that is close behind.
//!
//! 1. It reads the topology.
//! 2. Commands on the slots wait, and the log has all that were executed.
//! 3. It sends the log up to there. The target and its replicas have everything when the target
//!    answers.
//! 4. It replaces the topology of step 1, and no other. So this fails if anything has changed
//!    since: a primary, or an attempt that the target has begun anew.
//! 5. Clients continue when both sides know the new topology, and are sent to the target.
//!
//! If the answer of the registry gets lost, the replacement may still happen later. Clients wait
//! until the registry says that it has happened, or until another replacement makes it impossible.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use freeport_kv_cluster::{Revision, State, SwapError, Topology, Versioned};
use freeport_kv_protocol::replication::Frame;

use super::export::{Answer, End, Exporter, send};
use super::{Direction, Stage, is_present};
use crate::cluster::{Stopper, View};

/// Time for commands to end, for the rest of the log to be sent, and for the target to have it,
/// while clients wait.
const COMPLETE_MAX: Duration = Duration::from_secs(2);
/// Time for the target to know that it has the slots. Clients that come too early are sent back.
const MOVED_MAX: Duration = Duration::from_secs(2);
/// Time between two questions to a registry that does not answer.
const RETRY: Duration = Duration::from_millis(100);

/// How a hand-over has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The slots belong to the target.
    Moved,
    /// They stay here for now: why.
    Kept(String),
}

/// Hand-overs of one attempt.
pub(super) struct Handover<'a> {
    exporter: &'a Exporter<'a>,
    answers: &'a Receiver<Answer>,
    /// Answers of the target that came too late or not yet. The next hand-over has to wait for
    /// them: an answer counts only for the question behind which it was given.
    owed: usize,
}

/// Commands on the slots wait as long as this exists.
struct Stopped<'a>(&'a Exporter<'a>);

impl<'a> Stopped<'a> {
    /// The second is whether those that had begun have ended in time.
    fn new(exporter: &'a Exporter<'a>, end: Instant) -> (Self, bool) {
        let is_in_time = || Instant::now() < end;
        let has_stopped = exporter.cluster.stop(Stopper::Move, &exporter.wanted.slots, is_in_time);
        (Self(exporter), has_stopped)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        // A server that ends may not know whether it has given the slots away.
        if !self.0.shared.is_stopping() {
            self.0.cluster.resume(Stopper::Move, &self.0.wanted.slots);
        }
    }
}

impl<'a> Handover<'a> {
    /// No hand-over so far.
    pub fn new(exporter: &'a Exporter<'a>, answers: &'a Receiver<Answer>) -> Self {
        Self { exporter, answers, owed: 0 }
    }

    /// Tries to hand over. `send_until` sends the log up to a position, until a time at most, and
    /// returns whether all was sent.
    ///
    /// # Errors
    /// The attempt has ended.
    pub fn attempt(
        &mut self,
        send_until: impl FnOnce(u64, Instant) -> Result<bool, End>,
    ) -> Result<Outcome, End> {
        if self.take_owed() > 0 {
            return Ok(Outcome::Kept("the target is slow".into()));
        }
        let exporter = self.exporter;
        let Some(_guard) = exporter.moving.begin_handover() else {
            return Ok(Outcome::Kept("another hand-over has not ended".into()));
        };
        let Versioned { revision, topology } = match self.read() {
            Ok(versioned) => versioned,
            Err(reason) => return Ok(Outcome::Kept(reason)),
        };
        exporter.tracker.set_stage(Stage::Handover);
        let end = Instant::now() + COMPLETE_MAX;
        let (stopped, has_stopped) = Stopped::new(exporter, end);
        let position = exporter.persistence.journal.end().0;
        let complete = if !has_stopped {
            Err("a script or another command runs for long".into())
        } else if send_until(position, end)? {
            self.complete(position, end)?
        } else {
            Err("the log of this node is slow, or its disk is full".into())
        };
        match complete.and_then(|()| self.replace(revision, &topology)) {
            Ok(revision) => {
                self.finish(revision);
                Ok(Outcome::Moved)
            }
            Err(reason) => {
                drop(stopped);
                send(exporter.stream, &Frame::Resumed)?;
                Ok(Outcome::Kept(reason))
            }
        }
    }

    /// Takes answers to earlier questions; returns how many are missing.
    fn take_owed(&mut self) -> usize {
        while self.owed > 0 && self.answers.try_recv().is_ok() {
            self.owed -= 1;
        }
        self.owed
    }

    /// The present topology, by which the move is to be made.
    fn read(&self) -> Result<Versioned, String> {
        let state = self.registry_state()?;
        let exporter = self.exporter;
        let view = View::new(exporter.cluster.me, state.clone());
        let to = view.topology.shard(exporter.wanted.to);
        let is_right = is_present(&view, &exporter.wanted, Direction::Export)
            && to.is_some_and(|shard| shard.primary == exporter.target);
        // The term of a primary whose lease may have lapsed is over.
        let own = exporter.cluster.view();
        let has_term = own.shard().map(|it| it.term) == view.shard().map(|it| it.term);
        match state.topology {
            Some(versioned) if is_right && has_term => Ok(versioned),
            _ => Err("the cluster has changed".into()),
        }
    }

    fn registry_state(&self) -> Result<State, String> {
        self.exporter.cluster.options.registry.read().map_err(|error| error.to_string())
    }

    /// The target says in time that it has everything, or the slots stay here: why.
    fn complete(&mut self, position: u64, end: Instant) -> Result<Result<(), String>, End> {
        send(self.exporter.stream, &Frame::Complete { position })?;
        match self.answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Answer::Complete(answered)) if answered == position => Ok(Ok(())),
            Ok(_) => Err(End::Refused("the target has sent a wrong answer".into())),
            Err(RecvTimeoutError::Timeout) => {
                self.owed += 1;
                Ok(Err("the target or its replicas are slow".into()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(End::Refused("the target has closed the connection".into()))
            }
        }
    }

    /// Gives the slots to the target, in the registry. Returns the new revision.
    ///
    /// # Errors
    /// They stay here: why.
    fn replace(&self, revision: Revision, topology: &Topology) -> Result<Revision, String> {
        if !self.exporter.cluster.fence.is_valid() {
            return Err("the lease of this node has run out".into());
        }
        let moved = self.moved(topology)?;
        let registry = &self.exporter.cluster.options.registry;
        match registry.swap(Some(revision), None, &moved) {
            Ok(revision) => Ok(revision),
            Err(SwapError::Unknown(_)) => self.find_out(revision),
            Err(error) => Err(error.to_string()),
        }
    }

    fn moved(&self, topology: &Topology) -> Result<Topology, String> {
        let wanted = &self.exporter.wanted;
        let mut moved = topology.clone();
        moved.epoch += 1;
        moved.moves.retain(|one| one != wanted);
        let missing = || "the cluster has changed".to_owned();
        let from = moved.shard_mut(wanted.from).ok_or_else(missing)?;
        from.slots = from.slots.without(&wanted.slots);
        let to = moved.shard_mut(wanted.to).ok_or_else(missing)?;
        to.slots = to.slots.union(&wanted.slots);
        moved.check()?;
        Ok(moved)
    }

    /// Finds out whether the topology of a revision was replaced, as often as it takes. One that is
    /// there still is replaced by one that differs in its epoch only, so that a late replacement
    /// fails.
    fn find_out(&self, revision: Revision) -> Result<Revision, String> {
        let exporter = self.exporter;
        let registry = &exporter.cluster.options.registry;
        loop {
            if let Ok(Some(versioned)) = registry.read().map(|state| state.topology) {
                if versioned.revision == revision {
                    let mut topology = versioned.topology;
                    topology.epoch += 1;
                    // The next reading of the registry shows the result.
                    let _ = registry.swap(Some(revision), None, &topology);
                } else {
                    return self.judge(&versioned);
                }
            }
            if exporter.shared.is_stopping() {
                return Err("the server ends".into());
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Whether a later topology says that the slots have moved.
    fn judge(&self, versioned: &Versioned) -> Result<Revision, String> {
        let wanted = &self.exporter.wanted;
        let from = versioned.topology.shard(wanted.from);
        let is_here =
            from.is_some_and(|from| from.slots.intersection(&wanted.slots) == wanted.slots);
        match is_here {
            true => Err("the answer of the registry got lost, and the slots stay here".into()),
            false => Ok(versioned.revision),
        }
    }

    /// The slots belong to the target: waits until both sides know it.
    fn finish(&self, revision: Revision) {
        let exporter = self.exporter;
        // A target that is gone reads it in the registry.
        let _ = send(exporter.stream, &Frame::Moved { revision: revision.0 });
        exporter.cluster.refresh();
        let end = Instant::now() + MOVED_MAX;
        while let Some(rest) = end.checked_duration_since(Instant::now()) {
            if matches!(self.answers.recv_timeout(rest), Ok(Answer::Moved) | Err(_)) {
                break;
            }
        }
        // Until then this node would take the slots for its own.
        while exporter.cluster.view().revision < revision && !exporter.shared.is_stopping() {
            exporter.cluster.wait_for_view(Revision(revision.0 - 1), RETRY);
        }
    }
}
