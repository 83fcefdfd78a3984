// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What accelerated programs do, from what a monitor lists: their connections and counts, and how
//! those change.
//!
//! A [`Snapshot`] is what is there at one time, an [`Activity`] what happened between two. Nothing
//! is asked of the programs, and nothing is added to what they do for each message: they count in
//! words that they write anyway.

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

/// Which kind of socket carries a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// TCP.
    Tcp,
    /// A Unix socket.
    Unix,
}

impl Family {
    /// For people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
    }

    /// The one of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Tcp, Self::Unix].into_iter().find(|it| it.name() == name)
    }
}
