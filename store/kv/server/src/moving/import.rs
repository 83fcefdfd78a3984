// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The target of a move: it follows the source, and records as its own what it gets.
//!
//! Units go to the workers of their keys, and the source gets acknowledgments when these have
//! recorded them. At the hand-over, the replicas of the target need to have everything too, so that
//! one of them can replace it.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use freeport_kv_cluster::{Move, Revision, Shard};
use freeport_kv_journal::{Items, Position};
use freeport_kv_protocol::replication::{Frame, ReadError};
use freeport_kv_protocol::slots::worker_of_slot;

use super::manager::Stop;
use super::{Direction, Divider, Moving, Stage, Tracker, is_present};
use crate::cluster::{Cluster, View};
use crate::mail::Message;
use crate::persistence::Persistence;
use crate::replication::{LinkStream, Replication, Request, log_in, open};
use crate::shared::Shared;
use crate::worker::Import;

/// Bytes of units that workers have not recorded yet, at most, unless it is one frame.
const BYTES_MAX: usize = 4 << 20;
/// Time after which what was received is acknowledged.
const ACK_EVERY: Duration = Duration::from_millis(50);
/// Time for the workers, which may execute a long script, to record what they were sent.
const WORKERS_MAX: Duration = Duration::from_secs(60);
/// Times between attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// Time between two looks at something that no event announces.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Imports slots until they are here, or the move is no longer wanted.
pub(super) fn run(shared: &Arc<Shared>, wanted: &Move, stop: &Stop) {
    let Some(importer) = Importer::new(shared, wanted, stop) else { return };
    let mut pause = PAUSES[0];
    while !stop.is_set() && importer.is_wanted(&importer.cluster.view()) {
        let begun = Instant::now();
        match importer.attempt() {
            Ok(()) => break,
            // It has ended in this way if the node knows that it has the slots before it is told.
            Err(_) if !importer.is_wanted(&importer.cluster.view()) => break,
            Err(reason) => {
                tracing::warn!(slots = %wanted.slots, reason, "an import of slots has failed");
                importer.tracker.fail(reason);
            }
        }
        // After a long attempt, the next one may begin soon.
        pause = if begun.elapsed() > PAUSES[1] { PAUSES[0] } else { (2 * pause).min(PAUSES[1]) };
        stop.wait(pause);
    }
    importer.moving.hold(&wanted.slots, None, importer.cluster);
}

struct Importer<'a> {
    shared: &'a Arc<Shared>,
    cluster: &'a Cluster,
    moving: &'a Moving,
    persistence: &'a Persistence,
    replication: &'a Replication,
    divider: Divider,
    tracker: Tracker<'a>,
    wanted: &'a Move,
    stop: &'a Stop,
}

/// Units that workers were sent during one attempt.
struct Sent {
    done: Sender<Result<(), String>>,
    answers: Receiver<Result<(), String>>,
    /// Messages that were not answered, and the bytes of their units.
    messages: usize,
    bytes: usize,
    /// The source's log was received up to here.
    position: u64,
    acked: Instant,
    received_bytes: u64,
    snapshot_bytes: u64,
    /// Number of times that all keys had been removed when the attempt began.
    clears: u64,
}

impl<'a> Importer<'a> {
    /// None: the server is no node of a cluster.
    fn new(shared: &'a Arc<Shared>, wanted: &'a Move, stop: &'a Stop) -> Option<Self> {
        let moving = shared.moving.as_ref()?;
        Some(Self {
            shared,
            cluster: shared.cluster.as_ref()?,
            moving,
            persistence: shared.persistence.as_ref()?,
            replication: shared.replication.as_ref()?,
            divider: Divider::new(shared.table.clone()),
            tracker: moving.progress.track(Direction::Import, wanted),
            wanted,
            stop,
        })
    }

    fn is_wanted(&self, view: &View) -> bool {
        is_present(view, self.wanted, Direction::Import)
    }

    /// Returns when the slots belong to this node.
    fn attempt(&self) -> Result<(), String> {
        self.begin()?;
        self.tracker.set_stage(Stage::Purge);
        self.purge()?;
        let clears = self.moving.clears();
        let view = self.cluster.view();
        let source = view.topology.shard(self.wanted.from).ok_or("the source has left")?;
        let address = view.address(source.primary());
        let options = self.replication.options(&self.shared.configuration);
        let request = Request {
            node: Some(self.cluster.me),
            port: self.cluster.options.address.port,
            history: 0,
            position: Position(0),
            slots: Some(self.wanted.slots.clone()),
        };
        let stream = open(address, &options).map_err(text)?;
        self.stop.attach(stream.try_clone().map_err(text)?)?;
        let link = log_in(stream, &options, &request);
        self.stop.detach();
        let mut link = link.map_err(text)?;
        link.stream.set_read_timeout(Some(ACK_EVERY)).map_err(text)?;
        self.tracker.set_stage(Stage::Snapshot);
        let mut sent = Sent::new(clears);
        let end = self.follow(&mut link, &mut sent);
        // Units that are still under way must not arrive after the next purge.
        sent.settle();
        end
    }

    /// Makes a hand-over fail that may still be under way from an earlier attempt.
    fn begin(&self) -> Result<(), String> {
        let view = self.cluster.view();
        if !self.is_wanted(&view) || !self.cluster.fence.is_valid() {
            return Err("the node is not the primary of the target at present".into());
        }
        let mut topology = view.topology.clone();
        topology.epoch += 1;
        match self.cluster.options.registry.swap(Some(view.revision), None, &topology) {
            Ok(_) => Ok(()),
            Err(error) => Err(text(error)),
        }
    }

    fn purge(&self) -> Result<(), String> {
        let slots = &self.wanted.slots;
        self.moving.hold(slots, Some(true), self.cluster);
        while !self.moving.purges.wait(slots, ACK_EVERY) {
            self.check()?;
        }
        self.moving.hold(slots, Some(false), self.cluster);
        Ok(())
    }

    /// The attempt still has a purpose.
    fn check(&self) -> Result<(), String> {
        match !self.stop.is_set() && self.is_wanted(&self.cluster.view()) {
            true => Ok(()),
            false => Err("the move is no longer wanted".into()),
        }
    }

    fn follow(&self, link: &mut LinkStream, sent: &mut Sent) -> Result<(), String> {
        let patience = self.cluster.options.timeout.max(Duration::from_secs(1));
        let mut heard = Instant::now();
        loop {
            self.check()?;
            let frame = match link.frames.read(&mut link.stream) {
                Ok(frame) => frame,
                Err(error) if error.is_timeout() && heard.elapsed() < patience => {
                    self.acknowledge(sent, &mut &link.stream)?;
                    continue;
                }
                Err(ReadError::System(_)) if heard.elapsed() >= patience => {
                    return Err("the source is silent".into());
                }
                Err(error) => return Err(text(error)),
            };
            heard = Instant::now();
            match frame {
                Frame::Begin { is_full: true, position, bytes } => {
                    (sent.position, sent.snapshot_bytes) = (position, bytes);
                }
                Frame::Entries { count, items } => {
                    let items = Items::parse(items, count)?;
                    self.send(sent, items)?;
                }
                Frame::EntriesEnd { .. } => self.tracker.set_stage(Stage::Stream),
                Frame::Batch { end, count, items, .. } => {
                    let items = Items::parse(items, count)?;
                    self.send(sent, items)?;
                    sent.position = end;
                }
                Frame::Complete { position } => {
                    self.tracker.set_stage(Stage::Handover);
                    self.complete(sent, position)?;
                    answer(&mut &link.stream, Frame::Complete { position })?;
                }
                Frame::Resumed => self.tracker.set_stage(Stage::Stream),
                Frame::Moved { revision } => {
                    self.wait_for(Revision(revision))?;
                    // The source does not need the answer to be right.
                    let _ = answer(&mut &link.stream, Frame::Moved { revision });
                    return Ok(());
                }
                Frame::Ping { .. } | Frame::Lineage { .. } => {}
                Frame::Refused { text } => return Err(text.to_owned()),
                other => return Err(format!("the source has sent an unexpected {other:?}")),
            }
            if sent.bytes > BYTES_MAX || sent.acked.elapsed() > ACK_EVERY {
                self.acknowledge(sent, &mut &link.stream)?;
            }
        }
    }

    /// Sends units, which are those of entries as well, to the workers of their keys.
    fn send(&self, sent: &mut Sent, units: Items<'_>) -> Result<(), String> {
        sent.received_bytes += units.bytes().len() as u64;
        self.tracker.set_bytes(sent.received_bytes, sent.snapshot_bytes);
        let workers = self.shared.mailboxes.len();
        let choose = |slot| Some(worker_of_slot(slot, workers));
        let mut queues: Vec<Vec<Vec<u8>>> = vec![vec![]; workers];
        for unit in units {
            if unit.is_empty() {
                // The source's clients have removed all keys.
                queues.iter_mut().for_each(Vec::clear);
                self.finish(sent)?;
                self.purge()?;
                continue;
            }
            let mut parts = vec![vec![]; workers];
            self.divider.unit(unit, choose, &mut parts).map_err(text)?;
            let parts = queues.iter_mut().zip(parts).filter(|(_, part)| !part.is_empty());
            parts.for_each(|(queue, part)| queue.push(part));
        }
        for (mailbox, units) in self.shared.mailboxes.iter().zip(queues) {
            if !units.is_empty() {
                sent.messages += 1;
                sent.bytes += units.iter().map(Vec::len).sum::<usize>();
                let import = Box::new(Import { units, done: sent.done.clone() });
                mailbox.send(Message::Import { import });
            }
        }
        Ok(())
    }

    /// Waits until the workers have recorded everything.
    fn finish(&self, sent: &mut Sent) -> Result<(), String> {
        let begun = Instant::now();
        while sent.messages > 0 {
            match sent.answers.recv_timeout(ACK_EVERY) {
                Ok(result) => {
                    sent.messages -= 1;
                    result?;
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() < WORKERS_MAX => self.check()?,
                Err(_) => return Err("the workers of this server are busy".into()),
            }
        }
        sent.bytes = 0;
        match self.moving.clears() == sent.clears {
            true => Ok(()),
            false => Err("a client of this server has removed all keys".into()),
        }
    }

    fn acknowledge(&self, sent: &mut Sent, stream: &mut impl Write) -> Result<(), String> {
        self.finish(sent)?;
        sent.acked = Instant::now();
        let durable = 0;
        answer(stream, Frame::Ack { released: sent.position, durable })
    }

    /// Waits until everything is durable, and the replicas of this server have it.
    fn complete(&self, sent: &mut Sent, position: u64) -> Result<(), String> {
        self.finish(sent)?;
        if sent.position < position {
            return Err(format!("changes from {} to {position} are missing", sent.position));
        }
        let journal = &self.persistence.journal;
        let end = journal.end();
        journal.sync().map_err(text)?;
        while journal.released() < end || !self.is_replicated(end) {
            self.check()?;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// All replicas that have a lease, of which each could replace this server, have a part of the
    /// log.
    fn is_replicated(&self, end: Position) -> bool {
        let view = self.cluster.view();
        let reports = self.replication.replicas();
        let has_it = |node| reports.iter().any(|it| it.node == Some(node) && it.acked >= end);
        let replicas = view.shard().into_iter().flat_map(Shard::replicas);
        replicas.filter(|it| view.is_present(it.id)).all(|it| has_it(it.id))
    }

    /// Waits until this server knows the topology by which it has the slots.
    fn wait_for(&self, revision: Revision) -> Result<(), String> {
        self.cluster.refresh();
        while self.cluster.view().revision < revision {
            if self.stop.is_set() {
                return Err("the server ends".into());
            }
            self.cluster.wait_for_view(Revision(revision.0 - 1), ACK_EVERY);
        }
        Ok(())
    }
}

impl Sent {
    fn new(clears: u64) -> Self {
        let (done, answers) = channel();
        Self {
            done,
            answers,
            messages: 0,
            bytes: 0,
            position: 0,
            acked: Instant::now(),
            received_bytes: 0,
            snapshot_bytes: 0,
            clears,
        }
    }

    /// Waits until the workers have executed or dropped everything.
    fn settle(self) {
        drop(self.done);
        while self.answers.recv().is_ok() {}
    }
}

fn answer(stream: &mut impl Write, frame: Frame<'_>) -> Result<(), String> {
    let mut bytes = vec![];
    frame.write(&mut bytes);
    stream.write_all(&bytes).map_err(text)
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}
