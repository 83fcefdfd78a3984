// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker's way to the append log: it gathers what its commands change, and appends it once a
//! turn, or earlier when a shard leaves the worker.

use std::sync::Arc;

use freeport_kv_commands::Error;
use freeport_kv_journal::{Journal, Position, Units};

use super::record;
use crate::connection::Connection;

/// Bytes of a unit above which a script's changes are divided into several units. Such a script is
/// not atomic if the machine fails while they are written.
pub const UNIT_BYTES: usize = 1 << 30;
/// Bytes of one command that a unit takes. A unit of a transaction or script may have as many
/// before it, and the log's limit is 2 GiB.
const COMMAND_BYTES: u64 = 1 << 30;
/// Bytes of a script's records for which memory is kept.
const KEPT_BYTES: usize = 64 << 10;

/// Changes of a worker that are not in the log yet, and clients that wait for it.
pub struct Recorder {
    journal: Arc<Journal>,
    /// Units that were not appended yet.
    units: Units,
    /// Records of a transaction or script that has not ended, and their last time. They are apart,
    /// so that units before them can be appended meanwhile.
    open: Vec<u8>,
    open_ms: u64,
    /// Transactions and scripts that are being executed, one inside the other.
    depth: u32,
    /// There is room in the log for the transaction that is being executed.
    is_admitted: bool,
    /// Number of records until now.
    records: u64,
    /// Clients whose output has to be marked at the end of the turn.
    unmarked: Vec<u64>,
    /// Clients with marked output that waits.
    waiting: Vec<u64>,
    /// The server is a replica: all its changes are those of its primary.
    pub is_replica: bool,
    /// Why writes are refused for now, besides the state of the log.
    pub refusal: Option<Error>,
    /// Clients whose commands wait.
    pub awaiting: Vec<(u64, Awaited)>,
    /// The released position, and whether the log failed, when the waiting clients were last looked
    /// at.
    seen: (Position, bool),
    /// How often the log was replaced by that of a primary.
    installed: u64,
}

/// Something that a command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A snapshot, until this number of them have ended (`SAVE`).
    Snapshot {
        /// Number of snapshots.
        ended: u64,
    },
    /// The log, until it is durable (`WAITAOF`).
    Durable {
        /// Up to here.
        position: Position,
        /// When the wait ends without success, in milliseconds since 1970; none: never.
        deadline_ms: Option<u64>,
        /// The file of this server counts as well.
        is_local: bool,
        /// Number of replicas whose logs have to be durable up to there.
        replicas: usize,
    },
    /// Replicas, until they have all changes (`WAIT`).
    Replicas {
        /// Up to here.
        position: Position,
        /// When the wait ends, in milliseconds since 1970; none: never.
        deadline_ms: Option<u64>,
        /// Number of replicas.
        replicas: usize,
    },
}

impl Recorder {
    /// Nothing so far.
    pub fn new(journal: Arc<Journal>) -> Self {
        Self {
            seen: (journal.released(), false),
            journal,
            units: Units::new(),
            open: vec![],
            open_ms: 0,
            depth: 0,
            is_admitted: false,
            records: 0,
            unmarked: vec![],
            waiting: vec![],
            is_replica: false,
            refusal: None,
            awaiting: vec![],
            installed: 0,
        }
    }

    /// Number of changes that were recorded until now.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Asks for room in the log, before a command is executed that may change something.
    ///
    /// # Errors
    /// The log has no room, or cannot be written; the command is refused.
    #[inline]
    pub fn admit(&mut self, arguments: &[&[u8]]) -> Result<(), Error> {
        const TOO_LARGE: Error =
            Error::fixed("ERR the command is too large for the append log, which takes 1 GiB");
        let bytes = record::command_bytes(arguments);
        if bytes > COMMAND_BYTES {
            return Err(TOO_LARGE);
        }
        // A script inside a transaction is not a command that was looked at before.
        let is_admitted = self.is_admitted && self.depth == 1;
        if is_admitted { Ok(()) } else { self.admit_bytes(bytes) }
    }

    /// See [`Recorder::admit`], for a number of bytes.
    ///
    /// # Errors
    /// The same.
    #[inline]
    pub fn admit_bytes(&mut self, bytes: u64) -> Result<(), Error> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let bytes = bytes.saturating_add(self.open.len() as u64);
        self.journal.admit(&mut self.units, bytes).map_err(|refusal| refused(&refusal.reason))
    }

    /// The log takes no changes by this server for now.
    #[inline]
    pub fn refuses(&self) -> bool {
        self.is_replica || self.journal.refuses()
    }

    /// The log cannot be written for now.
    pub fn is_failing(&self) -> bool {
        self.journal.failure().is_some()
    }

    /// The end of all that was appended.
    pub fn end_position(&self) -> Position {
        self.journal.end()
    }

    /// The position up to which replies may be sent.
    pub fn released(&self) -> Position {
        self.journal.released()
    }

    /// The commands that follow belong to one unit, until [`Recorder::end`]. Those of a transaction
    /// were admitted together.
    pub fn begin(&mut self, is_admitted: bool) {
        self.depth += 1;
        self.is_admitted |= is_admitted;
    }

    /// Ends what [`Recorder::begin`] began.
    pub fn end(&mut self) {
        self.depth -= 1;
        if self.depth == 0 {
            self.is_admitted = false;
            self.close_unit();
        }
    }

    /// Makes a unit of the records of a transaction or script.
    fn close_unit(&mut self) {
        if self.open.is_empty() {
            return;
        }
        self.units.push(&self.open);
        self.open.clear();
        if self.open.capacity() > KEPT_BYTES {
            self.open = vec![];
        }
    }

    /// Adds a record at a time.
    #[inline]
    pub fn add(&mut self, now_ms: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.records += 1;
        if self.depth == 0 {
            let unit = self.units.unit();
            record::write_time(unit, now_ms);
            write(unit);
            return self.units.finish();
        }
        if self.open.is_empty() || self.open_ms != now_ms {
            record::write_time(&mut self.open, now_ms);
            self.open_ms = now_ms;
        }
        write(&mut self.open);
        if self.open.len() > UNIT_BYTES {
            self.close_unit();
        }
    }

    /// Adds a unit that was put together elsewhere.
    pub fn add_unit(&mut self, unit: &[u8]) {
        self.records += 1;
        self.units.push(unit);
    }

    /// Appends complete units to the log.
    #[inline]
    pub fn flush(&mut self) {
        if !self.units.is_empty() {
            self.journal.append(&mut self.units);
        }
    }

    /// Holds the new output of a connection until the log has what it depends on: this is known now
    /// or at the end of the turn.
    pub fn hold(&mut self, client: u64, connection: &mut Connection) {
        if !self.units.is_empty() {
            if !std::mem::replace(&mut connection.holding.is_unmarked, true) {
                self.unmarked.push(client);
            }
            return;
        }
        let holding = &mut connection.holding;
        holding.mark(connection.output.len(), self.journal.end());
        holding.release(self.journal.released(), self.is_failing());
        if holding.is_waiting() && !std::mem::replace(&mut holding.is_listed, true) {
            self.waiting.push(client);
        }
    }

    /// Takes the clients whose output has to be marked.
    pub fn take_unmarked(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unmarked)
    }

    /// Takes the clients whose output may have been released since the last call.
    pub fn take_released(&mut self) -> Vec<u64> {
        let state = (self.journal.released(), self.is_failing());
        if state == self.seen {
            return vec![];
        }
        self.seen = state;
        std::mem::take(&mut self.waiting)
    }

    /// The log was replaced by that of a primary since the last call, after a number of times.
    pub fn follows_new_log(&mut self, installed: u64) -> bool {
        std::mem::replace(&mut self.installed, installed) != installed
    }

    /// Takes the clients whose output waits.
    pub fn take_waiting(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.waiting)
    }

    /// Clients wait for the log.
    pub fn is_awaited(&self) -> bool {
        !self.waiting.is_empty() || !self.awaiting.is_empty()
    }
}

/// The error of Redis, so that clients know it.
pub fn refused(reason: &str) -> Error {
    Error::new(format!(
        "MISCONF Errors writing to the AOF file: {reason}. Writes are refused until the log can be \
         written again; reads are executed."
    ))
}
