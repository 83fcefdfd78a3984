// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Executing operations whose keys are the worker's own. Without a log and a limit of memory, all
//! of a packet are executed together. Otherwise they are divided into runs, before each of which
//! there must be room in the memory and the log, as before a command.

use std::ops::Range;

use freeport_kv_commands::batch::{Batch, Conditions, Replies, execute, with_words};
use freeport_kv_commands::{Effects, Error, Session, Store};
use freeport_kv_protocol::batch::{Opcode, Operation, Status};

use super::super::Core;
use super::super::replicating::LOADING;

/// Operations of a run without a log at most.
const RUN: usize = 64;
/// Times that an operation is executed again after it has found no memory.
const RETRIES: u32 = 8;

impl Core {
    /// Executes operations on keys of the own shard, which is here, and appends their replies. The
    /// client has the rights for them.
    pub(in crate::worker) fn execute_operations(
        &mut self,
        session: Session,
        batch: &Batch<'_>,
        replies: &mut Replies<'_>,
    ) {
        let count = batch.range.len() as u64;
        self.statistics.calls.add(count);
        self.statistics.batched_operations.add(count);
        if self.log.is_some() || self.settings.eviction.policy.is_some() || self.settings.refuses()
        {
            return self.execute_runs(session, batch, replies);
        }
        let (parts, conditions) = self.parts(session, false);
        execute(parts, &conditions, batch, replies);
    }

    #[cold]
    fn execute_runs(&mut self, session: Session, batch: &Batch<'_>, replies: &mut Replies<'_>) {
        let mut rest = batch.range.clone();
        while !rest.is_empty() {
            let range = rest.start..rest.start + self.run_length(batch, rest.clone());
            rest.start = range.end;
            let run = Batch { range, ..batch.clone() };
            match self.prepare(session.database, &run) {
                Ok(()) => self.execute_run(session, &run, replies),
                Err(refused) => self.execute_refused(session, &run, replies, &refused),
            }
        }
    }

    /// Number of operations of the next run: with a log, reads that follow each other, or one
    /// write, which is recorded after it.
    fn run_length(&self, batch: &Batch<'_>, rest: Range<usize>) -> usize {
        if self.log.is_none() {
            return rest.len().min(RUN);
        }
        let reads = rest.take_while(|number| operation(batch, *number).opcode.is_read()).count();
        reads.max(1)
    }

    /// Makes room for a run.
    ///
    /// # Errors
    /// There is none: operations that need it are refused.
    fn prepare(&mut self, database: u16, run: &Batch<'_>) -> Result<(), (Status, Error)> {
        if self.is_loading {
            return Err((Status::Unavailable, LOADING));
        }
        if run.range.clone().any(|number| grows(&operation(run, number))) {
            self.make_room_for_operations().map_err(|error| (Status::OutOfMemory, error))?;
        }
        let first = operation(run, run.range.start);
        if self.log.is_none() || first.opcode.is_read() {
            return Ok(());
        }
        let functions = self.store.functions().clone();
        with_words(&functions, &first, |words| match self.table.get(words[0]) {
            Some(command) => {
                let spec = command.spec;
                self.admit(&spec, (database, words)).map_err(|error| (Status::Unavailable, error))
            }
            None => Ok(()),
        })
    }

    /// Executes a run for which there is room, and records what it has changed.
    fn execute_run(&mut self, session: Session, run: &Batch<'_>, replies: &mut Replies<'_>) {
        let changes = self.effects.changes;
        let failed = match self.settings.eviction.policy {
            Some(_) => self.execute_evicting(session, run, replies),
            None => {
                let (parts, conditions) = self.parts(session, false);
                execute(parts, &conditions, run, replies).failed
            }
        };
        let first = operation(run, run.range.start);
        if self.log.is_some() && !first.opcode.is_read() {
            let functions = self.store.functions().clone();
            with_words(&functions, &first, |words| {
                self.record(changes, (session.database, words), failed == 0);
            });
        }
    }

    /// Executes a run. For an operation that finds no memory, more and more keys are evicted.
    /// Returns the number of operations that have failed.
    fn execute_evicting(
        &mut self,
        session: Session,
        run: &Batch<'_>,
        replies: &mut Replies<'_>,
    ) -> usize {
        let mut rest = run.clone();
        let (mut round, mut failed) = (0, 0);
        while !rest.range.is_empty() {
            let may_evict = round < RETRIES;
            let (parts, conditions) = self.parts(session, may_evict);
            let start = rest.range.start;
            let end = if may_evict { rest.range.end } else { start + 1 };
            let now = Batch { range: start..end, ..rest.clone() };
            let outcome = execute(parts, &conditions, &now, replies);
            failed += outcome.failed;
            rest.range.start += outcome.executed;
            if outcome.executed == end - start {
                round = 0;
                continue;
            }
            round = if outcome.executed > 0 { 0 } else { round + 1 };
            let Operation { key, value, .. } = operation(&rest, rest.range.start);
            if !self.evict_for(key.len() + value.len(), round) {
                round = RETRIES;
            }
        }
        failed
    }

    /// Answers the operations of a run that need room by an error, and executes the others.
    fn execute_refused(
        &mut self,
        session: Session,
        run: &Batch<'_>,
        replies: &mut Replies<'_>,
        (status, error): &(Status, Error),
    ) {
        let needs_log = *status == Status::Unavailable;
        for number in run.range.clone() {
            if needs_log || grows(&operation(run, number)) {
                self.statistics.error(error.text());
                replies.writer.error(replies.output, *status, error.text());
            } else {
                let one = Batch { range: number..number + 1, ..run.clone() };
                self.execute_run(session, &one, replies);
            }
        }
    }

    fn parts(
        &mut self,
        session: Session,
        stops_when_full: bool,
    ) -> ((&mut Store, &mut Effects), Conditions) {
        let conditions = Conditions {
            database: session.database,
            now_ms: self.now_ms,
            touches: session.touches,
            stops_when_full,
        };
        ((&mut self.store, &mut self.effects), conditions)
    }
}

fn operation<'a>(batch: &Batch<'a>, number: usize) -> Operation<'a> {
    batch.operations.get(batch.payload, number)
}

/// The operation may need more memory, as its command says (`Flags::GROWS`).
fn grows(operation: &Operation<'_>) -> bool {
    operation.opcode == Opcode::Put
}
