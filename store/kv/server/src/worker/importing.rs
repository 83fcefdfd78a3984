// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A worker's part in the import of slots: it executes what another shard has recorded, and records
//! it as its own.

use std::sync::mpsc::Sender;

use freeport_kv_commands::{Effects, Shard};

use super::{Core, Worker};
use crate::moving::{DATABASE, Divider};
use crate::persistence::Applier;

/// Units of another shard whose keys all belong to the receiver.
#[derive(Debug)]
pub struct Import {
    /// The units, in their order.
    pub units: Vec<Vec<u8>>,
    /// Gets an answer when they are in the log, or the reason why they are not.
    pub done: Sender<Result<(), String>>,
}

impl Worker {
    /// A thread has sent units of another shard.
    pub(super) fn import(&mut self, import: Box<Import>) {
        if !self.core.store.has(self.core.number) {
            return self.lending.wait_with_import(import);
        }
        // The importer has paused removals of expired keys: the log of the source decides.
        self.core.pause_removals();
        let result = self.import_all(&import.units);
        self.core.flush_log();
        // The importer may have given up.
        let _ = import.done.send(result);
    }

    fn import_all(&mut self, units: &[Vec<u8>]) -> Result<(), String> {
        // Another node becomes the primary, which has to have everything that the log has.
        if self.core.hands_over() {
            return Err("another node becomes the primary".into());
        }
        let bytes: usize = units.iter().map(Vec::len).sum();
        if let Some(log) = &mut self.core.log {
            // Each unit has its length, which is small.
            let overhead = 16 * units.len();
            log.admit_bytes((bytes + overhead) as u64).map_err(|it| it.text().to_owned())?;
        }
        self.core.make_room_for_operations().map_err(|error| error.text().to_owned())?;
        let databases = self.core.shared.options.databases;
        let mut applier = self.applier.take().unwrap_or_else(|| Box::new(Applier::new(databases)));
        let result = units.iter().try_for_each(|unit| self.core.import(&mut applier, unit));
        self.applier = Some(applier);
        if self.core.effects.has_ready_keys {
            self.serve_waiters();
        }
        result
    }
}

impl Core {
    /// Executes a unit of another shard, and records it.
    fn import(&mut self, applier: &mut Applier, unit: &[u8]) -> Result<(), String> {
        // Removals of other keys come before the unit in the log.
        self.record_removed();
        // The events were published where the unit was executed first.
        let listened = std::mem::take(&mut self.effects.listened);
        let result = applier.apply((&mut self.store, &mut self.effects), unit);
        self.effects.listened = listened;
        // The unit itself stands for all that was removed or chosen at random.
        self.effects.removed.clear();
        self.effects.logged = None;
        self.effects.made.clear();
        if result.is_err() {
            // It was not executed, or in part. Its keys go, here and in the log, and the import
            // with them.
            self.with_keys(unit, Shard::purge);
            return result;
        }
        // Commands have told those that follow a key, but nobody has for one that was loaded.
        if self.store.shard(self.number).is_followed() {
            self.with_keys(unit, Shard::came);
        }
        if let Some(log) = &mut self.log {
            log.add_unit(unit);
        }
        result
    }

    /// Does something with each key of a unit, or with none of bytes that are no unit.
    fn with_keys(&mut self, unit: &[u8], act: fn(&mut Shard, (u16, &[u8]), &mut Effects)) {
        let divider = Divider::new(self.table.clone());
        // The error was found before.
        let _ = divider.visit_keys(unit, |key| {
            if self.store.shard_of(key) == self.number {
                act(self.store.shard_mut(self.number), (DATABASE, key), &mut self.effects);
            }
        });
    }
}
