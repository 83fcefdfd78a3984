// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Location of a monitor: its files belong to its user alone, and files that others have put there
//! first neither mislead it nor keep it from starting.

use crate::harness::{NOBODY, is_root, while_forking};
use freeport_monitor::{Error, Location};
use freeport_testbed::skip;
use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Makes a world-writable folder, like `/tmp`.
fn shared_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    folder
}

/// A child of another user that holds a lock on a file, until this is dropped.
struct Locker(i32);

impl Locker {
    fn of(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        let _forks = while_forking();
        // SAFETY: the child only makes system calls, and does not return.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // Descriptors of other tests would stay open here.
            // SAFETY: no memory is passed. No owner of 3 or of the closed descriptors is used here.
            unsafe { libc::dup2(file.as_raw_fd(), 3) };
            // SAFETY: as above.
            unsafe { libc::close_range(4, u32::MAX, 0) };
            // SAFETY: no memory is passed. The raw system call, for this process alone.
            unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            // SAFETY: no memory is passed.
            unsafe { libc::flock(3, libc::LOCK_EX | libc::LOCK_NB) };
            // SAFETY: no memory is passed. When it has stopped, it holds the lock.
            unsafe { libc::raise(libc::SIGSTOP) };
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: the status pointer may be null.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WUNTRACED) };
        Self(pid)
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        // SAFETY: our own child, which is not waited for yet.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        // SAFETY: the status pointer may be null.
        unsafe { libc::waitpid(self.0, std::ptr::null_mut(), 0) };
    }
}

#[test]
fn only_its_user_opens_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::at(folder.path().join("monitor.sock"));
    let _taken = location.take().unwrap();
    assert_eq!(mode(&location.beside("lock")), 0o600);
    let is_for_all = if is_root() { 0o666 } else { 0o600 };
    assert_eq!(mode(location.path()), is_for_all);
}

#[test]
fn nobody_else_blocks_a_restart_by_the_lock() {
    if !is_root() {
        return skip("only root has processes of two users");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let location = Location::at(folder.path().join("monitor.sock"));
    // As an earlier release left it.
    let lock = location.beside("lock");
    fs::write(&lock, "1").unwrap();
    fs::set_permissions(&lock, Permissions::from_mode(0o644)).unwrap();
    let _locker = Locker::of(&lock);
    let _taken = location.take().unwrap();
    assert_eq!(mode(&lock), 0o600);
    location.connect().unwrap();
    let error = location.take().unwrap_err().to_string();
    assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
}

/// Process 1 is alive, but does not hold the lock.
#[test]
fn a_process_that_does_not_hold_the_lock_is_not_named() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::at(folder.path().join("monitor.sock"));
    let _taken = location.take().unwrap();
    fs::write(location.beside("lock"), "1").unwrap();
    let error = location.take().unwrap_err().to_string();
    assert!(!error.contains("(process 1)"), "{error}");
}

#[test]
fn a_lock_of_another_user_is_refused() {
    if !is_root() {
        return skip("only root makes files of two users");
    }
    let folder = shared_folder();
    let location = Location::at(folder.path().join("monitor.sock"));
    let lock = location.beside("lock");
    fs::write(&lock, "theirs").unwrap();
    lchown(&lock, Some(NOBODY), None).unwrap();
    let error = location.take().unwrap_err().to_string();
    assert!(error.contains("belongs to user 65534"), "{error}");
    assert_eq!(fs::read_to_string(&lock).unwrap(), "theirs");
}

#[test]
fn a_link_to_a_lock_is_not_followed() {
    let folder = shared_folder();
    let (file, location) =
        (folder.path().join("precious"), Location::at(folder.path().join("monitor.sock")));
    fs::write(&file, "kept").unwrap();
    symlink(&file, location.beside("lock")).unwrap();
    location.take().unwrap_err();
    fs::remove_file(location.beside("lock")).unwrap();
    fs::hard_link(&file, location.beside("lock")).unwrap();
    let _taken = location.take().unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "kept");
}

#[test]
fn a_folder_that_another_users_link_leads_to_is_refused() {
    if !is_root() {
        return skip("only root makes links of two users");
    }
    let (shared, target) = (shared_folder(), tempfile::tempdir().unwrap());
    let link = shared.path().join("freeport-0");
    symlink(target.path(), &link).unwrap();
    let location = Location::at(link.join("monitor.sock"));
    // A user's own link is accepted.
    drop(location.take().unwrap());
    lchown(&link, Some(NOBODY), None).unwrap();
    let error = location.take().unwrap_err();
    assert!(matches!(error, Error::StrangeLink { owner: NOBODY, .. }), "{error}");
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
    // With a dangling link, its owner would choose where the folder is made.
    fs::remove_file(&link).unwrap();
    symlink(target.path().join("new"), &link).unwrap();
    lchown(&link, Some(NOBODY), None).unwrap();
    location.take().unwrap_err();
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}
