// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The file of a snapshot while it is written: blocks, and a mark at the end.

use crate::disk::{File, write_all};
use crate::error::SnapshotError;
use crate::folder::Folder;
use crate::frame::{FILE_BYTES, FileKind, Header, Kind, file_header};
use crate::manifest::Manifest;
use crate::units::Frame;
use std::path::PathBuf;
use std::sync::Arc;

/// A completed snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Length of the file, in bytes.
    pub bytes: u64,
    /// Number of entries.
    pub entries: u64,
}

pub(crate) struct SnapshotFile {
    /// Number of the file.
    pub number: u64,
    path: PathBuf,
    folder: Folder,
    salt: u64,
    file: Arc<dyn File>,
    offset: u64,
    blocks: u64,
    entries: u64,
}

impl SnapshotFile {
    /// Makes the file, which no manifest names.
    pub fn create(folder: &Folder, salt: u64, number: u64) -> Result<SnapshotFile, SnapshotError> {
        let path = folder.snapshot(number);
        let file = folder.disk.create(&path).map_err(SnapshotError::system("making", &path))?;
        let folder = folder.clone();
        Ok(SnapshotFile { number, path, folder, salt, file, offset: 0, blocks: 0, entries: 0 })
    }

    /// Writes the header of the file.
    pub fn begin(&mut self) -> Result<(), SnapshotError> {
        self.write(&file_header(FileKind::Snapshot, self.number, self.salt))?;
        self.offset = FILE_BYTES;
        Ok(())
    }

    /// Writes a block of entries.
    pub fn block(&mut self, mut block: Frame) -> Result<(), SnapshotError> {
        self.frame(&mut block, Kind::Block, 0)
    }

    /// Writes the mark of the end, and makes file and name durable.
    pub fn complete(&mut self) -> Result<Completed, SnapshotError> {
        self.frame(&mut Frame::default(), Kind::End, self.entries)?;
        let synced = self.file.sync();
        synced.map_err(SnapshotError::system("making durable", &self.path))?;
        let folder = &self.folder;
        let synced = folder.disk.sync_folder(&folder.path);
        synced.map_err(SnapshotError::system("making durable", &folder.path))?;
        Ok(Completed { bytes: self.offset, entries: self.entries })
    }

    /// Removes the file, unless this manifest, which is on the disk or may be, names it.
    pub fn remove_unless_named(&self, manifest: &Manifest) {
        if manifest.snapshot != Some(self.number) {
            self.folder.remove(&self.path);
        }
    }

    fn frame(&mut self, frame: &mut Frame, kind: Kind, mark: u64) -> Result<(), SnapshotError> {
        let header = Header { sequence: self.blocks, mark, ..frame.header(kind) };
        let count = frame.count();
        let bytes = frame.seal(&header, self.salt, self.offset);
        self.write(bytes)?;
        self.offset += bytes.len() as u64;
        self.blocks += 1;
        self.entries += u64::from(count);
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let written = write_all(&*self.file, bytes, self.offset).1;
        written.map_err(SnapshotError::system("writing", &self.path))
    }
}
