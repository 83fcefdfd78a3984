// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that only this user or root can have written. Code that is loaded into this process, or
//! into others on its behalf, comes only from such files.
//!
//! Checks happen before a file is used by its path. Other users cannot rename anything in a folder
//! that passed, so the path still leads to the same file afterwards.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Mode bits that let the group, and everyone, write.
const GROUP_WRITES: u32 = 0o020;
const ALL_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Returns the folder for this user's reproducible files: `freeport` in the first of
/// `$XDG_CACHE_HOME`, `$HOME/.cache` and, for root, `/var/cache` that can be trusted. A home that
/// does not exist is not made: accounts of services have one that never should.
///
/// # Errors
/// None can be trusted; the error lists the reason for each.
pub fn cache() -> io::Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let named = [
        set("XDG_CACHE_HOME").map(PathBuf::from),
        set("HOME").map(PathBuf::from).filter(|home| home.is_dir()).map(|it| it.join(".cache")),
        (user() == 0).then(|| PathBuf::from("/var/cache")),
    ];
    first_trusted(named.into_iter().flatten().filter(|it| it.is_absolute()))
}

fn first_trusted(bases: impl Iterator<Item = PathBuf>) -> io::Result<PathBuf> {
    let mut reasons = String::new();
    for base in bases {
        let folder = base.join("freeport");
        // Nothing is created in a folder of another user.
        let there = folder.ancestors().find(|it| it.exists()).unwrap_or(Path::new("/"));
        match check_way(there).and_then(|()| make_folder(&folder, 0o755)) {
            Ok(()) => return Ok(folder),
            Err(error) => reasons += &format!("{error}; "),
        }
    }
    let reason = format!(
        "{reasons}no folder is left to keep files in: set XDG_CACHE_HOME to one that is yours \
         and that nobody else may write to"
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, reason))
}

/// Creates a folder with this mode, and its parents, if it does not exist, and [checks](check) it.
///
/// # Errors
/// It cannot be created, or other users could write to it.
pub fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(mode).create(path);
    made.map_err(|error| in_path(path, error))?;
    check(path)
}

/// Checks that a file or folder belongs to this user or root, and that no other user may write to
/// it. Group write access is allowed for root's group and for the user's own group.
///
/// # Errors
/// It does not exist, belongs to another user, or other users may write to it; the error names it
/// and the reason.
pub fn check(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path).map_err(|error| in_path(path, error))?;
    if found.file_type().is_symlink() {
        return Err(denied(path, "is a symbolic link"));
    }
    is_own(path, &found, false)
}

/// Checks a file after resolving its path, and every folder on that path. A folder that everyone
/// may write to passes if it is sticky, so that only owners may rename in it.
///
/// # Errors
/// As for [`check`].
pub fn check_way(path: &Path) -> io::Result<()> {
    let path = path.canonicalize().map_err(|error| in_path(path, error))?;
    path.ancestors().enumerate().try_for_each(|(above, path)| {
        let found = fs::metadata(path).map_err(|error| in_path(path, error))?;
        is_own(path, &found, above > 0)
    })
}

/// Reads a file that passes [`check`]; returns `None` if it does not exist.
///
/// # Errors
/// As for [`check`].
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match check(path).and_then(|()| fs::read(path)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_own(path: &Path, found: &Metadata, is_above: bool) -> io::Result<()> {
    let (owner, group, mode, user) = (found.uid(), found.gid(), found.mode(), user());
    if owner != 0 && owner != user {
        return Err(denied(path, &format!("belongs to user {owner}, not to {user} or root")));
    }
    let mut writers = ALL_WRITE;
    // By convention, a user's own group has the same number as the user.
    if group != 0 && group != user {
        writers |= GROUP_WRITES;
    }
    if mode & writers != 0 && !(is_above && mode & STICKY != 0) {
        let mode = mode & 0o7777;
        return Err(denied(path, &format!("may be written to by others (mode {mode:o})")));
    }
    Ok(())
}

fn denied(path: &Path, reason: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{} {reason}", path.display()))
}

fn in_path(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn user() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn what_others_may_write_to_or_lead_elsewhere_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("library.so");
        fs::write(&file, "code").expect("it is ours");
        set_mode(&file, 0o644);
        assert_eq!(read(&file).expect("it is ours"), Some(b"code".to_vec()));
        set_mode(&file, 0o646);
        let error = check(&file).expect_err("all may write").to_string();
        assert!(error.ends_with("library.so may be written to by others (mode 646)"), "{error}");
        set_mode(&file, 0o644);
        let link = folder.path().join("link.so");
        symlink(&file, &link).expect("it is ours");
        let error = read(&link).expect_err("a link").to_string();
        assert!(error.contains("is a symbolic link"), "{error}");
        check_way(&link).expect("where it leads is ours");
        assert_eq!(read(&folder.path().join("none")).expect("it may be missing"), None);
    }

    #[test]
    fn a_folder_of_another_user_is_passed_over_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let [theirs, ours] = ["theirs", "ours"].map(|name| folder.path().join(name));
        fs::create_dir(&theirs).expect("it is ours yet");
        let both = || [theirs.clone(), ours.clone()].into_iter();
        // Other users may create files in a shared folder, so a world-writable folder is not
        // trusted.
        set_mode(&theirs, 0o777);
        assert_eq!(first_trusted(both()).expect("ours is left"), ours.join("freeport"));
        if user() == 0 {
            set_mode(&theirs, 0o755);
            chown(&theirs, Some(12_345), None).expect("root may");
            assert_eq!(first_trusted(both()).expect("ours is left"), ours.join("freeport"));
            let error = first_trusted([theirs.clone()].into_iter()).expect_err("none is left");
            assert_eq!(fs::read_dir(&theirs).expect("root may").count(), 0);
            let error = error.to_string();
            assert!(error.contains("theirs belongs to user 12345, not to 0 or root"), "{error}");
            assert!(error.contains("set XDG_CACHE_HOME"), "{error}");
        }
    }
}
