// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files beside a monitor's socket that only its user may access.
//!
//! They may be in a world-writable folder such as `/tmp`. Another user may have put something there
//! first: a link to a file that the monitor would truncate, a FIFO on which it would block, or a
//! file of their own that they keep reading and locking.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode of such files.
const MODE: u32 = 0o600;

/// An open file, and whether other users may have it open too.
pub struct Opened {
    pub file: File,
    pub is_private: bool,
}

/// Opens a file without following links; creates it if it does not exist.
///
/// # Errors
/// `PermissionDenied`: it belongs to another user, or is not a regular file. Otherwise the system's
/// error.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<Opened> {
    // Non-blocking, so that opening a FIFO does not wait for its other end.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = options.create(true).mode(MODE).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    let owner = about.uid();
    if owner != user() {
        return Err(denied(format!(
            "it belongs to user {owner}; remove it, or use another folder"
        )));
    }
    if !about.is_file() {
        return Err(denied("it is not a file; remove it, or use another folder".to_owned()));
    }
    Ok(Opened { is_private: is_private(&about), file })
}

/// Opens a file like [`open`], and removes permissions of other users.
///
/// # Errors
/// As [`open`]; also `PermissionDenied` if the file has another hard link.
pub fn open_mended(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let Opened { file, is_private } = open(options, path)?;
    if !is_private {
        if file.metadata()?.nlink() > 1 {
            return Err(denied("it has another hard link; remove it".to_owned()));
        }
        file.set_permissions(Permissions::from_mode(MODE))?;
    }
    Ok(file)
}

/// Returns whether only its owner can open it, and only under this name.
fn is_private(about: &Metadata) -> bool {
    about.mode() & 0o077 == 0 && about.nlink() <= 1
}

fn denied(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

/// Effective user of this process.
pub fn user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    fn writing() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.write(true);
        options
    }

    #[test]
    fn a_mode_that_lets_others_in_is_noticed_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it");
        assert!(open(&mut writing(), &path).unwrap().is_private);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(!open(&mut writing(), &path).unwrap().is_private);
        let file = open_mended(&mut writing(), &path).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, MODE);
    }

    #[test]
    fn links_pipes_and_other_names_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "kept").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open(&mut writing(), &link).is_err());
        fs::remove_file(&link).unwrap();
        fs::hard_link(&file, &link).unwrap();
        assert!(!open(&mut writing(), &link).unwrap().is_private);
        assert!(open_mended(&mut writing(), &link).is_err());
        let pipe = folder.path().join("pipe");
        let name = CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert!(open(OpenOptions::new().read(true).write(true), &pipe).is_err());
        assert_eq!(fs::read_to_string(file).unwrap(), "kept");
    }
}
