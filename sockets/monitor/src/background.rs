// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts a process that outlives its parent: it has no terminal, none of the parent's descriptors,
//! and is no child of the parent.

use crate::{Error, private};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The background process, and the pipe by which it reports its start.
#[derive(Debug)]
pub struct Begun(File);

/// Which of the two processes the caller is in.
#[derive(Debug)]
pub enum Side {
    /// The original process, after the background process has started.
    Before,
    /// The background process.
    Background(Begun),
}

/// Size in bytes above which the log is truncated at the start.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// Written to the pipe after a successful start.
const WELL: &[u8] = b"+";

impl Begun {
    /// Reports success: the original process returns.
    pub fn well(mut self) {
        // If the original process has exited, the report is not needed.
        let _ = self.0.write_all(WELL);
    }

    /// Reports a failure: the original process returns this error.
    pub fn failed(mut self, why: &str) {
        let _ = self.0.write_all(why.as_bytes());
    }
}

/// Continues in the background, with `log` as standard error. In the original process, returns once
/// the background process has reported how it started.
///
/// # Errors
/// [`Error::Refused`] with the message of the background process; [`Error::File`] or
/// [`Error::System`] if the log cannot be opened or a system call fails.
///
/// # Safety
/// No other thread has started.
pub unsafe fn detach(log: &Path) -> Result<Side, Error> {
    let failed = |source| Error::File { path: log.to_owned(), source };
    let log = private::open_mended(File::options().append(true), log).map_err(failed)?;
    if log.metadata().is_ok_and(|it| it.len() > LOG_BYTES_MAX) {
        log.set_len(0).map_err(failed)?;
    }
    let nothing = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
    let (mut from, to) = pipe()?;
    // SAFETY: there is one thread, so the child may call anything.
    match unsafe { libc::fork() } {
        -1 => return Err(Error::system("fork")),
        0 => {}
        child => {
            drop(to);
            let mut said = vec![];
            let read = from.read_to_end(&mut said);
            // SAFETY: the status pointer may be null.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            read.map_err(|source| Error::System { what: "waiting for the monitor", source })?;
            return match said.as_slice() {
                WELL => Ok(Side::Before),
                [] => Err(Error::Refused("the monitor ended before it was ready".to_owned())),
                why => Err(Error::Refused(String::from_utf8_lossy(why).into_owned())),
            };
        }
    }
    drop(from);
    // SAFETY: no memory is passed.
    unsafe { libc::setsid() };
    // A session leader could acquire a terminal again; its child cannot.
    // SAFETY: this process has one thread, so the child may call anything.
    if unsafe { libc::fork() } != 0 {
        // SAFETY: ends the process without running any of its handlers.
        unsafe { libc::_exit(0) };
    }
    for (descriptor, number) in [(&nothing, 0), (&nothing, 1), (&log, 2)] {
        // SAFETY: no memory is passed. The standard descriptors have no owner.
        unsafe { libc::dup2(descriptor.as_raw_fd(), number) };
    }
    // Closes every inherited descriptor: a process that waits for end of file on one would wait for
    // this process.
    // SAFETY: no memory is passed; nothing is closed.
    let said = unsafe { libc::fcntl(to.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: no memory is passed. If 3 has an owner, it is one of those forgotten below.
    unsafe { libc::dup2(said, 3) };
    // SAFETY: no memory is passed.
    unsafe { libc::fcntl(3, libc::F_SETFD, libc::FD_CLOEXEC) };
    // SAFETY: no memory is passed. The owners of the closed descriptors are forgotten below.
    unsafe { libc::close_range(4, u32::MAX, 0) };
    std::mem::forget((nothing, log, to));
    // SAFETY: the path ends with a zero byte.
    unsafe { libc::chdir(c"/".as_ptr()) };
    // SAFETY: no memory is passed, and it cannot fail.
    unsafe { libc::umask(0o077) };
    // SAFETY: 3 is the pipe's write end, and no longer has another owner.
    Ok(Side::Background(Begun(unsafe { File::from_raw_fd(3) })))
}

fn pipe() -> Result<(File, File), Error> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::system("pipe2"));
    }
    // SAFETY: both descriptors are new and have no other owner.
    Ok(ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) })).into())
}
