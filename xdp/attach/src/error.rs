// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of a program between interfaces.

use freeport_port::PortError;
use freeport_port::bpf::BpfError;
use std::io;
use thiserror::Error as ThisError;

/// An error that keeps a program from starting or from continuing.
#[derive(Debug, ThisError)]
pub enum Error {
    /// Error of the target.
    #[error(transparent)]
    Target(#[from] freeport_xdp::Error),
    /// A port failed.
    #[error("{port}: {source}")]
    Port {
        /// Name of the port.
        port: String,
        /// Cause.
        source: PortError,
    },
    /// Two ports have the same device number, so a redirection to it would be ambiguous.
    #[error(
        "{first} and {second} both have the number {ifindex}: give one of them another, with \
         `,ifindex=NUMBER` behind it"
    )]
    SameNumber {
        /// Name of one port.
        first: String,
        /// Name of the other port.
        second: String,
        /// The shared device number.
        ifindex: u32,
    },
    /// An operation on an interface or its namespace failed.
    #[error("{port}: {action}: {source}; {advice}")]
    Interface {
        /// Name of the interface.
        port: String,
        /// Operation that failed.
        action: &'static str,
        /// Cause.
        source: io::Error,
        /// Advice to the user.
        advice: &'static str,
    },
    /// An interface no longer exists.
    #[error(
        "{port}: the interface is gone: it was deleted, or moved to another network namespace; \
         start the program again once it is there"
    )]
    Gone {
        /// Name of the interface.
        port: String,
    },
    /// The program cannot be attached to an interface.
    #[error("{port}: {source}; {advice}")]
    Attach {
        /// Name of the interface.
        port: String,
        /// Cause.
        source: BpfError,
        /// Advice to the user.
        advice: &'static str,
    },
    /// Packets on the card do not leave.
    #[error("the card hangs: a packet has not left within {0} cycles")]
    Hangs(u64),
    /// Waiting for ports failed.
    #[error("the ports cannot be waited for: {0}")]
    Wait(io::Error),
}
