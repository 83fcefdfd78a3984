// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A disk that fails as told, for tests of this crate and of servers.
//!
//! ```
//! use freeport_kv_journal::faulty::FaultyDisk;
//! use freeport_kv_journal::Options;
//! use std::sync::Arc;
//!
//! let disk = Arc::new(FaultyDisk::default());
//! let options = Options { disk: disk.clone(), ..Options::new("folder") };
//! disk.faults().set_room(Some(1 << 20)); // Full after another megabyte.
//! disk.faults().fail_syncs(3); // The next three syncs of files report an error.
//! # drop(options);
//! ```

use crate::disk::{Disk, File, Lock, SystemDisk, Unlocked};
use rustix::io::Errno;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A disk whose operations reach another one, unless a fault is set.
pub struct FaultyDisk {
    disk: Arc<dyn Disk>,
    faults: Arc<Faults>,
}

impl FaultyDisk {
    /// A disk without faults before this one.
    pub fn new(disk: Arc<dyn Disk>) -> FaultyDisk {
        FaultyDisk { disk, faults: Arc::default() }
    }

    /// The faults, which can be set at any time.
    pub fn faults(&self) -> &Arc<Faults> {
        &self.faults
    }
}

impl Default for FaultyDisk {
    fn default() -> FaultyDisk {
        FaultyDisk::new(Arc::new(SystemDisk))
    }
}

/// Faults to come. All are off at first.
#[derive(Default)]
pub struct Faults {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Default)]
struct State {
    room: Option<u64>,
    cannot_reserve: bool,
    longest_write: Option<usize>,
    failing_writes: u64,
    failing_syncs: u64,
    held: Held,
    failing_folder_syncs: u64,
    failing_renames: u64,
    counts: Counts,
}

/// A sync that lasts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Held {
    #[default]
    None,
    Next,
    Now,
}

/// Number of operations that were attempted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Writes.
    pub writes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Reservations.
    pub allocations: u64,
}

impl Faults {
    /// Bytes that can still be reserved or written beyond the reserve; `None`: as many as the disk
    /// has. Without room, operations fail with "No space left on device".
    pub fn set_room(&self, bytes: Option<u64>) {
        self.state().room = bytes;
    }

    /// Whether the filesystem can reserve space.
    pub fn set_can_reserve(&self, can_reserve: bool) {
        self.state().cannot_reserve = !can_reserve;
    }

    /// The most bytes that one write takes; `None`: all.
    pub fn set_longest_write(&self, bytes: Option<usize>) {
        self.state().longest_write = bytes;
    }

    /// The next writes fail with "Input/output error".
    pub fn fail_writes(&self, count: u64) {
        self.state().failing_writes = count;
    }

    /// The next syncs of files fail with "Input/output error". The bytes that they should have
    /// made durable stay readable.
    pub fn fail_syncs(&self, count: u64) {
        self.state().failing_syncs = count;
    }

    /// The next sync of a file waits for [`Faults::release_sync`]. Others do not.
    pub fn hold_sync(&self) {
        self.state().held = Held::Next;
    }

    /// Whether a sync is held.
    pub fn is_sync_held(&self) -> bool {
        self.state().held == Held::Now
    }

    /// The sync that is held returns.
    pub fn release_sync(&self) {
        self.state().held = Held::None;
        self.released.notify_all();
    }

    /// The next syncs of folders fail with "Input/output error".
    pub fn fail_folder_syncs(&self, count: u64) {
        self.state().failing_folder_syncs = count;
    }

    /// The next renames fail with "Input/output error", and do nothing.
    pub fn fail_renames(&self, count: u64) {
        self.state().failing_renames = count;
    }

    /// Number of operations so far, with those that failed.
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

/// Takes one of the failures that are left.
fn fails(left: &mut u64) -> io::Result<()> {
    match left.checked_sub(1) {
        None => Ok(()),
        Some(fewer) => {
            *left = fewer;
            Err(Errno::IO.into())
        }
    }
}

impl State {
    /// Takes room for bytes, as many as there is.
    fn take_room(&mut self, bytes: u64) -> u64 {
        let Some(room) = &mut self.room else { return bytes };
        let taken = bytes.min(*room);
        *room -= taken;
        taken
    }
}

impl Disk for FaultyDisk {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.disk.create_folder(folder)
    }

    fn lock(&self, file: &Path) -> Result<Lock, Unlocked> {
        self.disk.lock(file)
    }

    fn create(&self, file: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.wrap(self.disk.create(file)?, 0))
    }

    fn open(&self, file: &Path, is_writable: bool) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(file, is_writable)?;
        let length = file.length()?;
        Ok(self.wrap(file, length))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fails(&mut self.faults.state().failing_renames)?;
        self.disk.rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.disk.remove(file)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        fails(&mut self.faults.state().failing_folder_syncs)?;
        self.disk.sync_folder(folder)
    }
}

impl FaultyDisk {
    fn wrap(&self, file: Arc<dyn File>, length: u64) -> Arc<dyn File> {
        let reserved = Mutex::new(length);
        Arc::new(FaultyFile { file, faults: self.faults.clone(), reserved })
    }
}

struct FaultyFile {
    file: Arc<dyn File>,
    faults: Arc<Faults>,
    /// Bytes of the file that have room on the disk.
    reserved: Mutex<u64>,
}

impl FaultyFile {
    /// Takes room up to `end`, or as far as there is. Returns the new end of the reserve.
    fn reserve(&self, state: &mut State, end: u64, as_a_whole: bool) -> io::Result<u64> {
        let mut reserved = self.reserved.lock().expect("no holder of the lock panics");
        let missing = end.saturating_sub(*reserved);
        if as_a_whole && state.room.is_some_and(|room| room < missing) {
            return Err(Errno::NOSPC.into());
        }
        *reserved += state.take_room(missing);
        Ok(*reserved)
    }
}

impl File for FaultyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.faults.state();
        state.counts.writes += 1;
        fails(&mut state.failing_writes)?;
        let end = self.reserve(&mut state, offset + bytes.len() as u64, false)?;
        let longest = state.longest_write.unwrap_or(bytes.len()) as u64;
        drop(state);
        let length = (bytes.len() as u64).min(longest).min(end.saturating_sub(offset));
        if length == 0 && !bytes.is_empty() {
            return Err(Errno::NOSPC.into());
        }
        self.file.write_at(&bytes[..length as usize], offset)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.faults.state();
        state.counts.syncs += 1;
        if state.held == Held::Next {
            state.held = Held::Now;
            while state.held == Held::Now {
                let waited = self.faults.released.wait(state);
                state = waited.expect("no holder of the lock panics");
            }
        }
        fails(&mut state.failing_syncs)?;
        drop(state);
        self.file.sync()
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let mut state = self.faults.state();
        state.counts.allocations += 1;
        if state.cannot_reserve {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.reserve(&mut state, offset + bytes, true)?;
        drop(state);
        self.file.allocate(offset, bytes)
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        *self.reserved.lock().expect("no holder of the lock panics") = bytes;
        self.file.truncate(bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
}
