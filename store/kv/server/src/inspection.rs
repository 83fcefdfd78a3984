// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the folder of a server. Nothing is changed, so a server may run meanwhile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use freeport_kv_journal::inspect::cut;
pub use freeport_kv_journal::{BadPlace, Contents, OpenError, Position, SegmentFacts};
use freeport_kv_journal::{Replay, inspect::inspect};
use freeport_kv_keyspace::ImageEntry;
use freeport_kv_types::Limits;

use crate::persistence::record::Reader;
pub use crate::persistence::record::Record;
use crate::persistence::{PAIRS, RECORDS};

/// A unit of the log: what one command, transaction or script has changed.
#[derive(Debug)]
pub struct Unit<'a> {
    /// The batch that it is in.
    pub batch: &'a Place,
    /// Its records, in their order.
    pub records: Vec<Record<'a>>,
}

/// The place of a batch of units, which were written at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The segment of the log.
    pub file: PathBuf,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Position in the whole log.
    pub position: Position,
}

/// A folder.
#[derive(Debug)]
pub struct Inspection {
    /// Its files, and the first bad place of the log.
    pub contents: Contents,
    /// Number of keys in the snapshot, by database and name of the type.
    pub keys: BTreeMap<(u16, &'static str), u64>,
    /// Bytes of the snapshot's functions.
    pub functions_bytes: usize,
    /// Time of the latest change in the log, in milliseconds since 1970; 0: the log has none.
    pub latest_ms: u64,
}

/// Reads a folder, and visits the units of its log.
///
/// # Errors
/// The folder has no manifest, a file is missing or cannot be read, or its snapshot is damaged. A
/// damaged log is part of the result.
pub fn read(folder: &Path, visit: &mut dyn FnMut(Unit<'_>)) -> Result<Inspection, OpenError> {
    let mut visitor = Visitor {
        visit,
        batch: Place::default(),
        keys: BTreeMap::new(),
        functions_bytes: 0,
        latest_ms: 0,
    };
    let contents = inspect(folder, &mut visitor, &mut |_| {})?;
    let Visitor { keys, functions_bytes, latest_ms, .. } = visitor;
    Ok(Inspection { contents, keys, functions_bytes, latest_ms })
}

struct Visitor<'v> {
    visit: &'v mut dyn FnMut(Unit<'_>),
    batch: Place,
    keys: BTreeMap<(u16, &'static str), u64>,
    functions_bytes: usize,
    latest_ms: u64,
}

impl Replay for Visitor<'_> {
    fn entry(&mut self, bytes: &[u8]) -> Result<(), String> {
        match bytes.split_first() {
            Some((&PAIRS, mut pairs)) => {
                let limits = Limits::default();
                let read = |pairs: &mut _| ImageEntry::read(pairs, &limits);
                while let Some(entry) = read(&mut pairs).map_err(|error| error.to_string())? {
                    let key = (entry.database, entry.value.kind().name());
                    *self.keys.entry(key).or_default() += 1;
                }
            }
            Some((&RECORDS, bytes)) => {
                for record in records(bytes)? {
                    if let Record::Functions { dump, .. } = record {
                        self.functions_bytes += dump.len();
                    }
                }
            }
            _ => return Err("an entry of an unknown kind".into()),
        }
        Ok(())
    }

    fn batch(&mut self, file: &Path, offset: u64, position: Position) {
        if self.batch.file != file {
            self.batch.file = file.into();
        }
        (self.batch.offset, self.batch.position) = (offset, position);
    }

    fn unit(&mut self, bytes: &[u8]) -> Result<(), String> {
        let records = records(bytes)?;
        for record in &records {
            if let Record::Time(time_ms) = record {
                self.latest_ms = self.latest_ms.max(*time_ms);
            }
        }
        (self.visit)(Unit { batch: &self.batch, records });
        Ok(())
    }
}

fn records(bytes: &[u8]) -> Result<Vec<Record<'_>>, String> {
    let (mut reader, mut records) = (Reader::new(bytes), vec![]);
    while let Some(record) = reader.next()? {
        records.push(record);
    }
    Ok(records)
}
