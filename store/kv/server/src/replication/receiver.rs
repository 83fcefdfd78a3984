// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread of a replica that follows its primary. It connects again after every failure, for as
//! long as the server is a replica.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use freeport_kv_journal::Position;
use freeport_kv_protocol::replication::Frame;

use super::feed::{Batch, Feed};
use super::link::{LinkStream, connect};
use super::request::Request;
use super::sync::Sync;
use super::{Leader, LinkPhase, Replication, Role};
use crate::shared::Shared;

/// Pauses between attempts: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Time between two answers to the primary while nothing changes.
const ANSWER_EVERY: Duration = Duration::from_secs(1);

/// Follows primaries until the server stops.
pub(super) fn run(shared: &Arc<Shared>) {
    let Some(replication) = &shared.replication else { return };
    let mut pause = PAUSE_MIN;
    let mut last = String::new();
    while let Some((leader, attempt)) = replication.next_leader() {
        let session = Session { shared, replication, attempt, feed: Arc::default() };
        let reason = session.follow(&leader);
        if replication.link().phase == LinkPhase::Online {
            pause = PAUSE_MIN;
        }
        let primary = leader.address.to_string();
        if reason != last {
            tracing::warn!(primary, reason, "the replica has no link to its primary");
            last.clone_from(&reason);
        }
        replication.link_failed(attempt, reason);
        // Replicas that lost the same primary do not all come at once.
        replication.pause(attempt, pause.mul_f64(0.5 + fastrand::f64() / 2.0));
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// One link to a primary.
pub(super) struct Session<'a> {
    pub shared: &'a Arc<Shared>,
    pub replication: &'a Replication,
    /// The change of the role to which it belongs.
    pub attempt: u64,
    pub feed: Arc<Feed>,
}

impl Session<'_> {
    /// Follows a primary; returns why that has ended.
    fn follow(&self, leader: &Leader) -> String {
        let (history, position) = self.replication.place();
        let request = Request {
            node: self.replication.node,
            port: self.replication.port,
            history,
            position,
            slots: None,
        };
        let options = self.replication.options(self.shared);
        let mut link = match connect(&leader.address, &options, &request) {
            Ok(link) => link,
            Err(error) => return error.to_string(),
        };
        match link.stream.try_clone() {
            Ok(socket) if self.replication.attach(self.attempt, socket) => {}
            Ok(_) => return "the role has changed".into(),
            Err(error) => return error.to_string(),
        }
        let reason = std::thread::scope(|scope| {
            let answers = scope.spawn(|| self.answer(&link.stream));
            // This borrows the link's reader only.
            drop(answers);
            String::new()
        });
        let _ = &mut link;
        reason
    }
}
