// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Samples of keys that may be evicted: which ones, and where the search for more continues.

/// Which keys of a sample are the best victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those that are used the least, as far as it is tracked.
    Use,
    /// Those that expire first.
    Expiry,
    /// All are as good.
    Random,
}

/// Which keys are looked at, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Which are the best victims.
    pub order: Order,
    /// Only keys with a time of expiry may be victims.
    pub only_expiring: bool,
    /// About how many keys are looked at: all of one chain more or less.
    pub samples: usize,
}

/// Where a search continues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VictimCursor {
    pub chain: u64,
    /// The last search found too few keys up to this chain.
    pub continues: bool,
}
