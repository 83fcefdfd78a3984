// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread of a replica that follows its primary. It connects again after every failure, for as
//! long as the server is a replica.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::Address;
use freeport_kv_journal::{Items, Lineage, Position};
use freeport_kv_protocol::replication::{Frame, FrameReader};

use super::backoff::Backoff;
use super::feed::{Batch, Feed};
use super::link::{LinkStream, log_in, open};
use super::request::Request;
use super::role::with_all_shards;
use super::sync::Sync;
use super::{Leader, LinkPhase, Replication, ReplicationOptions};
use crate::shared::Shared;

/// Bytes of the replica's own log that are executed and not released at most.
const UNRELEASED_MAX: u64 = 64 << 20;
/// Longest time between two answers to the primary while nothing changes.
const ANSWER_EVERY: Duration = Duration::from_secs(1);

/// Follows primaries until the server stops.
pub(super) fn run(shared: &Arc<Shared>) {
    let Some(replication) = &shared.replication else { return };
    let (mut backoff, mut last) = (Backoff::default(), String::new());
    while let Some((leader, attempt)) = replication.next_leader() {
        let session = Session { shared, replication, attempt, feed: Arc::default() };
        let reason = session.follow(&leader);
        let lasted = replication.link_failed(attempt, &reason);
        let pause = backoff.next(attempt, lasted);
        if !lasted.is_zero() || reason != last {
            let primary = leader.address.to_string();
            tracing::warn!(primary, reason, "the replica has no link to its primary");
            last = reason;
        }
        // Replicas that lost the same primary do not all come at once.
        replication.pause(attempt, pause.mul_f64(0.5 + fastrand::f64() / 2.0));
    }
}

/// One link to a primary.
pub(super) struct Session<'a> {
    pub shared: &'a Arc<Shared>,
    pub replication: &'a Replication,
    /// The change of the role to which it belongs.
    pub attempt: u64,
    feed: Arc<Feed>,
}

/// The frames that a link has brought so far.
enum Intake<'a> {
    Nothing,
    /// How the primary begins.
    Begun {
        is_full: bool,
        position: Position,
    },
    /// Entries of its snapshot.
    Syncing(Box<Sync<'a>>),
    /// Changes.
    Online,
}

impl<'a> Session<'a> {
    /// Follows a primary; returns why that has ended.
    fn follow(&self, leader: &Leader) -> String {
        let (history, position) = self.replication.place();
        let Replication { node, port, .. } = self.replication;
        let request = Request { node: *node, port: *port, history, position, slots: None };
        let options = self.replication.options(&self.shared.configuration);
        let link = self.connect(&leader.address, &options, &request);
        let LinkStream { stream, mut frames } = match link {
            Ok(link) => link,
            Err(error) => return error.to_string(),
        };
        self.replication.begin_link(self.attempt);
        let reason = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("kv-answers".into());
            let thread = thread.spawn_scoped(scope, || self.answer(&stream, options.timeout));
            let reason = match thread {
                Ok(_) => self.receive(&stream, &mut frames),
                Err(error) => format!("the system has no thread: {error}"),
            };
            self.feed.end(None);
            // The primary may have done so before.
            let _ = stream.shutdown(Shutdown::Both);
            self.replication.progress.notify();
            reason
        });
        self.replication.progress.rest();
        self.feed.take_failure().unwrap_or(reason)
    }

    /// Connects and logs in. A change of the role ends the login, however long the primary takes.
    fn connect(
        &self,
        address: &Address,
        options: &ReplicationOptions,
        request: &Request,
    ) -> io::Result<LinkStream> {
        let stream = open(address, options)?;
        if !self.replication.attach(self.attempt, stream.try_clone()?) {
            return Err(io::Error::other("the role has changed"));
        }
        log_in(stream, options, request)
    }

    /// Takes what the primary sends; returns why it has ended.
    fn receive(&self, mut stream: &TcpStream, frames: &mut FrameReader) -> String {
        let mut intake = Intake::Nothing;
        loop {
            let frame = match frames.read(&mut stream) {
                Ok(frame) => frame,
                Err(error) if error.is_timeout() => return "the primary is silent".into(),
                Err(error) => return error.to_string(),
            };
            // A batch may have failed that was taken long ago.
            if self.feed.is_over() {
                return "the link was ended".into();
            }
            intake = match self.take(intake, frame) {
                Ok(intake) => intake,
                Err(reason) => return reason,
            };
        }
    }

    fn take(&self, intake: Intake<'a>, frame: Frame<'_>) -> Result<Intake<'a>, String> {
        const UNEXPECTED: &str = "the primary sends a frame that is not expected";
        self.replication.hear(self.attempt, &frame);
        match (intake, frame) {
            (_, Frame::Refused { text }) => Err(text.to_owned()),
            (intake, Frame::Ping { .. }) => Ok(intake),
            (Intake::Nothing, Frame::Begin { is_full, position, .. }) => {
                Ok(Intake::Begun { is_full, position: Position(position) })
            }
            (Intake::Begun { is_full, position }, Frame::Lineage { text }) => {
                self.begin(is_full, position, &text.parse()?)
            }
            (Intake::Syncing(mut sync), Frame::Entries { count, items }) => {
                sync.entries(Items::parse(items, count)?)?;
                Ok(Intake::Syncing(sync))
            }
            (Intake::Syncing(sync), Frame::EntriesEnd { entries }) => {
                sync.finish(self, entries)?;
                self.replication.set_phase(self.attempt, LinkPhase::Online);
                Ok(Intake::Online)
            }
            (Intake::Online, Frame::Batch { position, count, items, .. }) => {
                let position = Position(position);
                self.feed(Batch { position, count, items: items.to_vec() })?;
                Ok(Intake::Online)
            }
            _ => Err(UNEXPECTED.into()),
        }
    }

    fn begin(
        &self,
        is_full: bool,
        position: Position,
        lineage: &Lineage,
    ) -> Result<Intake<'a>, String> {
        if is_full {
            self.replication.set_phase(self.attempt, LinkPhase::Syncing);
            let sync = Sync::begin(self, position, lineage.clone())?;
            return Ok(Intake::Syncing(Box::new(sync)));
        }
        let (attempt, lineage) = (self.attempt, lineage.clone());
        let continued = with_all_shards(self.shared, move |core| {
            core.continue_log(attempt, position, &lineage)
        });
        continued.map_err(|error| error.to_string())?;
        self.replication.set_phase(self.attempt, LinkPhase::Online);
        Ok(Intake::Online)
    }

    /// Hands a batch to the first worker. Waits while many batches are executed and not released,
    /// because a slow disk keeps them in memory.
    fn feed(&self, batch: Batch) -> Result<(), String> {
        let journal = &self.replication.journal;
        let mut seen = 0;
        while !self.is_ended()
            && journal.end().0.saturating_sub(journal.released().0) > UNRELEASED_MAX
        {
            seen = self.replication.progress.wait(seen, ANSWER_EVERY);
        }
        // The feed is locked while it waits, so it is not asked whether it is over.
        if self.feed.push(batch, || !self.replication.is_wanted(self.attempt))? {
            let (feed, attempt) = (self.feed.clone(), self.attempt);
            self.shared.send_errand(move |core| core.apply_some(feed, attempt));
        }
        Ok(())
    }

    /// Nobody wants what the link brings any more.
    fn is_ended(&self) -> bool {
        self.feed.is_over() || !self.replication.is_wanted(self.attempt)
    }

    /// Lets the primary know how far the replica's log is, whenever it has advanced.
    fn answer(&self, mut stream: &TcpStream, timeout: Duration) {
        let pause = ANSWER_EVERY.min(timeout / 3);
        let journal = &self.replication.journal;
        let mut seen = 0;
        loop {
            seen = self.replication.progress.wait(seen, pause);
            if self.feed.is_over() {
                return;
            }
            // The positions of a replica that is not in step are none of the primary's log.
            let (released, durable) = match self.replication.link().phase {
                LinkPhase::Online => (journal.released().0, journal.durable().0),
                LinkPhase::Down | LinkPhase::Syncing => (0, 0),
            };
            let mut bytes = vec![];
            Frame::Ack { released, durable }.write(&mut bytes);
            if stream.write_all(&bytes).is_err() {
                // The receiver finds it as well.
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}
