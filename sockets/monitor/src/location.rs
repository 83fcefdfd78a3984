// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Location of a monitor's socket, and the check of who may be the monitor there.
//!
//! A locked file beside the socket shows that a monitor is running; the kernel releases the lock
//! however the monitor ends. The holder of the lock may replace the socket. So the files of a
//! killed monitor are no obstacle, and of two monitors that start simultaneously only one wins.
//!
//! Programs send their sockets to the listener. So no other user must be able to place a socket in
//! the folder, and a client checks the user of the listener.

use crate::Error;
use crate::lock::{self, Lock};
use crate::private::user;
use crate::socket::{self, PATH_MAX};
use freeport_sockets_proto::MONITOR_VARIABLE;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Path at which a monitor may listen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    path: PathBuf,
}

/// A location held by a running monitor; released on drop.
#[derive(Debug)]
pub struct Taken {
    socket: PathBuf,
    lock_path: PathBuf,
    listener: OwnedFd,
    /// Held as long as the location.
    _lock: File,
}

impl Location {
    /// Path of root's monitor.
    pub(crate) const HOST: &str = "/run/freeport/monitor.sock";

    /// Returns the location at `path`, made absolute.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path: std::path::absolute(&path).unwrap_or(path) }
    }

    /// Returns `$FREEPORT_MONITOR`; otherwise `/run/freeport/monitor.sock` for root, and for other
    /// users `$XDG_RUNTIME_DIR/freeport/monitor.sock` or else `/tmp/freeport-UID/monitor.sock`. A
    /// monitor listens there; programs are given [`of_programs`](Self::of_programs).
    pub fn of_environment() -> Self {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = || match user() {
            0 => Self::of_host().path.parent().map(PathBuf::from).unwrap_or_default(),
            user => set("XDG_RUNTIME_DIR")
                .map_or_else(|| format!("/tmp/freeport-{user}").into(), |it| it.join("freeport")),
        };
        let path = set(MONITOR_VARIABLE).unwrap_or_else(|| folder().join("monitor.sock"));
        // Absolute, so that programs with another working directory find it too.
        Self::at(std::path::absolute(&path).unwrap_or(path))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Connects to the monitor there if it is trusted: it runs as this user or as root.
    ///
    /// # Errors
    /// [`Error::NoMonitor`], [`Error::Stranger`] or [`Error::PathLength`].
    pub fn connect(&self) -> Result<OwnedFd, Error> {
        let path = || self.path.clone();
        let none = |source| Error::NoMonitor { path: path(), source };
        self.check_length()?;
        let connection = socket::connect(&self.path).map_err(none)?;
        let owner = socket::peer(connection.as_fd()).map_err(none)?.user;
        if owner != 0 && owner != user() {
            return Err(Error::Stranger { path: path(), owner });
        }
        Ok(connection)
    }

    /// Returns the user of any process that listens there; `None` if none listens.
    pub(crate) fn owner(&self) -> Option<u32> {
        let connection = socket::connect(&self.path).ok()?;
        socket::peer(connection.as_fd()).ok().map(|peer| peer.user)
    }

    /// Takes the location as its monitor, and listens. Creates the folder if it does not exist.
    ///
    /// Any user may connect to root's monitor, if the folder's mode allows it; another user's
    /// monitor accepts that user and root.
    ///
    /// # Errors
    /// [`Error::Runs`] if another monitor runs, an error of
    /// [`prepare_folder`](Self::prepare_folder), or [`Error::File`].
    pub fn take(&self) -> Result<Taken, Error> {
        self.check_length()?;
        self.prepare_folder()?;
        let lock_path = self.beside("lock");
        let lock = lock::take(&lock_path, || self.connect().is_ok());
        let mut lock = match lock.map_err(in_file(&lock_path))? {
            Lock::Taken(lock) => lock,
            Lock::Held(who) => return Err(Error::Runs { path: self.path.clone(), who }),
        };
        lock.set_len(0).map_err(in_file(&lock_path))?;
        write!(lock, "{}", std::process::id()).map_err(in_file(&lock_path))?;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(in_file(&self.path)(error));
            }
            _ => {}
        }
        let mode = if user() == 0 { 0o666 } else { 0o600 };
        let listener = socket::listen(&self.path, mode).map_err(in_file(&self.path))?;
        Ok(Taken { socket: self.path.clone(), lock_path, listener, _lock: lock })
    }

    /// Returns the path of a file beside the socket.
    pub fn beside(&self, extension: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(extension);
        self.path.with_file_name(name)
    }

    fn check_length(&self) -> Result<(), Error> {
        if self.path.as_os_str().as_bytes().len() > PATH_MAX {
            return Err(Error::PathLength { path: self.path.clone(), most: PATH_MAX });
        }
        Ok(())
    }

    /// Fails if something other than a socket is at the path: only sockets are replaced.
    fn check_kind(&self) -> Result<(), Error> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) if !found.file_type().is_socket() => {
                Err(Error::NotSocket { path: self.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Creates the folder if it does not exist, and checks that no other user can place a socket
    /// there and that the path holds nothing but a socket.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::NotSocket`], [`Error::NotAlone`] or [`Error::StrangeLink`].
    pub fn prepare_folder(&self) -> Result<(), Error> {
        self.check_kind()?;
        let Some(folder) = self.path.parent().filter(|it| !it.as_os_str().is_empty()) else {
            return Ok(());
        };
        let is_root = user() == 0;
        if fs::symlink_metadata(folder).is_err() {
            let mode = if is_root { 0o755 } else { 0o700 };
            let made = fs::DirBuilder::new().recursive(true).mode(mode).create(folder);
            made.map_err(in_file(folder))?;
        }
        let is_ours = |owner: u32| owner == user() || owner == 0;
        let way = fs::symlink_metadata(folder).map_err(in_file(folder))?;
        // The owner of a link can change its target at any time.
        if way.is_symlink() && !is_ours(way.uid()) {
            return Err(Error::StrangeLink { path: folder.to_owned(), owner: way.uid() });
        }
        let found = fs::metadata(folder).map_err(in_file(folder))?;
        let (owner, mode) = (found.uid(), found.mode() & 0o7777);
        // In a world-writable folder, no other user can replace a socket if it is sticky.
        let is_alone = mode & 0o022 == 0 || mode & libc::S_ISVTX != 0;
        if !is_alone || !is_ours(owner) {
            return Err(Error::NotAlone { path: folder.to_owned(), owner, mode });
        }
        // Programs that drop root privileges must still find the monitor there.
        if is_root && owner == 0 && self.is_of_host() {
            let reached = fs::Permissions::from_mode(mode | 0o011);
            fs::set_permissions(folder, reached).map_err(in_file(folder))?;
        }
        Ok(())
    }
}

impl Taken {
    /// Listening socket.
    pub fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Failures cannot be reported here; the next monitor replaces leftover files.
        if fs::symlink_metadata(&self.socket).is_ok_and(|it| it.file_type().is_socket()) {
            let _ = fs::remove_file(&self.socket);
        }
        let _ = fs::remove_file(&self.lock_path);
    }
}

fn in_file(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_once_and_free_again_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::at(folder.path().join("deep/monitor.sock"));
        assert!(matches!(location.connect(), Err(Error::NoMonitor { .. })));
        let taken = location.take().unwrap();
        location.connect().unwrap();
        let error = location.take().unwrap_err().to_string();
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
        drop(taken);
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 0);
        location.take().unwrap();
    }

    #[test]
    fn what_a_killed_monitor_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::at(folder.path().join("monitor.sock"));
        drop(socket::listen(location.path(), 0o600).unwrap());
        fs::write(location.beside("lock"), "4194305").unwrap();
        let _taken = location.take().unwrap();
        location.connect().unwrap();
    }

    #[test]
    fn what_is_no_socket_stays_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::at(folder.path().join("monitor.sock"));
        fs::write(location.path(), "somebody's").unwrap();
        assert!(matches!(location.take(), Err(Error::NotSocket { .. })));
        assert_eq!(fs::read_to_string(location.path()).unwrap(), "somebody's");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing beside it");
    }

    #[test]
    fn a_folder_that_others_may_write_to_and_a_path_too_long_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::at(folder.path().join("monitor.sock"));
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = location.take().unwrap_err().to_string();
        assert!(error.contains("with mode 777; make it yours"), "{error}");
        let long = Location::at(folder.path().join("x".repeat(PATH_MAX)));
        assert!(matches!(long.take(), Err(Error::PathLength { .. })));
        assert!(matches!(long.connect(), Err(Error::PathLength { .. })));
    }
}
