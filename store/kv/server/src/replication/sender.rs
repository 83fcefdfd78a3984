// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The threads of a primary that serve one replica. One sends: the snapshot if the replica needs
//! it, and then the log as it grows, from the files. So a slow replica keeps no memory here. The
//! other one takes the replica's answers.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use freeport_kv_journal::{FollowError, Follower, Position, SnapshotReader};
use freeport_kv_protocol::replication::{ANSWER_BYTES_MAX, Frame, FrameReader};
use freeport_kv_protocol::resp::reply::shared::OK;
use thiserror::Error;

use super::Replication;
use super::replicas::Replica;
use super::request::Request;
use crate::mail::Mailbox;
use crate::moving;
use crate::shared::{FollowerCount, Shared, now_ms};

/// Longest time between two signs of life while the log does not grow.
const PING_EVERY: Duration = Duration::from_millis(250);
/// Bytes of batches that are sent with one system call.
const TOGETHER_BYTES: usize = 64 << 10;

/// Why a replica is not served any longer.
#[derive(Debug, Error)]
enum End {
    #[error("the connection has failed: {0}")]
    Link(#[from] io::Error),
    #[error("{0}")]
    Log(#[from] FollowError),
    #[error("{0}")]
    Refused(String),
}

/// Serves the replica that has sent a request over a socket, which blocks. The connection counts as
/// one of a follower until its thread ends.
///
/// # Errors
/// The system has no more sockets or threads.
pub fn serve(
    shared: &Arc<Shared>,
    stream: TcpStream,
    (request, host): (Request, String),
    counted: FollowerCount,
) -> io::Result<()> {
    if request.slots.is_some() {
        return moving::serve(shared, stream, &request, counted);
    }
    let Some(replication) = &shared.replication else { return Ok(()) };
    let timeout = replication.options(&shared.configuration).timeout;
    // A replica that is silent is disconnected, which also ends a write that waits for it.
    stream.set_read_timeout(Some(timeout))?;
    let place = (host, request.port);
    let replica = Arc::new(Replica::new(request.node, place, stream.try_clone()?));
    let ping_every = PING_EVERY.min(timeout / 3);
    let sender = Sender {
        shared: shared.clone(),
        replica: replica.clone(),
        stream,
        ping_every,
        _counted: counted,
    };
    let thread = std::thread::Builder::new().name("kv-sender".into());
    replication.replicas.add(replica, || thread.spawn(move || sender.run(&request)))
}

struct Sender {
    shared: Arc<Shared>,
    replica: Arc<Replica>,
    stream: TcpStream,
    ping_every: Duration,
    _counted: FollowerCount,
}

impl Sender {
    fn run(&self, request: &Request) {
        let Some(replication) = &self.shared.replication else { return };
        replication.replicas.wait_until_listed();
        let end = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("kv-answers".into());
            let end = match thread.spawn_scoped(scope, || self.take_answers()) {
                Ok(_) => self.send_all(replication, request),
                Err(error) => Err(End::Link(error)),
            };
            if let Err(end @ (End::Log(_) | End::Refused(_))) = &end {
                // The replica may be gone.
                let _ = self.send(&Frame::Refused { text: &end.to_string() });
            }
            self.replica.disconnect();
            end
        });
        if let Err(reason) = end {
            let (host, port) = (&self.replica.host, self.replica.port);
            tracing::warn!(host, port, reason = reason.to_string(), "a replica has gone");
        }
    }

    fn send_all(&self, replication: &Replication, request: &Request) -> Result<(), End> {
        (&self.stream).write_all(OK)?;
        if replication.is_replica() {
            let text = "this server is a replica; follow its primary";
            return Err(End::Refused(text.into()));
        }
        let journal = &replication.journal;
        replication.ensure_history().map_err(End::Refused)?;
        let limit = replication.options.behind_bytes_max;
        let lineage = journal.lineage();
        let is_known = lineage.covers(request.history, request.position);
        let continued = is_known.then(|| journal.follow(request.position, limit));
        let counts = &replication.counts;
        let mut follower = match continued {
            Some(Ok(follower)) => {
                counts.partial.fetch_add(1, Ordering::Relaxed);
                self.send(&Frame::Begin {
                    is_full: false,
                    position: request.position.0,
                    bytes: 0,
                })?;
                self.send(&Frame::Lineage { text: &lineage.to_string() })?;
                follower
            }
            _ => {
                let has_log = request.history != 0;
                counts.refused.fetch_add(has_log.into(), Ordering::Relaxed);
                counts.full.fetch_add(1, Ordering::Relaxed);
                let (snapshot, follower) = journal.read_snapshot(limit)?;
                self.send_snapshot(snapshot, &follower, &lineage.to_string())?;
                follower
            }
        };
        self.replica.set_online();
        self.send_log(replication, &mut follower)
    }

    fn send_snapshot(
        &self,
        mut snapshot: SnapshotReader,
        follower: &Follower,
        lineage: &str,
    ) -> Result<(), End> {
        let (position, bytes) = (follower.position().0, snapshot.bytes());
        self.send(&Frame::Begin { is_full: true, position, bytes })?;
        self.send(&Frame::Lineage { text: lineage })?;
        let mut entries = 0;
        while let Some(items) = snapshot.next_block()? {
            let count = items.len();
            entries += u64::from(count);
            self.send(&Frame::Entries { count, items: items.bytes() })?;
        }
        Ok(self.send(&Frame::EntriesEnd { entries })?)
    }

    /// Sends batches until the connection ends.
    fn send_log(&self, replication: &Replication, follower: &mut Follower) -> Result<(), End> {
        let mut bytes = vec![];
        loop {
            let patience = if bytes.is_empty() { self.ping_every } else { Duration::ZERO };
            match follower.next_batch(patience)? {
                Some(batch) => {
                    let items = batch.units.bytes();
                    let (position, end) = (batch.position.0, batch.end().0);
                    let count = batch.units.len();
                    let frame = Frame::Batch { position, end, count, items };
                    frame.write_head(&mut bytes);
                    if bytes.len() + items.len() < TOGETHER_BYTES {
                        bytes.extend_from_slice(items);
                        continue;
                    }
                    (&self.stream).write_all(&bytes)?;
                    (&self.stream).write_all(items)?;
                }
                None => {
                    if bytes.is_empty() {
                        let end = replication.journal.end().0;
                        Frame::Ping { end, time_ms: now_ms() }.write(&mut bytes);
                    }
                    (&self.stream).write_all(&bytes)?;
                }
            }
            bytes.clear();
        }
    }

    fn send(&self, frame: &Frame<'_>) -> io::Result<()> {
        let mut head = vec![];
        frame.write_head(&mut head);
        (&self.stream).write_all(&head)?;
        (&self.stream).write_all(frame.payload())
    }

    /// Takes the answers of the replica, until it sends none for too long, or something else.
    fn take_answers(&self) {
        let mut frames = FrameReader::with_limit(ANSWER_BYTES_MAX);
        while let Ok(Frame::Ack { released, durable }) = frames.read(&mut &self.stream) {
            self.replica.note(Position(released), Position(durable));
            self.shared.mailboxes.iter().for_each(Mailbox::log_has_advanced);
        }
        self.replica.disconnect();
    }
}
