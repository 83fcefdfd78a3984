// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A state that a journal recovers: a list of numbers. Unit `n` adds `n`, and an entry of a
//! snapshot is one number.

use freeport_kv_journal::disk::{Disk, SystemDisk};
use freeport_kv_journal::{
    Entries, Journal, OpenError, Options, Position, Recovered, Replay, SnapshotWriter, Units,
};
use freeport_testbed::wait::wait_until;
use std::path::Path;
use std::sync::mpsc;

#[derive(Debug, Default)]
pub struct State(pub Vec<u64>);

impl Replay for State {
    fn entry(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.unit(bytes)
    }

    fn unit(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0.push(number(bytes));
        Ok(())
    }
}

/// The number of a unit or an entry, which may have more bytes behind it.
pub fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("a number has eight bytes"))
}

/// Opens a journal, and returns what it recovers.
pub fn open(options: &Options) -> Result<(Journal, State, Recovered), OpenError> {
    let mut state = State::default();
    let (journal, recovered) = Journal::open(options.clone(), &mut state, &mut |_| {})?;
    Ok((journal, state, recovered))
}

/// The numbers that a new process finds, after the journal has been closed.
pub fn reopened(options: &Options) -> Vec<u64> {
    open(options).expect("it opens again").1.0
}

/// Admits and appends a unit.
pub fn append(journal: &Journal, units: &mut Units, number: u64) -> Position {
    journal.admit(units, 8).expect("there is room");
    append_admitted(journal, units, number)
}

/// Appends a unit that was admitted before.
pub fn append_admitted(journal: &Journal, units: &mut Units, number: u64) -> Position {
    units.push(&number.to_le_bytes());
    journal.append(units)
}

/// Waits until replies to the units up to `position` may be sent.
pub fn wait_for(journal: &Journal, position: Position) {
    wait_until("the position is released", || journal.released() >= position);
}

/// Writes the numbers as a snapshot and completes it.
pub fn complete(
    writer: SnapshotWriter,
    numbers: impl IntoIterator<Item = u64>,
) -> Result<u64, String> {
    let mut entries = Entries::new();
    for number in numbers {
        entries.push(&number.to_le_bytes());
        if entries.is_block() {
            writer.write(&mut entries).map_err(|error| error.to_string())?;
        }
    }
    writer.write(&mut entries).map_err(|error| error.to_string())?;
    let (sender, receiver) = mpsc::channel();
    writer.finish(Box::new(move |result| sender.send(result).expect("it is received")));
    let result = receiver.recv().expect("there is a result");
    result.map(|completed| completed.entries).map_err(|error| error.to_string())
}

/// Names of the files in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names = SystemDisk.list(folder).expect("a folder");
    names.sort();
    names
}
