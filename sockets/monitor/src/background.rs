// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A process that lives on without whoever began it: it has no terminal, no descriptors of theirs,
//! and is nobody's child.

use crate::{Error, private};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The process that went on by itself, and how it tells that it has begun.
#[derive(Debug)]
pub struct Begun(File);

/// Which of the two processes this is.
#[derive(Debug)]
pub enum Side {
    /// The one that was there before, once the other has begun.
    Before,
    /// The one in the background.
    Background(Begun),
}

/// What is longer is thrown away before more is written.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// What is told if it has begun.
const WELL: &[u8] = b"+";

impl Begun {
    /// Lets the process before end well.
    pub fn well(mut self) {
        // If that is gone, nobody wants to know.
        let _ = self.0.write_all(WELL);
    }

    /// Lets the process before end with what went wrong.
    pub fn failed(mut self, why: &str) {
        let _ = self.0.write_all(why.as_bytes());
    }
}

/// Goes on in the background, with `log` as standard error. In the process before it returns when
/// the other has said how it began.
///
/// # Errors
/// What the other says, or the system refuses.
///
/// # Safety
/// No other thread has begun.
pub unsafe fn detach(log: &Path) -> Result<Side, Error> {
    let failed = |source| Error::File { path: log.to_owned(), source };
    let log = private::open_mended(File::options().append(true), log).map_err(failed)?;
    if log.metadata().is_ok_and(|it| it.len() > LOG_BYTES_MAX) {
        log.set_len(0).map_err(failed)?;
    }
    let nothing = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
    let (mut from, to) = pipe()?;
    // SAFETY: there is one thread, so that the child may do anything.
    match unsafe { libc::fork() } {
        -1 => return Err(Error::system("fork")),
        0 => {}
        child => {
            drop(to);
            let mut said = vec![];
            let read = from.read_to_end(&mut said);
            // SAFETY: no status is asked for.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            read.map_err(|source| Error::System { what: "waiting for the monitor", source })?;
            return match said.as_slice() {
                WELL => Ok(Side::Before),
                [] => Err(Error::Refused("the monitor ended before it began".to_owned())),
                why => Err(Error::Refused(String::from_utf8_lossy(why).into_owned())),
            };
        }
    }
    drop(from);
    // SAFETY: no memory is passed.
    unsafe { libc::setsid() };
    // A session's first process could get a terminal again; its child cannot.
    // SAFETY: this process has one thread, so that the child may do anything.
    if unsafe { libc::fork() } != 0 {
        // SAFETY: ends the process without running anything of it.
        unsafe { libc::_exit(0) };
    }
    for (descriptor, number) in [(&nothing, 0), (&nothing, 1), (&log, 2)] {
        // SAFETY: no memory is passed. The standard descriptors have no owner.
        unsafe { libc::dup2(descriptor.as_raw_fd(), number) };
    }
    // All that was inherited, whatever it is: who waits for its end would wait for ours.
    // SAFETY: no memory is passed; nothing is closed.
    let said = unsafe { libc::fcntl(to.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: no memory is passed. If 3 has an owner, that is one of those forgotten below.
    unsafe { libc::dup2(said, 3) };
    // SAFETY: no memory is passed.
    unsafe { libc::fcntl(3, libc::F_SETFD, libc::FD_CLOEXEC) };
    // SAFETY: no memory is passed. The owners of what is closed are forgotten below.
    unsafe { libc::close_range(4, u32::MAX, 0) };
    std::mem::forget((nothing, log, to));
    // SAFETY: a path that ends with zero.
    unsafe { libc::chdir(c"/".as_ptr()) };
    // SAFETY: no memory is passed, and it cannot fail.
    unsafe { libc::umask(0o077) };
    // SAFETY: the end of the pipe, put at 3 above; it has no other owner any more.
    Ok(Side::Background(Begun(unsafe { File::from_raw_fd(3) })))
}

fn pipe() -> Result<(File, File), Error> {
    let mut ends = [0; 2];
    // SAFETY: there is room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::system("pipe2"));
    }
    // SAFETY: both descriptors were just made, and have no other owner.
    Ok(ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) })).into())
}
