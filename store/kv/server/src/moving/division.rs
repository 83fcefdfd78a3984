// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Divides a snapshot and a log by slots: what concerns the slots that move, and among them what
//! each worker has to execute.
//!
//! Commands of a cluster have all their keys in one slot, so a record belongs to one slot. Units are
//! divided nevertheless: a script may have evicted keys of other slots, and a log may be older than
//! the cluster. A record of such times that needs keys of several slots cannot be divided; the
//! source then writes a snapshot, which has no such records behind it.

use std::sync::Arc;

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
pub enum DivisionError {
    /// A command needs keys of several slots.
    #[error("{0} in the log has keys of several slots, from a time before the cluster")]
    Mixed(String),
    /// There is something that this version does not know.
    #[error("the log cannot be read: {0}")]
    Unreadable(String),
}

/// A place of a record.
enum Place {
    Slot(u16),
    /// It removes all keys.
    All,
    /// It concerns no key of the cluster.
    None,
}

/// Parts of units by slots.
#[derive(Clone, Debug)]
pub struct Divider {
    table: Arc<Table<Action>>,
}

impl Divider {
    /// A divider of units with commands of this table.
    pub fn new(table: Arc<Table<Action>>) -> Self {
        Self { table }
    }

    /// Appends each record of a unit to the part that is chosen for its slot, if one is. So parts
    /// that are empty before are units of their own. Returns whether all keys were removed: then the
    /// parts have only what came after that.
    ///
    /// # Errors
    /// See [`DivisionError`].
    pub fn unit(
        &self,
        unit: &[u8],
        choose: impl Fn(u16) -> Option<usize>,
        parts: &mut [Vec<u8>],
    ) -> Result<bool, DivisionError> {
        let (mut reader, mut now_ms, mut is_cleared) = (Reader::new(unit), 0, false);
        let mut written_ms = vec![None; parts.len()];
        loop {
            let begin = unit.len() - reader.rest();
            let Some(record) = reader.next().map_err(DivisionError::Unreadable)? else {
                return Ok(is_cleared);
            };
            let place = match &record {
                Record::Time(time) => {
                    now_ms = *time;
                    continue;
                }
                Record::Pairs(pairs) => {
                    self.pairs(pairs, &choose, parts)?;
                    continue;
                }
                record => self.place(record, &choose)?,
            };
            match place {
                Place::None => {}
                Place::All => {
                    is_cleared = true;
                    parts.iter_mut().for_each(Vec::clear);
                    written_ms.fill(None);
                }
                Place::Slot(slot) => {
                    let Some(chosen) = choose(slot) else { continue };
                    if written_ms[chosen].replace(now_ms) != Some(now_ms) {
                        write_time(&mut parts[chosen], now_ms);
                    }
                    parts[chosen].extend_from_slice(&unit[begin..unit.len() - reader.rest()]);
                }
            }
        }
    }

    /// As [`Divider::unit`], for an entry of a snapshot, which becomes records of units.
    ///
    /// # Errors
    /// See [`DivisionError`].
    pub fn entry(
        &self,
        entry: &[u8],
        choose: impl Fn(u16) -> Option<usize>,
        parts: &mut [Vec<u8>],
    ) -> Result<(), DivisionError> {
        match entry.split_first() {
            Some((&PAIRS, pairs)) => self.pairs(pairs, &choose, parts),
            // Functions belong to each node, not to slots.
            Some((&RECORDS, _)) => Ok(()),
            kind => {
                let text = format!("an entry of an unknown kind, {:?}", kind.map(|it| it.0));
                Err(DivisionError::Unreadable(text))
            }
        }
    }

    /// Calls `visit` with each key of a unit.
    ///
    /// # Errors
    /// The unit cannot be read. Keys before that were visited.
    pub fn visit_keys(&self, unit: &[u8], mut visit: impl FnMut(&[u8])) -> Result<(), String> {
        let mut reader = Reader::new(unit);
        while let Some(record) = reader.next()? {
            match record {
                Record::Removal { key, .. } => visit(key),
                Record::Pairs(mut pairs) => {
                    let read = |pairs: &mut _| RawEntry::read(pairs).map_err(|it| it.to_string());
                    while let Some(entry) = read(&mut pairs)? {
                        visit(entry.key);
                    }
                }
                Record::Command { arguments, .. } => {
                    if let Some(command) = self.table.get(arguments[0]) {
                        let keys = &command.spec.keys;
                        // Those that exist are visited before the error.
                        let _ = keys.visit(&arguments, |at| visit(arguments[at]));
                    }
                }
                Record::Time(_) | Record::Functions { .. } => {}
            }
        }
        Ok(())
    }

    fn pairs(
        &self,
        mut pairs: &[u8],
        choose: &impl Fn(u16) -> Option<usize>,
        parts: &mut [Vec<u8>],
    ) -> Result<(), DivisionError> {
        let mut divided = vec![vec![]; parts.len()];
        while let Some(RawEntry { database, key, bytes }) = RawEntry::read(&mut pairs)
            .map_err(|error| DivisionError::Unreadable(error.to_string()))?
        {
            if database == DATABASE
                && let Some(chosen) = choose(slot_of(key))
            {
                divided[chosen].extend_from_slice(bytes);
            }
        }
        let some = parts.iter_mut().zip(&divided).filter(|(_, divided)| !divided.is_empty());
        some.for_each(|(part, divided)| write_pairs(part, divided));
        Ok(())
    }

    fn place(
        &self,
        record: &Record<'_>,
        choose: &impl Fn(u16) -> Option<usize>,
    ) -> Result<Place, DivisionError> {
        match record {
            Record::Removal { database: DATABASE, key } => Ok(Place::Slot(slot_of(key))),
            Record::Command { database, arguments, .. } => {
                self.place_of_command(*database, arguments, choose)
            }
            _ => Ok(Place::None),
        }
    }

    fn place_of_command(
        &self,
        database: u16,
        arguments: &[&[u8]],
        choose: &impl Fn(u16) -> Option<usize>,
    ) -> Result<Place, DivisionError> {
        let name = || String::from_utf8_lossy(arguments[0]).to_ascii_uppercase();
        let Some(command) = self.table.get(arguments[0]) else {
            return Err(DivisionError::Unreadable(format!("an unknown command, {}", name())));
        };
        let is_copy_of = |word: &&[u8]| word.eq_ignore_ascii_case(b"db");
        match (command.spec.name, database) {
            ("flushall", _) | ("flushdb", DATABASE) => return Ok(Place::All),
            // They bring keys from other databases, which a cluster refuses.
            ("swapdb" | "move", _) => return Err(DivisionError::Mixed(name())),
            ("copy", _) if arguments.iter().skip(3).any(is_copy_of) => {
                return Err(DivisionError::Mixed(name()));
            }
            (_, DATABASE) => {}
            _ => return Ok(Place::None),
        }
        if command.spec.keys.needs_all(arguments) {
            return Err(DivisionError::Mixed(name()));
        }
        let mut slots = vec![];
        let visited = command.spec.keys.visit(arguments, |at| slots.push(slot_of(arguments[at])));
        visited.map_err(|error| DivisionError::Unreadable(error.text().to_owned()))?;
        let Some(&first) = slots.first() else { return Ok(Place::None) };
        let is_one = slots.iter().all(|slot| *slot == first);
        let is_chosen = slots.iter().any(|slot| choose(*slot).is_some());
        match is_one || !is_chosen {
            true => Ok(Place::Slot(first)),
            false => Err(DivisionError::Mixed(name())),
        }
    }
}
