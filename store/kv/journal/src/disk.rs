// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The few operations on files that a journal is made of.
//!
//! A journal reaches its folder only through [`Disk`], so that tests can have a disk that fails
//! ([`crate::faulty`]) or one that crashes between any two operations ([`crate::memory`]).

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Operations on the names of a folder.
pub trait Disk: Send + Sync {
    /// Makes the folder if it is missing, with its parents.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Takes the exclusive lock of a file, which is made if it is missing, and writes the process's
    /// number into it. The lock ends when the result is dropped.
    fn lock(&self, file: &Path) -> Result<Lock, Unlocked>;

    /// Makes an empty file for reading and writing. Fails if the name exists.
    fn create(&self, file: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading, and for writing if `is_writable`.
    fn open(&self, file: &Path, is_writable: bool) -> io::Result<Arc<dyn File>>;

    /// Gives a file another name, in place of a file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Names in a folder, in any order. Names that are not UTF-8 are left out.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Makes the names of a folder durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// Operations on an open file.
pub trait File: Send + Sync {
    /// Reads at an offset; fewer bytes than asked for, or 0 at the end.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at an offset, and returns how many bytes were written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes all bytes written before durable, with the length (`fdatasync`).
    fn sync(&self) -> io::Result<()>;

    /// Has the disk reserve room for a range. The length stays. Fails with
    /// `ErrorKind::Unsupported` if the filesystem cannot.
    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Sets the length, and gives back what is reserved beyond it.
    fn truncate(&self, bytes: u64) -> io::Result<()>;

    /// The length, in bytes.
    fn length(&self) -> io::Result<u64>;
}

/// A locked file. Closing it would not end the lock at once: a process that another thread is
/// starting may have a copy of the descriptor until it executes its program.
struct Locked(fs::File);

impl Drop for Locked {
    fn drop(&mut self) {
        // The lock ends with the process in any case.
        let _ = self.0.unlock();
    }
}

/// A held lock.
pub type Lock = Box<dyn Send + Sync>;

/// Reasons why a lock was not taken.
#[derive(Debug)]
pub enum Unlocked {
    /// Another process holds it; its number, if the file names one.
    Held(Option<u32>),
    /// The system reported an error.
    Failed(io::Error),
}

/// Files of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(folder)?;
        match folder.canonicalize()?.parent() {
            Some(parent) => self.sync_folder(parent),
            None => Ok(()),
        }
    }

    fn lock(&self, file: &Path) -> Result<Lock, Unlocked> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut opened = options.open(file).map_err(Unlocked::Failed)?;
        match opened.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::Error(error)) => return Err(Unlocked::Failed(error)),
            Err(fs::TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Longer than any number; the file could be anything.
                let read = opened.take(32).read_to_string(&mut text);
                return Err(Unlocked::Held(read.ok().and_then(|_| text.trim().parse().ok())));
            }
        }
        let text = format!("{}\n", std::process::id());
        let write = opened.set_len(0).and_then(|()| opened.write_all(text.as_bytes()));
        write.map_err(Unlocked::Failed)?;
        Ok(Box::new(Locked(opened)))
    }

    fn create(&self, file: &Path) -> io::Result<Arc<dyn File>> {
        let opened = fs::OpenOptions::new().read(true).write(true).create_new(true).open(file)?;
        Ok(Arc::new(opened))
    }

    fn open(&self, file: &Path, is_writable: bool) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(fs::OpenOptions::new().read(true).write(is_writable).open(file)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = vec![];
        for entry in fs::read_dir(folder)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        fs::File::open(folder)?.sync_all()
    }
}

impl File for fs::File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        loop {
            match fallocate(self, FallocateFlags::KEEP_SIZE, offset, bytes) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::NOSYS) => return Err(io::ErrorKind::Unsupported.into()),
                // Also EOPNOTSUPP, which the standard library calls `Unsupported`.
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

/// Writes all bytes at an offset. Returns how many were written, and the error that ended it.
pub(crate) fn write_all(file: &dyn File, bytes: &[u8], offset: u64) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write_at(&bytes[written..], offset + written as u64) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// An error in the words of the system, without its number.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_words_of_the_system() {
        assert_eq!(words(&Errno::NOSPC.into()), "No space left on device");
        assert_eq!(words(&io::Error::other("it is gone")), "it is gone");
    }

    #[test]
    fn a_filesystem_that_cannot_reserve_is_recognised() {
        let error = io::Error::from(Errno::OPNOTSUPP);
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
