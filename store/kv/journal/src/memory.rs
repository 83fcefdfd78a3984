// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A disk in memory that crashes, for tests: it records its operations, and says what a machine may
//! find after a crash between any two of them.
//!
//! A file has durable bytes, and writes that came after its last sync. After a crash, none, some or
//! all of these writes are there; [`Fate`] lists the combinations. A sync that fails loses them: a
//! later one does not make them durable, though they can still be read. Names are durable after a
//! sync of their folder; changes of names that came later may be lost from any point on. There is
//! only one folder: paths are told apart by their last part.

use crate::disk::{Disk, File, Lock, Unlocked};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// A disk in memory.
#[derive(Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

/// A way in which bytes that are not durable survive a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All of them, and all names: the process was killed, and the machine continued.
    All,
    /// None of them.
    None,
    /// All writes of a file but the last one, of which there is the first half.
    HalfOfLast,
    /// Only the last write of a file. Bytes that were not written before it read as zeros.
    OnlyLast,
    /// Only the first write of a file.
    OnlyFirst,
    /// No bytes, but the lengths, as if all were there: they read as zeros.
    Lengths,
}

impl Fate {
    /// All fates.
    pub const ALL: [Fate; 6] =
        [Fate::All, Fate::None, Fate::HalfOfLast, Fate::OnlyLast, Fate::OnlyFirst, Fate::Lengths];
}

/// A recorded operation, with the note that was set when it began.
#[derive(Clone, Debug)]
struct Recorded {
    operation: Operation,
    note: u64,
}

#[derive(Clone, Debug)]
enum Operation {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
    SyncFolder,
    Write(usize, u64, Vec<u8>),
    Truncate(usize, u64),
    Sync(usize),
    /// A failed sync.
    Lose(usize),
}

#[derive(Default)]
struct State {
    /// Files before the first operation.
    initial: Vec<(String, Vec<u8>)>,
    files: Vec<Contents>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Changes of names since the last sync of the folder.
    pending_names: Vec<Operation>,
    recorded: Vec<Recorded>,
    note: u64,
    failing: Option<usize>,
    is_locked: bool,
}

#[derive(Clone, Default)]
struct Contents {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync.
    pending: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

impl MemoryDisk {
    /// A disk with these files, all durable.
    pub fn with_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> MemoryDisk {
        let disk = MemoryDisk::default();
        let mut state = disk.state();
        for (name, bytes) in files {
            state.add(name, bytes.to_vec());
        }
        drop(state);
        disk
    }

    /// Notes a number, which is recorded with the operations that follow, such as the number of
    /// units that were released.
    pub fn note(&self, note: u64) {
        self.state().note = note;
    }

    /// The operation with this number fails with "Input/output error", and changes nothing.
    pub fn fail_operation(&self, at: usize) {
        self.state().failing = Some(at);
    }

    /// Number of operations so far that have changed something.
    pub fn operations(&self) -> usize {
        self.state().recorded.len()
    }

    /// The bytes of a file.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let file = *state.names.get(name)?;
        Some(state.files[file].bytes.clone())
    }

    /// Names of all files.
    pub fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// The disks that a machine may find if it crashes before operation `at`, for one fate of the
    /// bytes: one disk for each number of changes of names that are durable. The second is the
    /// note of operation `at`.
    pub fn crashed(&self, at: usize, fate: Fate) -> (Vec<MemoryDisk>, u64) {
        let state = self.state();
        let mut replayed = State::default();
        for (name, bytes) in &state.initial {
            replayed.add(name, bytes.clone());
        }
        for recorded in &state.recorded[..at] {
            replayed.apply(recorded.operation.clone());
        }
        let note = state.recorded.get(at).map_or(state.note, |recorded| recorded.note);
        let all = replayed.pending_names.len();
        let least = if fate == Fate::All { all } else { 0 };
        ((least..=all).map(|kept| replayed.after_crash(fate, kept)).collect(), note)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

impl State {
    fn add(&mut self, name: &str, bytes: Vec<u8>) {
        self.initial.push((name.to_owned(), bytes.clone()));
        let contents = Contents { durable: bytes.clone(), bytes, pending: vec![] };
        self.names.insert(name.to_owned(), self.files.len());
        self.durable_names.insert(name.to_owned(), self.files.len());
        self.files.push(contents);
    }

    /// The disk after a crash: of the changes of names, the first `kept` are durable.
    fn after_crash(&self, fate: Fate, kept: usize) -> MemoryDisk {
        let mut names = self.durable_names.clone();
        for change in &self.pending_names[..kept] {
            rename(&mut names, change);
        }
        let disk = MemoryDisk::default();
        let mut state = disk.state();
        for (name, &file) in &names {
            state.add(name, self.files[file].after_crash(fate));
        }
        drop(state);
        disk
    }

    fn change(&mut self, operation: Operation) -> io::Result<()> {
        let fails = self.failing == Some(self.recorded.len());
        if fails {
            self.failing = None;
        }
        match operation {
            Operation::Sync(file) if fails => self.record(Operation::Lose(file)),
            _ if fails => {}
            operation => self.record(operation),
        }
        if fails { Err(Errno::IO.into()) } else { Ok(()) }
    }

    fn record(&mut self, operation: Operation) {
        self.recorded.push(Recorded { operation: operation.clone(), note: self.note });
        self.apply(operation);
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Create(name, file) => {
                self.files.resize(self.files.len().max(file + 1), Contents::default());
                let created = Operation::Create(name, file);
                rename(&mut self.names, &created);
                self.pending_names.push(created);
            }
            Operation::Rename(..) | Operation::Remove(_) => {
                rename(&mut self.names, &operation);
                self.pending_names.push(operation);
            }
            Operation::SyncFolder => {
                self.durable_names = self.names.clone();
                self.pending_names.clear();
            }
            Operation::Write(file, offset, bytes) => {
                self.files[file].change(Change::Write(offset, bytes));
            }
            Operation::Truncate(file, length) => self.files[file].change(Change::Truncate(length)),
            Operation::Sync(file) => {
                let Contents { durable, pending, .. } = &mut self.files[file];
                pending.drain(..).for_each(|change| apply(durable, &change));
            }
            Operation::Lose(file) => self.files[file].pending.clear(),
        }
    }
}

fn rename(names: &mut BTreeMap<String, usize>, change: &Operation) {
    match change {
        Operation::Create(name, file) => drop(names.insert(name.clone(), *file)),
        Operation::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Operation::Remove(name) => drop(names.remove(name)),
        _ => unreachable!("it does not change a name"),
    }
}

impl Contents {
    fn change(&mut self, change: Change) {
        apply(&mut self.bytes, &change);
        self.pending.push(change);
    }

    fn after_crash(&self, fate: Fate) -> Vec<u8> {
        if fate == Fate::All {
            return self.bytes.clone();
        }
        let mut bytes = self.durable.clone();
        let pending = &self.pending[..];
        match (fate, pending) {
            (Fate::All | Fate::None, _) | (_, []) => {}
            (Fate::Lengths, _) => bytes.resize(self.bytes.len(), 0),
            (Fate::OnlyFirst, [first, ..]) => apply(&mut bytes, first),
            (Fate::OnlyLast, [.., last]) => apply(&mut bytes, last),
            (Fate::HalfOfLast, [before @ .., last]) => {
                before.iter().for_each(|change| apply(&mut bytes, change));
                if let Change::Write(offset, written) = last {
                    let half = written[..written.len() / 2].to_vec();
                    apply(&mut bytes, &Change::Write(*offset, half));
                }
            }
        }
        bytes
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Truncate(length) => bytes.resize(*length as usize, 0),
        Change::Write(offset, written) => {
            let offset = *offset as usize;
            let end = offset + written.len();
            bytes.resize(bytes.len().max(end), 0);
            bytes[offset..end].copy_from_slice(written);
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk for MemoryDisk {
    fn create_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _: &Path) -> Result<Lock, Unlocked> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_locked, true) {
            return Err(Unlocked::Held(None));
        }
        Ok(Box::new(Unlock(self.clone())))
    }

    fn create(&self, file: &Path) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        let (name, number) = (name(file), state.files.len());
        if state.names.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.change(Operation::Create(name, number))?;
        Ok(Arc::new(MemoryFile { disk: self.clone(), file: number }))
    }

    fn open(&self, file: &Path, _is_writable: bool) -> io::Result<Arc<dyn File>> {
        let file = *self.state().names.get(&name(file)).ok_or_else(missing)?;
        Ok(Arc::new(MemoryFile { disk: self.clone(), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(&name(from)) {
            return Err(missing());
        }
        state.change(Operation::Rename(name(from), name(to)))
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(&name(file)) {
            return Err(missing());
        }
        state.change(Operation::Remove(name(file)))
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(self.names())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.state().change(Operation::SyncFolder)
    }
}

struct Unlock(MemoryDisk);

impl Drop for Unlock {
    fn drop(&mut self) {
        self.0.state().is_locked = false;
    }
}

struct MemoryFile {
    disk: MemoryDisk,
    file: usize,
}

impl File for MemoryFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let rest = state.files[self.file].bytes.get(offset as usize..).unwrap_or_default();
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.state().change(Operation::Write(self.file, offset, bytes.to_vec()))?;
        Ok(bytes.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.state().change(Operation::Sync(self.file))
    }

    fn allocate(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.disk.state().change(Operation::Truncate(self.file, bytes))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.file].bytes.len() as u64)
    }
}
