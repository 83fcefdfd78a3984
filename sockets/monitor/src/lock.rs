// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lock that shows that a monitor is running.
//!
//! The kernel releases it however its holder ends. Any process that can open the file can hold the
//! lock and so keep every monitor from starting; so only its user can open it. A file that others
//! could open, as an earlier release left it, is replaced unless a monitor holds it: other
//! processes may have it open.

use crate::private::{self, Opened};
use crate::text::decoded;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Result of an attempt to take the lock.
pub enum Lock {
    /// The lock is held through this file.
    Taken(File),
    /// A process holds it; its PID, if known.
    Held(Option<u32>),
}

/// Takes the lock. `answers` returns whether a monitor listens.
///
/// # Errors
/// The file belongs to another user, or a system call fails.
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
        // The previous holder may have removed the file between the two calls.
        if !is_at(path, &file)? {
            continue;
        }
        if is_private {
            return Ok(Lock::Taken(file));
        }
        remove(path, &file)?;
    }
}

/// Removes the file, if it is still at the path.
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

/// Returns the process that holds the lock according to the kernel, if it is alive and may be a
/// monitor: one of this user or of root. The content of the file is no proof.
fn holder(file: &File) -> io::Result<Option<u32>> {
    let about = file.metadata()?;
    let device = about.dev();
    let device = format!("{:02x}:{:02x}", libc::major(device), libc::minor(device));
    let mut written = String::new();
    // A holder may not have written anything yet, or not text.
    let _ = (&*file).read_to_string(&mut written);
    let written = written.trim().parse().ok();
    // Processes of other namespaces are not listed.
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut pids = locks.lines().filter_map(|line| pid_of(line, &device, about.ino(), written));
    Ok(pids.find(|pid| may_be_monitor(*pid)))
}

/// Returns the process that a line of `/proc/locks` names, if the line is about this file: `1:
/// FLOCK  ADVISORY  WRITE 4711 00:17:1234 0 EOF`. Lines of waiting processes have an arrow. On some
/// file systems the device differs from the one that `stat` returns; then `written` has to name the
/// same process.
fn pid_of(line: &str, device: &str, inode: u64, written: Option<u32>) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, name, ..] = words.as_slice() else { return None };
    let (on, number) = name.rsplit_once(':')?;
    let pid = pid.parse().ok()?;
    let is_it = number.parse() == Ok(inode) && (on == device || written == Some(pid));
    is_it.then_some(pid)
}

fn may_be_monitor(pid: u32) -> bool {
    // The status contains the process name, which need not be UTF-8.
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
        // A descriptor of the replaced file grants nothing.
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
