// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Looks at a folder without opening it for appending, also while a server uses it.

use crate::disk::{Disk, SystemDisk, write_all};
use crate::error::OpenError;
use crate::folder::{Folder, MANIFEST, Unstored};
use crate::frame::{FILE_BYTES, FileKind, file_header};
use crate::recovery;
use crate::status::Progress;
use crate::walk::{BadPlace, Contents, Replay, read_manifest, walk};
use std::path::Path;
use std::sync::Arc;

/// A [`Replay`] that takes everything and does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignore;

impl Replay for Ignore {
    fn entry(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn unit(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// Reads the whole folder, hands entries and units to `replay`, and changes nothing. A bad place of
/// the log is part of the result; what is behind it is not read.
///
/// A server that uses the folder may append and take a snapshot meanwhile. Batches that it is
/// writing can look like an interrupted write.
///
/// # Errors
///
/// As [`crate::Journal::open`], except for `InUse` and `Corrupt`. `Manifest` also if there is none.
pub fn inspect(
    folder: &Path,
    replay: &mut dyn Replay,
    progress: &mut dyn FnMut(Progress),
) -> Result<Contents, OpenError> {
    let folder = Folder { disk: Arc::new(SystemDisk), path: folder.to_owned() };
    let mut last = None;
    loop {
        let Some(manifest) = read_manifest(&folder)? else {
            return Err(no_manifest(&folder));
        };
        let generation = manifest.generation;
        match walk(&folder, manifest, replay, progress) {
            // The server may have replaced the manifest that named the file. All files are opened
            // before `replay` gets anything.
            Err(OpenError::Missing { .. }) if last != Some(generation) => {
                last = Some(generation);
            }
            result => return result,
        }
    }
}

/// Cuts the log at its first bad place: units behind it are lost, those before it are kept. Returns
/// the place; `None` if the log has none. The next start finds a complete log.
///
/// # Errors
///
/// As [`crate::Journal::open`], except for `Corrupt`: a server must not use the folder, and only
/// the log can be cut.
pub fn cut(folder: &Path) -> Result<Option<BadPlace>, OpenError> {
    cut_on(Arc::new(SystemDisk), folder)
}

/// [`cut`] on another disk.
///
/// # Errors
///
/// As [`cut`].
pub fn cut_on(disk: Arc<dyn Disk>, folder: &Path) -> Result<Option<BadPlace>, OpenError> {
    let folder = Folder { disk, path: folder.to_owned() };
    let _lock = recovery::lock(&folder)?;
    let Some(mut manifest) = read_manifest(&folder)? else {
        return Err(no_manifest(&folder));
    };
    let contents = walk(&folder, manifest.clone(), &mut Ignore, &mut |_| {})?;
    let Some(place) = contents.bad_place else { return Ok(None) };

    let path = &place.file;
    let file = folder.disk.open(path, true).map_err(OpenError::system("opening", path))?;
    let kept = contents.segments.len();
    let dropped = manifest.segments.split_off(kept);
    let last = manifest.last();
    if place.offset == 0 {
        // Not even the header is good, so the segment is made anew, without batches.
        let header = file_header(FileKind::Log, last.number, manifest.salt);
        let written = write_all(&*file, &header, 0).1;
        written.map_err(OpenError::system("writing", path))?;
    }
    // Later segments are given up first: without them the place is the end of the log.
    if !dropped.is_empty() {
        manifest.generation += 1;
        let stored = folder.store(&manifest).map_err(|Unstored { error, .. }| error);
        stored.map_err(OpenError::system("writing the manifest in", &folder.path))?;
    }
    let length = place.offset.max(FILE_BYTES);
    file.truncate(length).map_err(OpenError::system("cutting", path))?;
    file.sync().map_err(OpenError::system("making durable", path))?;
    for segment in dropped {
        folder.remove(&folder.log(segment.number));
    }
    Ok(Some(place))
}

fn no_manifest(folder: &Folder) -> OpenError {
    let reason = "there is no manifest, so this is not the folder of a server".to_owned();
    OpenError::Manifest { file: folder.file(MANIFEST), reason }
}
