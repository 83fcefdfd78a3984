// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of a monitor.

use std::io;
use std::path::PathBuf;

/// Reason for which an operation of the monitor, or with it, failed.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// Access to a file or folder failed.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A monitor already runs there.
    #[error(
        "{}; stop that process first, or set FREEPORT_MONITOR",
        match who {
            Some(pid) => format!("a monitor already listens at {} (process {pid})", path.display()),
            None => format!("an unknown process holds the lock of {}", path.display()),
        }
    )]
    Runs {
        /// Path at which it listens.
        path: PathBuf,
        /// Process that holds its lock, if known.
        who: Option<u32>,
    },
    /// No monitor answers.
    #[error("no monitor answers at {} ({source}); start one with `freeport node`", path.display())]
    NoMonitor {
        /// Path of the monitor.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The listener belongs to a user that this one does not trust with its sockets.
    #[error(
        "the listener at {} belongs to user {owner}, neither you nor root; set FREEPORT_MONITOR to \
         another path", path.display()
    )]
    Stranger {
        /// Path of the monitor.
        path: PathBuf,
        /// User ID of the listener.
        owner: u32,
    },
    /// Other users could place a socket of their own there.
    #[error(
        "{}: it belongs to user {owner} with mode {mode:o}; make it yours, with mode 700, or set \
         FREEPORT_MONITOR to a path in another folder", path.display()
    )]
    NotAlone {
        /// Path of the folder.
        path: PathBuf,
        /// User ID of its owner.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// The path of the folder leads through a symbolic link of another user.
    #[error(
        "{}: this link belongs to user {owner}, who can change its target; remove it, or set \
         FREEPORT_MONITOR to a path in another folder", path.display()
    )]
    StrangeLink {
        /// Path of the link.
        path: PathBuf,
        /// User ID of its owner.
        owner: u32,
    },
    /// Something other than a socket is at the path.
    #[error("{} is not a socket, so it is not replaced: choose another path", path.display())]
    NotSocket {
        /// The path.
        path: PathBuf,
    },
    /// The path does not fit into a socket address.
    #[error("{}: a socket's path has at most {most} bytes; set FREEPORT_MONITOR", path.display())]
    PathLength {
        /// The path.
        path: PathBuf,
        /// Maximum length in bytes.
        most: usize,
    },
    /// The kernel cannot distinguish network namespaces.
    #[error("this kernel has no SO_NETNS_COOKIE: accelerated sockets need Linux 5.14 or newer")]
    Kernel,
    /// A rule of the policy is invalid.
    #[error("`{rule}`: {what}")]
    Rule {
        /// Text of the rule.
        rule: String,
        /// Description of the mistake.
        what: String,
    },
    /// The monitor refused the request.
    #[error("{0}")]
    Refused(String),
    /// The answer of the monitor cannot be parsed.
    #[error("the monitor's answer is invalid: use the same release for both")]
    Answer,
}

impl Error {
    /// Makes a [`Error::System`] of `errno`, for the operation `what`.
    pub(crate) fn system(what: &'static str) -> Self {
        Self::System { what, source: io::Error::last_os_error() }
    }
}
