// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lock that says that a monitor lives.
//!
//! The kernel lets go of it however its holder ends. Whoever can open the file can hold it and so
//! keep every monitor from beginning; so nobody but its user can. A file that others could open, as
//! a release before left it, is replaced unless a monitor has it: they may have it open.

use crate::private::{self, Opened};
use crate::text::decoded;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What became of taking it.
pub enum Lock {
    /// It is held by this.
    Taken(File),
    /// It is held by a process, if that can be told.
    Held(Option<u32>),
}

/// Takes the lock. `answers` says whether a monitor listens.
///
/// # Errors
/// The file is another user's, or the system refuses.
pub fn take(path: &Path, answers: impl Fn() -> bool) -> io::Result<Lock> {
    loop {
        let Opened { file, is_private } =
            private::open(OpenOptions::new().read(true).write(true), path)?;
        // SAFETY: the descriptor is open for the length of the call.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            let holder = holder(&file)?;
            if is_private || holder.is_some() || answers() {
                return Ok(Lock::Held(holder));
            }
            remove(path, &file)?;
            continue;
        }
        // Whoever had the place may have removed the file between the two calls.
        if !is_at(path, &file)? {
            continue;
        }
        if is_private {
            return Ok(Lock::Taken(file));
        }
        remove(path, &file)?;
    }
}

/// Removes the file, if it is still there.
fn remove(path: &Path, file: &File) -> io::Result<()> {
    if !is_at(path, file)? {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn is_at(path: &Path, file: &File) -> io::Result<bool> {
    let ours = file.metadata()?;
    let there = fs::symlink_metadata(path);
    Ok(there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

/// The process that holds the lock, as the kernel says, if it lives and may be a monitor: one of
/// this user or of root. What is written in the file is no proof.
fn holder(file: &File) -> io::Result<Option<u32>> {
    let about = file.metadata()?;
    let device = about.dev();
    let device = format!("{:02x}:{:02x}", libc::major(device), libc::minor(device));
    let mut written = String::new();
    // A holder need not have written anything yet, or what is text.
    let _ = (&*file).read_to_string(&mut written);
    let written = written.trim().parse().ok();
    // Processes of other namespaces are not in it.
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut pids = locks.lines().filter_map(|line| pid_of(line, &device, about.ino(), written));
    Ok(pids.find(|pid| may_be_monitor(*pid)))
}

/// The process that a line of `/proc/locks` names, if it is about that file:
/// `1: FLOCK  ADVISORY  WRITE 4711 00:17:1234 0 EOF`. Those that wait have an arrow. Some file
/// systems have another device there than a file says; then `written` has to name the same.
fn pid_of(line: &str, device: &str, inode: u64, written: Option<u32>) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, name, ..] = words.as_slice() else { return None };
    let (on, number) = name.rsplit_once(':')?;
    let pid = pid.parse().ok()?;
    let is_it = number.parse() == Ok(inode) && (on == device || written == Some(pid));
    is_it.then_some(pid)
}

fn may_be_monitor(pid: u32) -> bool {
    // With its name, which need not be UTF-8.
    let status = decoded(&fs::read(format!("/proc/{pid}/status")).unwrap_or_default());
    let value = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let has_ended = value("State:").is_none_or(|it| it.starts_with(['Z', 'X']));
    let user = value("Uid:").and_then(|it| it.split_whitespace().nth(1)?.parse::<u32>().ok());
    !has_ended && user.is_some_and(|user| user == 0 || user == private::user())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn held(lock: Lock) -> Option<u32> {
        match lock {
            Lock::Taken(_) => panic!("it is held"),
            Lock::Held(holder) => holder,
        }
    }

    #[test]
    fn the_holder_is_named_and_not_who_the_file_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let Lock::Taken(file) = take(&path, || false).unwrap() else { panic!("nobody has it") };
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        fs::write(&path, "1").unwrap();
        assert_eq!(held(take(&path, || false).unwrap()), Some(std::process::id()));
    }

    #[test]
    fn a_file_that_others_could_open_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "4194305").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let before = File::open(&path).unwrap();
        let Lock::Taken(file) = take(&path, || false).unwrap() else { panic!("nobody has it") };
        let (there, ours) = (before.metadata().unwrap(), file.metadata().unwrap());
        assert_ne!(there.ino(), ours.ino());
        assert_eq!((ours.mode() & 0o777, ours.len()), (0o600, 0));
        // Who has the one of before has nothing.
        // SAFETY: the descriptor is open for the length of the call.
        let locked = unsafe { libc::flock(before.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        assert_eq!(locked, 0);
        held(take(&path, || false).unwrap());
    }

    #[test]
    fn lines_about_other_files_name_nobody() {
        let line = "12: FLOCK  ADVISORY  WRITE 4711 00:17:1234 0 EOF";
        assert_eq!(pid_of(line, "00:17", 1234, None), Some(4711));
        assert_eq!(pid_of(line, "00:17", 123, None), None);
        assert_eq!(pid_of(line, "00:18", 1234, None), None);
        assert_eq!(pid_of(line, "00:18", 1234, Some(4711)), Some(4711));
        let waits = "12: -> FLOCK  ADVISORY  WRITE 4711 00:17:1234 0 EOF";
        let range = "12: POSIX  ADVISORY  WRITE 4711 00:17:1234 0 EOF";
        for line in [waits, range, ""] {
            assert_eq!(pid_of(line, "00:17", 1234, None), None);
        }
    }
}
