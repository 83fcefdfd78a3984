// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The source of a move: it sends what concerns the slots of its snapshot and its log, until the
//! target is close behind, and hands over then.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use freeport_kv_cluster::{Move, NodeId, SlotSet};
use freeport_kv_journal::{Batch, FollowError, Follower, SnapshotReader, Units};
use freeport_kv_protocol::replication::{ANSWER_BYTES_MAX, Frame, FrameReader};
use thiserror::Error;

use super::division::DivisionError;
use super::handover::{Handover, Outcome};
use super::{Direction, Divider, Moving, Stage, Tracker, is_present};
use crate::cluster::Cluster;
use crate::persistence::Persistence;
use crate::replication::{Replication, Request};
use crate::shared::{FollowerCount, Shared, now_ms};

/// Reply to the request, before the first frame.
const OK: &[u8] = b"+OK\r\n";
/// Longest silence of a source.
const PING_EVERY: Duration = Duration::from_millis(250);
/// Bytes of units that are sent together.
const TOGETHER_BYTES: u64 = 64 << 10;
/// A target that is at most so far behind gets the slots.
const CLOSE_BYTES: u64 = 256 << 10;
/// Time until the next hand-over after one that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// Why an attempt has ended.
#[derive(Debug, Error)]
pub(super) enum End {
    #[error("the connection has failed: {0}")]
    Link(#[from] io::Error),
    #[error("{0}")]
    Log(#[from] FollowError),
    #[error("{0}; a snapshot is written, behind which the move can begin again")]
    Division(#[from] DivisionError),
    #[error("{0}")]
    Refused(String),
}

/// An answer of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It has everything up to this position, and so have its replicas.
    Complete(u64),
    /// It knows that it has the slots.
    Moved,
}

/// Serves a target that has asked for slots over a socket, which blocks, in a thread of its own.
/// The connection counts as one of a follower until the thread ends.
///
/// # Errors
/// The system has no thread.
pub fn serve(
    shared: &Arc<Shared>,
    stream: TcpStream,
    request: &Request,
    counted: FollowerCount,
) -> io::Result<()> {
    let Some(moving) = &shared.moving else {
        return (&stream).write_all(b"-ERR This instance has cluster support disabled\r\n");
    };
    let socket = Some(stream.try_clone()?);
    let (shared, slots, node) = (shared.clone(), request.slots.clone(), request.node);
    let thread = std::thread::Builder::new().name("kv-export".into());
    let handle = thread.spawn(move || {
        let _counted = counted;
        let end = (&stream).write_all(OK).map_err(End::Link).and_then(|()| {
            match Exporter::new(&shared, &stream, slots.zip(node)) {
                Some(exporter) => exporter.run(),
                None => {
                    let text = "this server does not move these slots to that node at present";
                    Ok(send(&stream, &Frame::Refused { text })?)
                }
            }
        });
        if let Err(reason) = end {
            tracing::warn!(reason = reason.to_string(), "a move of slots was interrupted");
        }
    })?;
    moving.keep(socket, handle);
    Ok(())
}

/// One attempt.
pub(super) struct Exporter<'a> {
    pub shared: &'a Arc<Shared>,
    pub cluster: &'a Cluster,
    pub moving: &'a Moving,
    pub persistence: &'a Persistence,
    pub wanted: Move,
    /// The primary of the target.
    pub target: NodeId,
    pub tracker: Tracker<'a>,
    pub stream: &'a TcpStream,
    limit_bytes: u64,
    divider: Divider,
    /// Position up to which the target has everything.
    acked: AtomicU64,
}

/// Progress of an attempt.
struct Sent {
    /// Units that were not sent yet.
    units: Units,
    /// Begin and end of the part of the log that they come from.
    range: (u64, u64),
    total_bytes: u64,
    bytes: u64,
    last: Instant,
}

impl<'a> Exporter<'a> {
    /// None: there is no such move.
    fn new(
        shared: &'a Arc<Shared>,
        stream: &'a TcpStream,
        asked: Option<(SlotSet, NodeId)>,
    ) -> Option<Self> {
        let (slots, target) = asked?;
        let (moving, cluster) = (shared.moving.as_ref()?, shared.cluster.as_ref()?);
        let view = cluster.view();
        let is_asked = |one: &&Move| {
            let to = view.topology.shard(one.to);
            one.slots == slots && to.is_some_and(|shard| shard.primary == target)
        };
        let wanted = view.topology.moves.iter().find(is_asked)?.clone();
        if !is_present(&view, &wanted, Direction::Export) {
            return None;
        }
        let replication: &Replication = shared.replication.as_ref()?;
        let timeout = cluster.options.timeout.max(Duration::from_secs(1));
        stream.set_write_timeout(Some(timeout)).ok()?;
        stream.set_read_timeout(None).ok()?;
        Some(Self {
            shared,
            cluster,
            moving,
            persistence: shared.persistence.as_ref()?,
            tracker: moving.progress.track(Direction::Export, &wanted),
            wanted,
            target,
            stream,
            limit_bytes: replication.options(&shared.configuration).behind_bytes_max,
            divider: Divider::new(shared.table.clone()),
            acked: AtomicU64::new(0),
        })
    }

    fn run(&self) -> Result<(), End> {
        let (sender, answers) = channel();
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("kv-answers".into());
            let end = match thread.spawn_scoped(scope, || self.take_answers(sender)) {
                Ok(_) => self.send_all(&answers),
                Err(error) => Err(End::Link(error)),
            };
            if let Err(End::Division(_)) = &end {
                self.persistence.snapshots.want_automatically(PAUSE);
            }
            if let Err(end @ (End::Log(_) | End::Division(_) | End::Refused(_))) = &end {
                // The target may be gone.
                let _ = send(self.stream, &Frame::Refused { text: &end.to_string() });
            }
            // The other thread ends with the connection.
            let _ = self.stream.shutdown(std::net::Shutdown::Both);
            end
        })
    }

    /// Takes the answers of the target until the connection ends.
    fn take_answers(&self, answers: Sender<Answer>) {
        let mut frames = FrameReader::with_limit(ANSWER_BYTES_MAX);
        while let Ok(frame) = frames.read(&mut &*self.stream) {
            let answer = match frame {
                Frame::Ack { released, .. } => {
                    self.acked.store(released, Ordering::Release);
                    continue;
                }
                Frame::Complete { position } => Answer::Complete(position),
                Frame::Moved { .. } => Answer::Moved,
                _ => break,
            };
            if answers.send(answer).is_err() {
                break;
            }
        }
        // A target that sends something else is not served any longer.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    fn send_all(&self, answers: &Receiver<Answer>) -> Result<(), End> {
        self.tracker.set_stage(Stage::Snapshot);
        let journal = &self.persistence.journal;
        let (snapshot, mut follower) = journal.read_snapshot(self.limit_bytes)?;
        let mut sent = Sent::new(follower.position().0, snapshot.bytes() + follower.behind());
        self.send_snapshot(snapshot, &mut sent)?;
        self.tracker.set_stage(Stage::Stream);
        let mut handover = Handover::new(self, answers);
        let mut next = Instant::now();
        loop {
            self.check()?;
            self.send_next(&mut follower, &mut sent, PING_EVERY)?;
            let end = follower.position().0;
            let unacked = end - self.acked.load(Ordering::Acquire).min(end);
            let is_close = unacked + follower.behind() <= CLOSE_BYTES;
            if is_close && Instant::now() >= next {
                self.flush(&mut sent)?;
                let parts = (&mut follower, &mut sent);
                match handover.attempt(|until, end| self.send_until(parts, (until, end)))? {
                    Outcome::Moved => return Ok(()),
                    Outcome::Kept(reason) => {
                        self.tracker.fail(reason);
                        self.tracker.set_stage(Stage::Stream);
                        next = Instant::now() + PAUSE;
                    }
                }
            }
        }
    }

    /// The attempt still has a purpose.
    fn check(&self) -> Result<(), End> {
        match is_present(&self.cluster.view(), &self.wanted, Direction::Export) {
            true if !self.shared.is_stopping() => Ok(()),
            _ => Err(End::Refused("the move is no longer wanted here".into())),
        }
    }

    fn send_snapshot(&self, mut snapshot: SnapshotReader, sent: &mut Sent) -> Result<(), End> {
        let (position, bytes) = (sent.range.0, sent.total_bytes);
        send(self.stream, &Frame::Begin { is_full: true, position, bytes })?;
        let mut entries = 0;
        let mut units = Units::new();
        while let Some(items) = snapshot.next_block()? {
            self.check()?;
            sent.bytes += items.bytes().len() as u64;
            for entry in items {
                let mut part = [vec![]];
                self.divider.entry(entry, self.choose(), &mut part)?;
                if !part[0].is_empty() {
                    entries += 1;
                    units.push(&part[0]);
                }
            }
            self.tracker.set_bytes(sent.bytes, sent.total_bytes);
            if units.bytes() > TOGETHER_BYTES {
                self.send_entries(&mut units)?;
            }
        }
        self.send_entries(&mut units)?;
        Ok(send(self.stream, &Frame::EntriesEnd { entries })?)
    }

    fn send_entries(&self, units: &mut Units) -> Result<(), End> {
        if !units.is_empty() {
            let (count, items) = (units.items().len(), units.items().bytes());
            send(self.stream, &Frame::Entries { count, items })?;
            units.clear();
        }
        Ok(())
    }

    fn choose(&self) -> impl Fn(u16) -> Option<usize> {
        |slot| self.wanted.slots.has(slot).then_some(0)
    }

    /// Sends the log up to a position at least, until a time at most. Returns whether all was sent.
    /// The log can be followed only as far as it is written, which a full disk prevents.
    fn send_until(
        &self,
        (follower, sent): (&mut Follower, &mut Sent),
        (position, end): (u64, Instant),
    ) -> Result<bool, End> {
        while follower.position().0 < position {
            if Instant::now() >= end {
                return Ok(false);
            }
            self.check()?;
            self.send_next(follower, sent, PING_EVERY)?;
        }
        self.flush(sent).map(|()| true)
    }

    /// Takes the next batch of the log, if it comes in time, and sends what has gathered.
    fn send_next(
        &self,
        follower: &mut Follower,
        sent: &mut Sent,
        patience: Duration,
    ) -> Result<(), End> {
        let patience = if sent.units.is_empty() { patience } else { Duration::ZERO };
        match follower.next_batch(patience)? {
            Some(batch) => self.take(&batch, sent)?,
            None => return self.flush(sent),
        }
        if sent.units.bytes() > TOGETHER_BYTES || sent.last.elapsed() > PING_EVERY {
            self.flush(sent)?;
        }
        Ok(())
    }

    /// Gathers the part of a batch that concerns the slots.
    fn take(&self, batch: &Batch<'_>, sent: &mut Sent) -> Result<(), End> {
        for unit in batch.units.clone() {
            let mut part = [vec![]];
            if self.divider.unit(unit, self.choose(), &mut part)? {
                sent.units.clear();
                // An empty unit: all keys were removed.
                sent.units.push(&[]);
            }
            if !part[0].is_empty() {
                sent.units.push(&part[0]);
            }
        }
        sent.range.1 = batch.end().0;
        sent.bytes += batch.end().0 - batch.position.0;
        Ok(())
    }

    /// Sends what has gathered, or a sign of life.
    fn flush(&self, sent: &mut Sent) -> Result<(), End> {
        let (position, end) = sent.range;
        let end_of_log = self.persistence.journal.end().0;
        if position < end {
            let (count, items) = (sent.units.items().len(), sent.units.items().bytes());
            send(self.stream, &Frame::Batch { position, end, count, items })?;
            sent.units.clear();
            sent.range.0 = end;
        } else {
            send(self.stream, &Frame::Ping { end: end_of_log, time_ms: now_ms() })?;
        }
        sent.last = Instant::now();
        self.tracker.set_bytes(sent.bytes, sent.bytes + end_of_log.saturating_sub(end));
        Ok(())
    }
}

impl Sent {
    fn new(position: u64, total_bytes: u64) -> Self {
        let (units, range) = (Units::new(), (position, position));
        Self { units, range, total_bytes, bytes: 0, last: Instant::now() }
    }
}

pub(super) fn send(mut stream: &TcpStream, frame: &Frame<'_>) -> io::Result<()> {
    let mut head = vec![];
    frame.write_head(&mut head);
    stream.write_all(&head)?;
    stream.write_all(frame.payload())
}
