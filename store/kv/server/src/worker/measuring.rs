// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long commands take.
//!
//! Reading the clock takes a good part of the time of a short command, so it is read once for a
//! command: the end of one is the begin of the next. Several commands of one name in a row that are
//! fast by their kind are measured together, and each gets the same share. Without that, the clock
//! would cost more than all other counts.

use std::time::Instant;

use freeport_kv_commands::{Flags, Spec};

use super::Core;
use crate::configuration::Settings;
use crate::slow_log::{Entry, shortened};

/// Commands that are measured together at most.
const TOGETHER: u64 = 8;
/// Limits of slow commands below which each is measured alone, so that none is missed.
const ALONE_NS: u64 = 1_000_000;

/// The clock of a worker.
#[derive(Debug)]
pub struct Stopwatch {
    /// When the last measured command ended, or the next one began.
    last: Instant,
    /// The command that was executed since then, and how many times.
    command: u16,
    count: u64,
}

impl Stopwatch {
    /// A clock that begins now.
    pub fn new() -> Self {
        Self { last: Instant::now(), command: 0, count: 0 }
    }

    /// Nanoseconds since the last reading.
    fn read(&mut self) -> u64 {
        let now = Instant::now();
        let elapsed = now.duration_since(self.last);
        self.last = now;
        elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())
    }
}

impl Core {
    /// Commands follow: what was done before does not count as theirs.
    pub fn begin_commands(&mut self) {
        self.end_commands();
        self.stopwatch.last = Instant::now();
    }

    /// No commands follow for now.
    #[inline]
    pub fn end_commands(&mut self) {
        if self.stopwatch.count > 0 {
            self.settle();
        }
        self.publish_counts();
    }

    /// Publishes how many keys were looked up and removed.
    #[inline]
    pub(super) fn publish_counts(&mut self) {
        let (effects, statistics) = (&mut self.effects, &self.statistics);
        for (counted, published) in [
            (&mut effects.hits, &statistics.hits),
            (&mut effects.misses, &statistics.misses),
            (&mut effects.expired, &statistics.expired),
            (&mut effects.evicted, &statistics.evicted),
        ] {
            if *counted > 0 {
                published.add(std::mem::take(counted));
            }
        }
    }

    /// A command is about to be executed.
    #[inline]
    pub fn begin_command(&mut self, spec: &Spec) {
        if self.stopwatch.count > 0 && self.stopwatch.command != spec.number {
            self.settle();
        }
    }

    /// Counts the commands since the last reading of the clock.
    fn settle(&mut self) {
        let nanoseconds = self.stopwatch.read();
        let count = std::mem::take(&mut self.stopwatch.count);
        self.statistics.executed(self.stopwatch.command, count, nanoseconds);
    }

    /// A command was executed.
    #[inline]
    pub fn end_command(&mut self, spec: &Spec, client: u64, arguments: &[&[u8]]) {
        let number = self.number_of(spec, arguments);
        // Commands that it has executed itself, as `EXEC` does, are not its own calls.
        if self.stopwatch.count > 0 && self.stopwatch.command != number {
            self.settle();
        }
        if spec.flags.has(Flags::BLOCKING) && self.effects.block.is_some() {
            return self.skip_command();
        }
        self.stopwatch.command = number;
        self.stopwatch.count += 1;
        let is_short = spec.flags.has(Flags::FAST) && self.settings.slow_ns >= ALONE_NS;
        if is_short && self.stopwatch.count < TOGETHER {
            return;
        }
        let count = std::mem::take(&mut self.stopwatch.count);
        let nanoseconds = self.stopwatch.read();
        self.statistics.executed(number, count, nanoseconds);
        if nanoseconds >= self.settings.slow_ns {
            self.note_slow(spec, (client, arguments), nanoseconds);
        }
    }

    /// A command waits for a key: it counts when the wait is over.
    #[cold]
    fn skip_command(&mut self) {
        if self.stopwatch.count > 0 {
            self.settle();
        }
        self.stopwatch.read();
    }

    /// Counts the call of a command that has waited in vain.
    pub fn count_wait(&self, arguments: &[Vec<u8>]) {
        if let Some(command) = self.table.get(&arguments[0]) {
            self.statistics.executed(command.spec.number, 1, 0);
        }
    }

    /// Number under which a call is counted: of the subcommand that it names, or of the command.
    #[inline]
    pub fn number_of(&self, spec: &Spec, arguments: &[&[u8]]) -> u16 {
        if spec.subcommands.is_empty() {
            return spec.number;
        }
        let number = self.shared.users.catalog.of(spec, arguments).number;
        u16::try_from(number).expect("there are few commands")
    }

    /// Counts a command that has replied an error.
    #[cold]
    pub fn count_failure(&self, (spec, arguments): (&Spec, &[&[u8]]), reply: &[u8]) {
        let line = reply.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let error = String::from_utf8_lossy(line.strip_prefix(b"-").unwrap_or(line));
        self.statistics.failed(self.number_of(spec, arguments), &error);
    }

    #[cold]
    fn note_slow(&self, spec: &Spec, (client, arguments): (u64, &[&[u8]]), nanoseconds: u64) {
        let Settings { slow_log_ns, slow_log_entries, latency_ms, .. } = self.settings;
        let time_s = crate::shared::now_ms() / 1_000;
        let milliseconds = nanoseconds / 1_000_000;
        if latency_ms > 0 && milliseconds >= latency_ms {
            let is_fast = spec.flags.has(Flags::FAST);
            let event = if is_fast { "fast-command" } else { "command" };
            self.shared.latency.add(event, time_s, milliseconds);
        }
        // The commands of a transaction have entries of their own.
        if nanoseconds >= slow_log_ns && spec.name != "exec" {
            let record = self.shared.registry.get(client);
            let entry = Entry {
                id: 0,
                time_s,
                microseconds: nanoseconds / 1_000,
                arguments: shortened(arguments),
                address: record.as_ref().map(|it| it.origin.address.clone()).unwrap_or_default(),
                name: record.map(|record| record.names().name.clone()).unwrap_or_default(),
            };
            self.shared.slow_log.add(entry, slow_log_entries);
        }
    }
}
