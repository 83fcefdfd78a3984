// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways of a get (off-path SmartNIC study, 3.5).

use std::fmt::{self, Display};
use std::str::FromStr;

/// A way of a get. All of them work on the same store at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Alternative {
    /// A1: the client reads index and item in the host's memory.
    HostReads,
    /// A2: the client calls the device's processor, which reads index and item in the host's
    /// memory.
    CallHost,
    /// A3: the client calls the processor, which has the index and reads the item in the host's
    /// memory.
    CallIndex,
    /// A4: the client reads the index in the processor's memory and the item in the host's.
    SplitReads,
    /// A5: the client calls the processor, which caches hot items. If the item is not there, it
    /// answers the item's address, and the client reads it in the host's memory.
    CallCache,
    /// A5 by READ: the client reads a cached copy whose address an earlier call has returned.
    CacheReads,
}

impl Alternative {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::HostReads,
        Self::CallHost,
        Self::CallIndex,
        Self::SplitReads,
        Self::CallCache,
        Self::CacheReads,
    ];

    /// Returns the name in reports and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostReads => "A1",
            Self::CallHost => "A2",
            Self::CallIndex => "A3",
            Self::SplitReads => "A4",
            Self::CallCache => "A5",
            Self::CacheReads => "A5-READ",
        }
    }

    /// Returns the alternative of a client where the first `switch` clients use A5 and all others
    /// A4, so that the processor is used up to its capacity and not beyond.
    pub fn combined(client: usize, switch: usize) -> Self {
        if client < switch { Self::CallCache } else { Self::SplitReads }
    }
}

impl Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Alternative {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|alternative| alternative.name() == name);
        found.ok_or_else(|| format!("there is no alternative {name}; there are {names}"))
    }
}
