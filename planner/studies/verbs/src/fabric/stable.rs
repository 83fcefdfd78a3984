// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file of a place, `<folder>/<place>.log`.
//!
//! An append is several system calls. A process that is killed between two of them leaves a part of
//! the data.

use crate::fault::Fault;
use crate::place::Place;
use crate::verbs::Stable;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Number of bytes of one system call.
const PIECE_BYTES: usize = 64 << 10;

/// The file of a place.
#[derive(Debug)]
pub struct FabricStable {
    place: Place,
    path: PathBuf,
    file: File,
    syncs: bool,
}

impl FabricStable {
    /// Opens the file, and creates it if there is none. `syncs` makes each append wait until the
    /// data are on the disk.
    ///
    /// # Errors
    /// The system refuses, or another process is this place.
    pub(super) fn open(folder: &Path, place: Place, syncs: bool) -> Result<Self, Fault> {
        let path = folder.join(format!("{place}.log"));
        let opened = OpenOptions::new().append(true).create(true).open(&path);
        let file = opened.map_err(|error| broken(place, &path, &error))?;
        Ok(Self { place, path, file, syncs })
    }

    /// Returns a lock of the file that a process holds as long as it is the place. The system
    /// releases it when the process is killed.
    ///
    /// # Errors
    /// Another process has it.
    pub(super) fn lock(&self) -> Result<File, Fault> {
        let file = File::open(&self.path).map_err(|error| self.broken(&error))?;
        file.try_lock().map_err(|error| {
            let path = self.path.display();
            let reason = format!("{path}: {error}: end the process that is this place already");
            Fault::Broken { place: self.place, reason }
        })?;
        Ok(file)
    }

    fn broken(&self, error: &io::Error) -> Fault {
        broken(self.place, &self.path, error)
    }
}

fn broken(place: Place, path: &Path, error: &io::Error) -> Fault {
    Fault::Broken { place, reason: format!("{}: {error}", path.display()) }
}

impl Stable for FabricStable {
    async fn append(&self, data: Vec<u8>) -> Result<(), Fault> {
        let appended = data.chunks(PIECE_BYTES).try_for_each(|piece| (&self.file).write_all(piece));
        let synced =
            appended.and_then(|()| if self.syncs { self.file.sync_data() } else { Ok(()) });
        synced.map_err(|error| self.broken(&error))
    }

    fn read(&self) -> Result<Vec<u8>, Fault> {
        fs::read(&self.path).map_err(|error| self.broken(&error))
    }

    fn truncate(&self, bytes: u64) -> Result<(), Fault> {
        let length = self.file.metadata().map(|metadata| metadata.len());
        let cut = length.and_then(|length| self.file.set_len(bytes.min(length)));
        cut.map_err(|error| self.broken(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    #[test]
    fn appends_follow_each_other_and_outlive_the_place() {
        let folder = tempfile::tempdir().expect("a folder");
        for syncs in [false, true] {
            let stable = FabricStable::open(folder.path(), Place::Soc, syncs).expect("a file");
            let before = stable.read().expect("it works");
            block_on(stable.append(vec![7; PIECE_BYTES + 1])).expect("it works");
            block_on(stable.append(vec![8])).expect("it works");
            let contents = stable.read().expect("it works");
            assert_eq!(contents.len(), before.len() + PIECE_BYTES + 2);
            assert_eq!(contents.last(), Some(&8));
            stable.truncate(3).expect("it works");
            // A cut never makes a file longer.
            stable.truncate(10).expect("it works");
            assert_eq!(stable.read().expect("it works"), [7; 3]);
        }
    }

    #[test]
    fn only_one_process_is_a_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let stable = FabricStable::open(folder.path(), Place::Peer(1), false).expect("a file");
        let lock = stable.lock().expect("nobody has it");
        let refused = stable.lock().expect_err("it is locked").to_string();
        assert!(
            refused.starts_with("peer-1: ") && refused.contains("end the process"),
            "{refused}"
        );
        drop(lock);
        stable.lock().expect("it is free");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let refused = FabricStable::open(Path::new("/nowhere/at/all"), Place::Host, false);
        let reason = refused.expect_err("no folder").to_string();
        assert!(reason.starts_with("host: /nowhere/at/all/host.log: "), "{reason}");
    }
}
