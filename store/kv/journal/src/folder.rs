// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder of a journal: names of its files, and the replacement of the manifest. The lineage is
//! replaced in the same way.
//!
//! A manifest is replaced in these steps: write `manifest.new`, make it durable, rename it to
//! `manifest`, make the folder's names durable. An error before the rename has no effect. After an
//! error later, either manifest may be the one that a crash leaves, so the caller has to repeat the
//! replacement until it succeeds, and both states stay complete until then: files that only the
//! older manifest names are removed after the newer one is durable.

use crate::disk::{Disk, File, write_all};
use crate::frame::{FILE_BYTES, FileKind, file_header};
use crate::manifest::{Manifest, log_name, snapshot_name};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const MANIFEST: &str = "manifest";
pub(crate) const NEW_MANIFEST: &str = "manifest.new";
pub(crate) const LINEAGE: &str = "lineage";
pub(crate) const NEW_LINEAGE: &str = "lineage.new";
pub(crate) const LOCK: &str = "lock";

/// A folder on a disk.
#[derive(Clone)]
pub(crate) struct Folder {
    pub disk: Arc<dyn Disk>,
    pub path: PathBuf,
}

/// An error of replacing the manifest or the lineage.
pub(crate) struct Unstored {
    pub error: io::Error,
    /// Whether the new one may be on the disk.
    pub may_be_stored: bool,
}

impl Folder {
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn log(&self, number: u64) -> PathBuf {
        self.file(&log_name(number))
    }

    pub fn snapshot(&self, number: u64) -> PathBuf {
        self.file(&snapshot_name(number))
    }

    /// Makes a durable segment without batches. Its name is durable too, so a manifest can have it.
    pub fn create_log(&self, number: u64, salt: u64) -> io::Result<Arc<dyn File>> {
        let path = self.log(number);
        let file = self.disk.create(&path)?;
        let header = file_header(FileKind::Log, number, salt);
        let fill = || {
            write_all(&*file, &header, 0).1?;
            file.sync()?;
            self.disk.sync_folder(&self.path)
        };
        if let Err(error) = fill() {
            self.remove(&path);
            return Err(error);
        }
        Ok(file)
    }

    /// Makes this manifest the folder's, durably.
    pub fn store(&self, manifest: &Manifest) -> Result<(), Unstored> {
        self.replace(NEW_MANIFEST, MANIFEST, manifest.format().as_bytes())
    }

    /// Replaces a small file, by way of a new one, durably.
    pub fn replace(&self, new: &str, name: &str, bytes: &[u8]) -> Result<(), Unstored> {
        let before = |error| Unstored { error, may_be_stored: false };
        let after = |error| Unstored { error, may_be_stored: true };
        let (new, path) = (self.file(new), self.file(name));
        match self.disk.remove(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(before(error)),
            _ => {}
        }
        let file = self.disk.create(&new).map_err(before)?;
        write_all(&*file, bytes, 0).1.map_err(before)?;
        file.sync().map_err(before)?;
        self.disk.rename(&new, &path).map_err(after)?;
        self.disk.sync_folder(&self.path).map_err(after)
    }

    /// The contents of a small file, or why they are not a text of at most `limit` bytes. `None` if
    /// there is no such file.
    pub fn read_text(&self, name: &str, limit: u64) -> io::Result<Option<Result<String, String>>> {
        let file = match self.disk.open(&self.file(name), false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.length()?;
        if length > limit {
            return Ok(Some(Err(format!("{length} bytes are more than a {name} has"))));
        }
        let mut bytes = vec![0; length as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64)? {
                0 => {
                    let reason = "the file became shorter while it was read".to_owned();
                    return Ok(Some(Err(reason)));
                }
                more => filled += more,
            }
        }
        let text = String::from_utf8(bytes);
        Ok(Some(text.map_err(|_| "it is not a text".to_owned())))
    }

    /// Removes a file that no manifest names. If that fails, the next start removes it.
    pub fn remove(&self, path: &Path) {
        let _ = self.disk.remove(path);
    }
}

/// The offset in a segment's file of a position in the log.
pub(crate) fn offset_in(segment_position: u64, position: u64) -> u64 {
    position - segment_position + FILE_BYTES
}
