// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder of a registry: its lock, and files that are replaced as a whole.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::registry::RegistryError;
use crate::stored::MAXIMUM_BYTES;

/// Longest time that a call waits for the lock. A process that holds it for longer is stopped or
/// its disk hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// Longest pause between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(4);

/// Filesystems that several machines share, by the number that `statfs` has for each. Machines do
/// not see each other's locks there, and their clocks differ.
const SHARED: [(u32, &str); 10] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x5346_414f, "AFS"),
];

/// A lock of the folder or of a file in it. The lock ends with this value.
struct Lock {
    file: File,
}

/// The locked folder. The lock ends with this value.
pub(super) struct Held {
    path: PathBuf,
    lock: Lock,
}

/// The right to replace a file durably. Its holder writes and syncs the new file without the lock
/// of the folder, which others need to prolong their leases. Only the rename, and the sync of the
/// folder behind it, need that lock.
pub(super) struct Writer {
    path: PathBuf,
    _lock: Lock,
}

/// The way in which a folder is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Others may read it too.
    Reads,
    /// Nobody else uses it.
    Writes,
}

/// A file was not replaced.
pub(super) enum ReplaceError {
    /// It has the old contents.
    Before(RegistryError),
    /// It may have either contents after a crash of the machine.
    Unknown(RegistryError),
}

/// Makes a folder with its parents if it is missing.
pub(super) fn create(folder: &Path) -> Result<(), RegistryError> {
    fs::create_dir_all(folder).map_err(|error| unavailable("make", folder, &error))
}

/// Refuses a folder that several machines share.
pub(super) fn check_filesystem(folder: &Path) -> Result<(), RegistryError> {
    let found = rustix::fs::statfs(folder);
    let found = found.map_err(|error| unavailable("examine", folder, &error.into()))?;
    // The type of the field depends on the machine; the numbers have 32 bits.
    let kind = found.f_type as u32;
    match SHARED.iter().find(|(number, _)| *number == kind) {
        None => Ok(()),
        Some((_, name)) => Err(RegistryError::Unavailable(format!(
            "{} is on {name}, which machines share; a registry in a folder serves one machine: \
             choose a folder of a local disk, or etcd",
            folder.display()
        ))),
    }
}

/// A name that the machine has from its start to its end.
pub(super) fn boot() -> Result<String, RegistryError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(|error| unavailable("read", path, &error))?;
    Ok(text.trim().to_owned())
}

impl Lock {
    /// Waits for the lock of a file or folder.
    fn wait(file: File, path: &Path, way: Use, patience: Duration) -> Result<Self, RegistryError> {
        let begin = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            let locked = match way {
                Use::Reads => file.try_lock_shared(),
                Use::Writes => file.try_lock(),
            };
            match locked {
                Ok(()) => return Ok(Self { file }),
                Err(TryLockError::Error(error)) => return Err(unavailable("lock", path, &error)),
                Err(TryLockError::WouldBlock) if begin.elapsed() < patience => {
                    thread::sleep(pause);
                    pause = PAUSE.min(pause * 2);
                }
                Err(TryLockError::WouldBlock) => return Err(is_held(path, patience)),
            }
        }
    }
}

impl Writer {
    /// Waits for the right to replace a file of a folder, which the file `lock` in it stands for.
    pub(super) fn wait(path: &Path, lock: &str) -> Result<Self, RegistryError> {
        let file = path.join(lock);
        let opened = File::options().create(true).append(true).open(&file);
        let opened = opened.map_err(|error| unavailable("open", &file, &error))?;
        let lock = Lock::wait(opened, &file, Use::Writes, PATIENCE)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Writes the file that will replace another, so that it survives a crash of the machine. See
    /// [`Held::put_in_place`].
    pub(super) fn write(&self, name: &str, contents: &[u8]) -> Result<(), RegistryError> {
        write_new(&self.path.join(new_name(name)), contents, File::sync_all)
    }
}

impl Held {
    /// Waits for the lock of a folder, but not longer than a time.
    pub(super) fn lock(path: &Path, way: Use, patience: Duration) -> Result<Self, RegistryError> {
        let opened = File::open(path).map_err(|error| unavailable("open", path, &error))?;
        let lock = Lock::wait(opened, path, way, patience)?;
        Ok(Self { path: path.to_owned(), lock })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// There is a file or folder with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The path of a file for messages, and its contents; none if it is missing.
    pub(super) fn read(&self, name: &str) -> Result<Option<(String, Vec<u8>)>, RegistryError> {
        let path = self.path(name);
        let mut text = vec![];
        let read = File::open(&path).and_then(|file| {
            // One more byte than a value may have, so that a longer file is recognised.
            file.take(MAXIMUM_BYTES as u64 + 1).read_to_end(&mut text)
        });
        match read {
            Ok(_) => Ok(Some((path.display().to_string(), text))),
            Err(error) if error.kind() == ErrorKind::NotFound && self.path.is_dir() => Ok(None),
            Err(error) => Err(unavailable("read", &path, &error)),
        }
    }

    /// Names in a folder of the folder; none if it is missing.
    pub(super) fn list(&self, name: &str) -> Result<Vec<String>, RegistryError> {
        let path = self.path(name);
        let names = fs::read_dir(&path).and_then(|entries| {
            let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
            names.filter_map(Result::transpose).collect()
        });
        match names {
            Err(error) if error.kind() == ErrorKind::NotFound && self.path.is_dir() => Ok(vec![]),
            names => names.map_err(|error| unavailable("list", &path, &error)),
        }
    }

    /// Makes a folder in the folder.
    pub(super) fn create_folder(&self, name: &str) -> Result<(), RegistryError> {
        let path = self.path(name);
        fs::create_dir(&path).map_err(|error| unavailable("make", &path, &error))
    }

    /// Removes a folder with its files.
    pub(super) fn remove_folder(&self, name: &str) -> Result<(), RegistryError> {
        let path = self.path(name);
        fs::remove_dir_all(&path).map_err(|error| unavailable("remove", &path, &error))
    }

    /// Removes a file.
    pub(super) fn remove(&self, name: &str) -> Result<(), RegistryError> {
        let path = self.path(name);
        fs::remove_file(&path).map_err(|error| unavailable("remove", &path, &error))
    }

    /// Replaces a file whose contents need not survive a crash of the machine.
    pub(super) fn replace(&self, name: &str, contents: &[u8]) -> Result<(), RegistryError> {
        write_new(&self.path(&new_name(name)), contents, |_| Ok(()))?;
        self.rename(name)
    }

    /// Replaces a file by that which the writer has written, and returns when the new contents
    /// survive a crash of the machine.
    pub(super) fn put_in_place(&self, _writer: &Writer, name: &str) -> Result<(), ReplaceError> {
        self.rename(name).map_err(ReplaceError::Before)?;
        let synced = self.lock.file.sync_all();
        synced.map_err(|error| ReplaceError::Unknown(unavailable("sync", &self.path, &error)))
    }

    fn rename(&self, name: &str) -> Result<(), RegistryError> {
        let path = self.path(name);
        let renamed = fs::rename(self.path(&new_name(name)), &path);
        renamed.map_err(|error| unavailable("replace", &path, &error))
    }
}

/// Name of the file that will replace another.
fn new_name(name: &str) -> String {
    format!("{name}.new")
}

fn write_new(
    path: &Path,
    contents: &[u8],
    finish: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), RegistryError> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(contents)?;
        finish(&file)
    });
    written.map_err(|error| unavailable("write", path, &error))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would not end the lock at once if another thread is starting a process,
        // which has a copy of the descriptor for a moment. The lock ends with this process anyway.
        let _ = self.file.unlock();
    }
}

fn is_held(path: &Path, patience: Duration) -> RegistryError {
    RegistryError::Unavailable(format!(
        "{} has been locked for {} ms by a process that seems to be stopped; `lslocks` shows it",
        path.display(),
        patience.as_millis()
    ))
}

/// An error of the system, with what was attempted, and advice if there is some.
fn unavailable(verb: &str, path: &Path, error: &io::Error) -> RegistryError {
    let advice = match error.kind() {
        ErrorKind::PermissionDenied => {
            "; all nodes and operators need to read and write the folder: run them as one user"
        }
        ErrorKind::StorageFull => "; make room on the disk",
        ErrorKind::NotFound => "; it was removed: restart the nodes to make a new registry",
        _ => "",
    };
    RegistryError::Unavailable(format!("cannot {verb} {}: {error}{advice}", path.display()))
}
