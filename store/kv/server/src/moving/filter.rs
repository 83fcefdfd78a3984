// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The part of a snapshot and a log that concerns some slots.
//!
//! Commands of a cluster have all their keys in one slot, so a record belongs to one slot. Units are
//! divided nevertheless: a transaction may have evicted keys of other slots, and a log may be older
//! than the cluster. A record of such times that needs keys of slots on both sides cannot be
//! divided; the source then writes a snapshot, which has no such records behind it.

use std::sync::Arc;

use freeport_kv_cluster::SlotSet;
use freeport_kv_commands::Table;
use freeport_kv_keyspace::RawEntry;
use freeport_kv_protocol::slots::slot_of;
use thiserror::Error;

use crate::commands::Action;
use crate::persistence::record::{Reader, Record, write_pairs, write_time};
use crate::persistence::{PAIRS, RECORDS};

/// The database of a cluster. Others have keys from the time before it, which nobody can reach.
const DATABASE: u16 = 0;

/// A part of a log cannot be divided by slots.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// A command needs keys of slots on both sides.
    #[error("a command of the log, {0}, has keys of several slots")]
    Mixed(String),
    /// The log has something that this version does not know.
    #[error("the log cannot be read: {0}")]
    Unreadable(String),
}

/// The part of a unit that concerns some slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// All keys of the slots were removed before the records.
    pub is_cleared: bool,
    /// The records, as a unit of their own; empty: there are none.
    pub unit: Vec<u8>,
}

/// Side of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Inside,
    Outside,
    Clears,
}

/// Selects the part of a snapshot and a log that concerns some slots.
#[derive(Clone, Debug)]
pub struct Filter {
    table: Arc<Table<Action>>,
    slots: SlotSet,
}

impl Filter {
    /// A filter for these slots.
    pub fn new(table: Arc<Table<Action>>, slots: SlotSet) -> Self {
        Self { table, slots }
    }

    /// The part of a unit.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub fn unit(&self, unit: &[u8]) -> Result<Part, FilterError> {
        let mut part = Part::default();
        let (mut reader, mut now_ms, mut written_ms) = (Reader::new(unit), 0, None);
        loop {
            let begin = unit.len() - reader.rest();
            let Some(record) = reader.next().map_err(FilterError::Unreadable)? else {
                return Ok(part);
            };
            let bytes = &unit[begin..unit.len() - reader.rest()];
            let side = match &record {
                Record::Time(time) => {
                    now_ms = *time;
                    continue;
                }
                Record::Pairs(pairs) => {
                    let mut inside = vec![];
                    self.select(pairs, &mut inside)?;
                    if !inside.is_empty() {
                        write_pairs(&mut part.unit, &inside);
                    }
                    continue;
                }
                record => self.side(record)?,
            };
            match side {
                Side::Outside => {}
                Side::Clears => {
                    part = Part { is_cleared: true, unit: vec![] };
                    written_ms = None;
                }
                Side::Inside => {
                    if written_ms.replace(now_ms) != Some(now_ms) {
                        write_time(&mut part.unit, now_ms);
                    }
                    part.unit.extend_from_slice(bytes);
                }
            }
        }
    }

    /// The part of an entry of a snapshot, as images write pairs; empty: there is none.
    ///
    /// # Errors
    /// See [`FilterError`].
    pub fn entry(&self, entry: &[u8]) -> Result<Vec<u8>, FilterError> {
        let mut pairs = vec![];
        match entry.split_first() {
            Some((&PAIRS, all)) => self.select(all, &mut pairs)?,
            // Functions belong to each node, not to slots.
            Some((&RECORDS, _)) => {}
            kind => {
                let text = format!("an entry of an unknown kind, {:?}", kind.map(|it| it.0));
                return Err(FilterError::Unreadable(text));
            }
        }
        Ok(pairs)
    }

    fn select(&self, mut all: &[u8], pairs: &mut Vec<u8>) -> Result<(), FilterError> {
        let read = |all: &mut &[u8]| {
            RawEntry::read(all).map_err(|error| FilterError::Unreadable(error.to_string()))
        };
        while let Some(RawEntry { database, key, bytes }) = read(&mut all)? {
            if database == DATABASE && self.slots.has(slot_of(key)) {
                pairs.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn side(&self, record: &Record<'_>) -> Result<Side, FilterError> {
        match record {
            Record::Removal { database: DATABASE, key } if self.slots.has(slot_of(key)) => {
                Ok(Side::Inside)
            }
            Record::Command { database, arguments, .. } => self.command(*database, arguments),
            _ => Ok(Side::Outside),
        }
    }

    fn command(&self, database: u16, arguments: &[&[u8]]) -> Result<Side, FilterError> {
        let name = || String::from_utf8_lossy(arguments[0]).to_ascii_uppercase();
        let Some(command) = self.table.get(arguments[0]) else {
            return Err(FilterError::Unreadable(format!("an unknown command, {}", name())));
        };
        let keys = &command.spec.keys;
        match (command.spec.name, database) {
            ("flushall", _) | ("flushdb", DATABASE) => return Ok(Side::Clears),
            // They may bring keys from elsewhere, which a cluster refuses.
            ("swapdb" | "move", _) => return Err(FilterError::Mixed(name())),
            ("copy", _) if arguments[3..].iter().any(|it| it.eq_ignore_ascii_case(b"db")) => {
                return Err(FilterError::Mixed(name()));
            }
            (_, DATABASE) if keys.needs_all(arguments) => return Err(FilterError::Mixed(name())),
            (_, DATABASE) => {}
            _ => return Ok(Side::Outside),
        }
        let (mut inside, mut outside) = (false, false);
        let visited = keys.visit(arguments, |at| match self.slots.has(slot_of(arguments[at])) {
            true => inside = true,
            false => outside = true,
        });
        visited.map_err(|error| FilterError::Unreadable(error.text().to_owned()))?;
        match (inside, outside) {
            (true, true) => Err(FilterError::Mixed(name())),
            (true, false) => Ok(Side::Inside),
            (false, _) => Ok(Side::Outside),
        }
    }
}
