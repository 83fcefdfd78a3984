// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Activity of accelerated programs, from a monitor's listing: their connections, counts, and the
//! rates of those.
//!
//! A [`Snapshot`] is the state at one time, an [`Activity`] the change between two. The programs
//! take no part and do no extra work for each message: they count in words that they write anyway.

mod costs;
mod counts;
mod existing;
mod rates;
mod snapshot;

pub use costs::{Costs, Estimate, Path};
pub use counts::Counts;
pub use existing::{Existence, Existing};
pub use rates::{Activity, EndRates, Key, ProgramRates, Rates};
pub use snapshot::{End, InKernel, Program, Snapshot};

/// Kind of socket of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// TCP.
    Tcp,
    /// A Unix socket.
    Unix,
}

impl Family {
    /// Name of the family in JSON and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
    }

    /// Returns the family of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Tcp, Self::Unix].into_iter().find(|it| it.name() == name)
    }
}
