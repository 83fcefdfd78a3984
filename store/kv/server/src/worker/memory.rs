// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits of memory: `maxmemory`, and the memory that the server was given. With a policy, keys are
//! evicted before a command that adds something; without one, such commands are refused while more
//! than `maxmemory` is used. The memory itself is limited by every shard's allocator.
//!
//! Each shard has an equal share of the limit, and evicts its own keys. A command evicts for a
//! short time, and the worker continues between its turns. A transaction or a script evicts at its
//! beginning, so that nothing of it disappears while it runs.

use std::time::{Duration, Instant};

use freeport_kv_commands::{Command, Error, Evicted, Flags, Session, Spec};

use super::Core;
use crate::client::{Client, slices};
use crate::statistics::sum;

/// Keys that are evicted between two looks at the clock.
const BATCH: usize = 16;
/// Times that a command is executed again after it has found no memory. Each time more is evicted.
const RETRIES: u32 = 8;
/// Bytes that are evicted for a command besides those of its arguments.
const LEAST_BYTES: usize = 256;
/// Part of a shard's memory that eviction keeps free, so that commands find room while it works.
const RESERVE: usize = 32;
/// Scripts that may write.
const SCRIPTS: [&str; 3] = ["eval", "evalsha", "fcall"];

/// State of a shard's memory after an attempt to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// There is enough.
    Enough,
    /// More has to be evicted, which takes longer.
    Soon,
    /// More should be evicted, and nothing can be.
    Short,
}

const DISCARDED: Error = Error::fixed(
    "EXECABORT Transaction discarded because of: \
     OOM command not allowed when used memory > 'maxmemory'.",
);

impl Core {
    /// More memory is used than the parameter allows, and nothing can be evicted.
    pub fn is_memory_short(&self) -> bool {
        if self.settings.eviction.policy.is_some() {
            return self.is_eviction_short;
        }
        let Some(most) = self.settings.memory_max else { return false };
        self.publish_size();
        sum(self.shared.workers(), |worker| &worker.memory_bytes) > most
    }

    /// Refuses a command that needs more memory, or that would wait in a transaction.
    pub(super) fn check_memory(
        &mut self,
        client: &mut Client,
        spec: &Spec,
        arguments: &[&[u8]],
    ) -> Result<(), Error> {
        let adds = self.adds(client, spec, arguments) || client.queues(spec);
        match adds && self.is_memory_short() {
            true => Err(self.refuse_for_memory(client, spec)),
            false => Ok(()),
        }
    }

    /// A command may need more memory.
    fn adds(&self, client: &Client, spec: &Spec, arguments: &[&[u8]]) -> bool {
        let grows = |spec: &Spec, arguments: &[&[u8]]| spec.of(arguments).flags.has(Flags::GROWS);
        match (&client.transaction, spec.name) {
            (Some(transaction), "exec") => transaction.queued.iter().any(|queued| {
                let queued_command = self.table.get(&queued[0]);
                queued_command.is_some_and(|command| grows(&command.spec, &slices(queued)))
            }),
            _ => grows(spec, arguments),
        }
    }

    fn refuse_for_memory(&mut self, client: &mut Client, spec: &Spec) -> Error {
        if spec.name == "exec" {
            client.transaction = None;
            self.unwatch(client);
            return DISCARDED;
        }
        Error::OUT_OF_MEMORY
    }

    /// Evicts keys for a command of a client, if there is a policy and the command may need memory.
    /// Its shards are here.
    ///
    /// # Errors
    /// Nothing can be evicted, so the command is refused. A script looks for itself.
    #[cold]
    pub(super) fn make_room(
        &mut self,
        client: &mut Client,
        spec: &Spec,
        arguments: &[&[u8]],
    ) -> Result<(), Error> {
        let is_script = SCRIPTS.contains(&spec.name);
        if !is_script && !self.adds(client, spec, arguments) {
            return Ok(());
        }
        let needed = self.needed_shards(client, spec, arguments);
        self.is_eviction_short = !self.make_room_in(needed);
        match self.is_eviction_short && !is_script {
            true => Err(self.refuse_for_memory(client, spec)),
            false => Ok(()),
        }
    }

    /// As [`Core::make_room`], for a command on values that another worker's client has sent.
    #[inline]
    pub(super) fn make_room_for_data(
        &mut self,
        spec: &Spec,
        arguments: &[&[u8]],
    ) -> Result<(), Error> {
        let has_policy = self.settings.eviction.policy.is_some();
        let adds = has_policy && spec.of(arguments).flags.has(Flags::GROWS);
        match adds && !self.make_room_in(self.shards_of(&spec.keys, arguments)) {
            true => Err(Error::OUT_OF_MEMORY),
            false => Ok(()),
        }
    }

    /// Makes room for operations on keys of the own shard that may need memory.
    ///
    /// # Errors
    /// There is none, and nothing can be evicted.
    pub(super) fn make_room_for_operations(&mut self) -> Result<(), Error> {
        let is_short = match self.settings.eviction.policy {
            Some(_) => !self.make_room_in(1 << self.number),
            None => self.settings.refuses() && self.is_memory_short(),
        };
        if is_short { Err(Error::OUT_OF_MEMORY) } else { Ok(()) }
    }

    /// Evicts keys of the own shard for an operation that has found no memory, more in each round.
    /// Returns false if nothing can be evicted.
    #[cold]
    pub(super) fn evict_for(&mut self, operation_bytes: usize, round: u32) -> bool {
        let wanted = (operation_bytes + LEAST_BYTES) << round;
        let occupied = self.store.shard(self.number).occupied_bytes();
        self.evict_in(self.number, occupied.saturating_sub(wanted), None) != Room::Short
    }

    /// Evicts keys of some shards, given as bits. Returns false if more should be evicted, and
    /// nothing can be.
    fn make_room_in(&mut self, shards: u64) -> bool {
        let mut is_possible = true;
        for number in (0..self.store.count()).filter(|number| shards & 1 << number != 0) {
            let room = self.evict_in(number, self.quota(), self.settings.eviction_time);
            self.is_evicting |= room == Room::Soon && number == self.number;
            is_possible &= room != Room::Short;
        }
        is_possible
    }

    /// Evicts keys of the own shard, if it is here and above its share. While another node becomes
    /// the primary, nothing is evicted, because removals would make the log longer.
    pub(super) fn evict_more(&mut self) {
        let has_policy = self.settings.eviction.policy.is_some();
        self.is_evicting = has_policy
            && !self.hands_over()
            && self.store.has(self.number)
            && self.evict_in(self.number, self.quota(), self.settings.eviction_time) == Room::Soon;
    }

    /// Bytes that a shard may use.
    fn quota(&self) -> usize {
        let workers = self.store.count();
        let shard_bytes = self.shared.options.memory_bytes / workers;
        let usable = shard_bytes - shard_bytes / RESERVE;
        let share = self.settings.memory_max.map(|most| most as usize / workers);
        share.map_or(usable, |share| share.min(usable))
    }

    /// Evicts keys of a shard until it uses at most `bytes`, or until a limit of time.
    fn evict_in(&mut self, number: usize, bytes: usize, limit: Option<Duration>) -> Room {
        // A log that takes no removals refuses the command as well.
        if self.store.shard(number).occupied_bytes() <= bytes || self.refuses_changes() {
            return Room::Enough;
        }
        let started = Instant::now();
        loop {
            for _ in 0..BATCH {
                let shard = self.store.shard_mut(number);
                match shard.evict(self.now_ms, &mut self.effects) {
                    Evicted::NoneLeft => return Room::Short,
                    Evicted::NotYet => return Room::Soon,
                    Evicted::One if shard.occupied_bytes() <= bytes => return Room::Enough,
                    Evicted::One => {}
                }
            }
            if limit.is_some_and(|limit| started.elapsed() >= limit) {
                return Room::Soon;
            }
        }
    }

    /// Executes a command on values again that has found no memory, after keys were evicted. The
    /// memory of a shard can end before its share: free blocks may all be too small. Returns
    /// whether the command has succeeded; otherwise its error is still the reply.
    #[cold]
    pub(super) fn retry_with_room(
        &mut self,
        command: &Command,
        session: Session,
        arguments: &[&[u8]],
        output: &mut Vec<u8>,
        start: usize,
    ) -> bool {
        // Nothing of a transaction or a script disappears while it runs.
        if !session.may_block {
            return false;
        }
        let shards = self.shards_of(&command.spec.keys, arguments);
        let request_bytes: usize = arguments.iter().map(|argument| argument.len()).sum();
        for round in 0..RETRIES {
            if !output[start..].starts_with(b"-OOM ") {
                return false;
            }
            let wanted = (request_bytes + LEAST_BYTES) << round;
            for number in (0..self.store.count()).filter(|number| shards & 1 << number != 0) {
                let occupied = self.store.shard(number).occupied_bytes();
                // The command cannot succeed before, so there is no limit of time.
                let wanted = occupied.saturating_sub(wanted);
                if self.evict_in(number, wanted, None) == Room::Short {
                    return false;
                }
            }
            output.truncate(start);
            if self.execute_data(command, session, arguments, output) {
                return true;
            }
        }
        false
    }
}
