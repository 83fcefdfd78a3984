// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The link of a replica to its primary, as the receiver sets its state and others see it.

use std::net::{Shutdown, TcpStream};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use freeport_kv_journal::Position;
use freeport_kv_protocol::replication::Frame;

use super::{Leader, Replication, Role, State};

/// State of a replica's link to its primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkPhase {
    /// There is none; the replica tries again soon.
    #[default]
    Down,
    /// The replica gets the primary's snapshot.
    Syncing,
    /// The replica gets changes.
    Online,
}

/// State of a replica's link to its primary, for reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkReport {
    /// Its phase.
    pub phase: LinkPhase,
    /// Time since the primary has last sent something.
    pub silence: Option<Duration>,
    /// End of the primary's log, as far as the replica knows.
    pub primary_end: Position,
    /// Why the last attempt has ended.
    pub failure: Option<String>,
}

/// A link.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub phase: LinkPhase,
    /// A handle of its socket, by which others end it.
    pub socket: Option<TcpStream>,
    pub heard: Option<Instant>,
    /// Since when it is [`LinkPhase::Online`].
    pub online: Option<Instant>,
    pub primary_end: Position,
    pub failure: Option<String>,
}

impl Link {
    /// Ends the connection; its threads then end by themselves.
    pub fn disconnect(&mut self) {
        if let Some(socket) = self.socket.take() {
            // The other side may have done so before.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Replication {
    /// State of the link to the primary.
    pub fn link(&self) -> LinkReport {
        let state = self.state();
        let link = &state.link;
        LinkReport {
            phase: link.phase,
            silence: link.heard.map(|heard| heard.elapsed()),
            primary_end: link.primary_end,
            failure: link.failure.clone(),
        }
    }

    /// Waits until there is a primary to follow. Returns it with the number of the attempt; none:
    /// the server stops.
    pub(super) fn next_leader(&self) -> Option<(Leader, u64)> {
        let mut state = self.state();
        loop {
            if state.is_stopping {
                return None;
            }
            if let Role::Replica { leader: Some(leader), is_sealed: false } = &state.role {
                return Some((leader.clone(), self.attempt.load(Ordering::Acquire)));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a time, or until the role changes.
    pub(super) fn pause(&self, attempt: u64, time: Duration) {
        let state = self.state();
        let is_idle = |state: &mut State| {
            !state.is_stopping && self.attempt.load(Ordering::Acquire) == attempt
        };
        // Either end is right.
        let _ = self.changed.wait_timeout_while(state, time, is_idle);
    }

    /// The place where the replica wants to continue: history and position.
    pub(super) fn place(&self) -> (u64, Position) {
        if self.needs_sync.load(Ordering::Acquire) {
            return (0, Position(0));
        }
        let end = self.journal.end();
        (self.journal.lineage().at(end).map_or(0, |history| history.id), end)
    }

    /// The role has not changed since an attempt began, and the server does not stop.
    pub(super) fn is_wanted(&self, attempt: u64) -> bool {
        self.with_link(attempt, |_| ())
    }

    /// Changes the state of the link, if the role has not changed. Returns whether it has not.
    fn with_link(&self, attempt: u64, change: impl FnOnce(&mut Link)) -> bool {
        let mut state = self.state();
        let is_present = !state.is_stopping && self.attempt.load(Ordering::Acquire) == attempt;
        if is_present {
            change(&mut state.link);
        }
        is_present
    }

    /// There is a connection, on which the replica logs in. Returns whether it is still wanted.
    pub(super) fn attach(&self, attempt: u64, socket: TcpStream) -> bool {
        self.with_link(attempt, |link| link.socket = Some(socket))
    }

    /// The replica has logged in.
    pub(super) fn begin_link(&self, attempt: u64) {
        self.with_link(attempt, |link| {
            (link.heard, link.failure) = (Some(Instant::now()), None);
        });
    }

    pub(super) fn set_phase(&self, attempt: u64, phase: LinkPhase) {
        self.with_link(attempt, |link| {
            link.phase = phase;
            link.online = (phase == LinkPhase::Online).then(Instant::now);
        });
    }

    /// The primary has sent something.
    pub(super) fn hear(&self, attempt: u64, frame: &Frame<'_>) {
        self.with_link(attempt, |link| {
            link.heard = Some(Instant::now());
            if let Frame::Batch { end, .. } | Frame::Ping { end, .. } = frame {
                link.primary_end = Position(*end);
            }
        });
    }

    /// The link has ended. Returns for how long the replica was in step with its primary.
    pub(super) fn link_failed(&self, attempt: u64, reason: &str) -> Duration {
        let mut lasted = Duration::ZERO;
        self.with_link(attempt, |link| {
            lasted = link.online.map_or(lasted, |online| online.elapsed());
            let failure = Some(reason.to_owned());
            *link = Link { failure, heard: link.heard, ..Link::default() };
        });
        lasted
    }
}
