// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder of the sockets of running programs, accessible only to its user, with a name for each
//! program.
//!
//! A lock on `NAME.lock` shows that a program of that name is running; the kernel releases it
//! however the program ends. The holder of the lock may replace the socket, so that the socket of a
//! killed program is no obstacle, and of two programs that start at once only one gets the name.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Maximum length of a name: with the folder it has to fit the 108 bytes of a socket's address.
const MOST_NAME_BYTES: usize = 48;

/// A folder of sockets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

/// A taken name; dropping it frees the name.
#[derive(Debug)]
pub(super) struct Taken {
    pub socket: PathBuf,
    pub listener: UnixListener,
    lock_path: PathBuf,
    /// Held as long as the name is taken.
    _lock: File,
}

/// Reason why a name cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The name is not suitable for a file.
    #[error("`{0}` cannot name a program: use 1 to 48 letters, digits, `_`, `-` and inner dots")]
    Name(String),
    /// Neither variable is set.
    #[error("there is no folder for sockets: set FREEPORT_RUN, or XDG_RUNTIME_DIR")]
    NoFolder,
    /// Other users could create sockets in the folder.
    #[error("{}: it belongs to user {owner} with mode {mode:o}; make it yours, with mode 700, \
             or set FREEPORT_RUN to another folder", path.display())]
    NotAlone {
        /// The folder.
        path: PathBuf,
        /// User that owns it.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// A program of that name is running.
    #[error(
        "{name} is already running{}; choose another with --name, or end it with \
         `freeport stop --to {name}`",
        who.map_or(String::new(), |pid| format!(" as process {pid}"))
    )]
    Runs {
        /// The name.
        name: String,
        /// Its process, if known.
        who: Option<u32>,
    },
    /// An error of the folder or a file in it.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl RunFolder {
    /// Selects the folder at `path`, whether or not it exists.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Selects `$FREEPORT_RUN`, else `/run/freeport` for root and `$XDG_RUNTIME_DIR/freeport` for
    /// other users.
    ///
    /// # Errors
    /// [`FolderError::NoFolder`].
    pub fn of_user() -> Result<Self, FolderError> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty());
        if let Some(path) = set("FREEPORT_RUN") {
            return Ok(Self::at(path));
        }
        if user() == 0 {
            return Ok(Self::at("/run/freeport"));
        }
        let of_session = set("XDG_RUNTIME_DIR").ok_or(FolderError::NoFolder)?;
        Ok(Self::at(PathBuf::from(of_session).join("freeport")))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a program's socket.
    ///
    /// # Errors
    /// [`FolderError::Name`].
    pub fn socket(&self, name: &str) -> Result<PathBuf, FolderError> {
        check(name)?;
        Ok(self.path.join(format!("{name}.sock")))
    }

    /// Returns the names of the sockets, sorted; some may belong to programs that were killed.
    ///
    /// # Errors
    /// The folder cannot be read; a missing folder has no names.
    pub fn names(&self) -> Result<Vec<String>, FolderError> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(source) => return Err(FolderError::File { path: self.path.clone(), source }),
        };
        let files = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names = files.filter_map(|file| file.strip_suffix(".sock").map(str::to_owned));
        let mut names: Vec<String> = names.filter(|name| check(name).is_ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Takes a name, and listens at its socket.
    ///
    /// # Errors
    /// A name that is taken or invalid, or a folder that other users can access.
    pub(super) fn take(&self, name: &str) -> Result<Taken, FolderError> {
        let socket = self.socket(name)?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| FolderError::File { path, source }
        };
        self.make()?;
        let lock_path = self.path.join(format!("{name}.lock"));
        let mut lock = match lock_of(&lock_path).map_err(failed(&lock_path))? {
            Some(lock) => lock,
            None => {
                let who = fs::read_to_string(&lock_path).ok();
                let who = who.and_then(|text| text.trim().parse().ok());
                return Err(FolderError::Runs { name: name.to_owned(), who });
            }
        };
        lock.set_len(0).map_err(failed(&lock_path))?;
        write!(lock, "{}", std::process::id()).map_err(failed(&lock_path))?;
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&socket)(error));
            }
            _ => {}
        }
        // Other users cannot enter the folder, so the mode may be set after the socket is created.
        let listener = UnixListener::bind(&socket).map_err(failed(&socket))?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600)).map_err(failed(&socket))?;
        Ok(Taken { socket, listener, lock_path, _lock: lock })
    }

    /// Creates the folder, and checks that other users cannot write to it.
    fn make(&self) -> Result<(), FolderError> {
        let failed = |source| FolderError::File { path: self.path.clone(), source };
        if !self.path.exists() {
            fs::create_dir_all(&self.path).map_err(failed)?;
            fs::set_permissions(&self.path, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let found = fs::metadata(&self.path).map_err(failed)?;
        let (owner, mode) = (found.uid(), found.mode() & 0o777);
        if owner != user() || mode & 0o022 != 0 {
            return Err(FolderError::NotAlone { path: self.path.clone(), owner, mode });
        }
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Errors are ignored: the next program of that name replaces remaining files.
        let _ = fs::remove_file(&self.socket);
        let _ = fs::remove_file(&self.lock_path);
    }
}

/// Opens and locks the file; returns none if another process has the lock.
fn lock_of(path: &Path) -> io::Result<Option<File>> {
    loop {
        let options =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let file = options.open(path)?;
        // SAFETY: the descriptor is open for the length of the call.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        // The previous holder of the name may have removed the file between the two calls.
        let (ours, there) = (file.metadata()?, fs::metadata(path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Some(file));
        }
    }
}

fn user() -> u32 {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

fn check(name: &str) -> Result<(), FolderError> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_good = (1..=MOST_NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_good)
        && !name.starts_with('.')
        && !name.ends_with('.');
    if is_good { Ok(()) } else { Err(FolderError::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_once_and_free_again_afterwards() {
        let top = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(top.path().join("run"));
        assert_eq!(folder.names().unwrap(), [] as [&str; 0]);
        let taken = folder.take("fw").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(folder.path()), mode(&taken.socket)), (0o700, 0o600));
        let error = folder.take("fw").unwrap_err().to_string();
        let process = format!("fw is already running as process {}; choose", std::process::id());
        assert!(error.starts_with(&process), "{error}");
        let other = folder.take("a.b").unwrap();
        assert_eq!(folder.names().unwrap(), ["a.b", "fw"]);
        drop((taken, other));
        assert_eq!(folder.names().unwrap(), [] as [&str; 0]);
    }

    #[test]
    fn the_socket_of_a_killed_program_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let folder = RunFolder::at(folder.path());
        drop(UnixListener::bind(folder.socket("fw").unwrap()).unwrap());
        fs::write(folder.path().join("fw.lock"), "4194305").unwrap();
        assert_eq!(folder.names().unwrap(), ["fw"]);
        let taken = folder.take("fw").unwrap();
        assert!(std::os::unix::net::UnixStream::connect(&taken.socket).is_ok());
    }

    #[test]
    fn names_stay_inside_a_folder_that_is_the_users_alone() {
        let top = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(top.path());
        for name in ["", "..", ".x", "x.", "a/b", "a b", "ä", &"x".repeat(49)] {
            assert!(matches!(folder.take(name), Err(FolderError::Name(_))), "{name}");
        }
        fs::set_permissions(top.path(), Permissions::from_mode(0o770)).unwrap();
        let error = folder.take("fw").unwrap_err().to_string();
        assert!(error.contains("with mode 770; make it yours"), "{error}");
    }
}
