// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong with a program between interfaces.

use freeport_port::PortError;
use freeport_port::bpf::BpfError;
use std::io;
use thiserror::Error as ThisError;

/// Why a program cannot begin, or cannot go on.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The target.
    #[error(transparent)]
    Target(#[from] freeport_xdp::Error),
    /// A port.
    #[error("{port}: {source}")]
    Port {
        /// Which.
        port: String,
        /// Why.
        source: PortError,
    },
    /// Packets that are redirected by a number could go to either.
    #[error(
        "{first} and {second} both have the number {ifindex}: give one of them another, with \
         `,ifindex=NUMBER` behind it"
    )]
    SameNumber {
        /// One port.
        first: String,
        /// The other.
        second: String,
        /// The number.
        ifindex: u32,
    },
    /// An interface, or its namespace.
    #[error("{port}: {action}: {source}; {advice}")]
    Interface {
        /// Which.
        port: String,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
        /// What to do next.
        advice: &'static str,
    },
    /// An interface is not there any more.
    #[error(
        "{port}: the interface is gone: it was deleted, or moved to another network namespace; \
         start the program again once it is there"
    )]
    Gone {
        /// Which.
        port: String,
    },
    /// The program cannot be put on an interface.
    #[error("{port}: {source}; {advice}")]
    Attach {
        /// Which interface.
        port: String,
        /// Why not.
        source: BpfError,
        /// What to do next.
        advice: &'static str,
    },
    /// The card has packets that do not leave.
    #[error("the card hangs: a packet has not left within {0} cycles")]
    Hangs(u64),
    /// Waiting for ports.
    #[error("the ports cannot be waited for: {0}")]
    Wait(io::Error),
}
