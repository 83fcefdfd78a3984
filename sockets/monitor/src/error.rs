// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong with a monitor.

use std::io;
use std::path::PathBuf;

/// Why something could not be done.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// A file or a folder.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is one.
    #[error(
        "{}; end that one first, or set FREEPORT_MONITOR",
        match who {
            Some(pid) => format!("a monitor listens at {} already (process {pid})", path.display()),
            None => format!("an unknown process holds the lock of {}", path.display()),
        }
    )]
    Runs {
        /// Where.
        path: PathBuf,
        /// The process that holds its lock, if that can be told.
        who: Option<u32>,
    },
    /// There is none.
    #[error("no monitor answers at {} ({source}); begin one with `freeport node`", path.display())]
    NoMonitor {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Whoever listens there is nobody to show sockets to.
    #[error(
        "who listens at {} is user {owner}, neither you nor root; set FREEPORT_MONITOR to another \
         path", path.display()
    )]
    Stranger {
        /// Where.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Others could put a socket of their own there.
    #[error(
        "{}: it belongs to user {owner} with mode {mode:o}; make it yours, with mode 700, or set \
         FREEPORT_MONITOR to a path in another folder", path.display()
    )]
    NotAlone {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// With which rights.
        mode: u32,
    },
    /// The folder is reached by a link that is another user's.
    #[error(
        "{}: this link belongs to user {owner}, who can make it lead elsewhere; remove it, or set \
         FREEPORT_MONITOR to a path in another folder", path.display()
    )]
    StrangeLink {
        /// The link.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Something else is where it is to listen.
    #[error("{} is no socket, and nothing else is replaced: choose another place", path.display())]
    NotSocket {
        /// What is there.
        path: PathBuf,
    },
    /// Does not fit into the address of a socket.
    #[error("{}: a socket's path has at most {most} bytes; set FREEPORT_MONITOR", path.display())]
    PathLength {
        /// The path.
        path: PathBuf,
        /// How long it may be.
        most: usize,
    },
    /// The kernel cannot tell namespaces of the network apart.
    #[error("this kernel has no SO_NETNS_COOKIE: accelerated sockets need Linux 5.14 or newer")]
    Kernel,
    /// A rule that is none.
    #[error("`{rule}`: {what}")]
    Rule {
        /// What was given.
        rule: String,
        /// What is wrong with it.
        what: String,
    },
    /// The monitor does not do it.
    #[error("{0}")]
    Refused(String),
    /// What the monitor answers is no answer.
    #[error("the monitor does not answer as it should: use the same release for both")]
    Answer,
}

impl Error {
    /// The system has just refused `what`.
    pub(crate) fn system(what: &'static str) -> Self {
        Self::System { what, source: io::Error::last_os_error() }
    }
}
