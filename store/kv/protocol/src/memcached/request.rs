// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests, as the reader returns them. They borrow from the received bytes.
//!
//! A request is quiet if it has the word `noreply`: the server carries it out, and sends nothing.
//! Meta requests have flag `q` instead, which hides only the usual reply ([`Meta::is_quiet`]).

use super::{Arithmetic, Key, Meta, Words};

/// A complete, valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get`, `gets`, `gat`, `gats`: values of keys.
    Get(Get<'a>),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`: stores a value.
    Store(Store<'a>),
    /// `incr`, `decr`: changes a decimal number of 64 bits.
    Change(Change<'a>),
    /// `delete`: removes a key.
    Delete {
        /// The key.
        key: &'a [u8],
        /// No reply is sent.
        is_quiet: bool,
    },
    /// `touch`: gives a key another expiry.
    Touch {
        /// The key.
        key: &'a [u8],
        /// The new expiry.
        expiry: Expiry,
        /// No reply is sent.
        is_quiet: bool,
    },
    /// `flush_all`: removes all keys.
    FlushAll {
        /// Time of removal: now or later, never [`Expiry::Never`].
        time: Expiry,
        /// No reply is sent.
        is_quiet: bool,
    },
    /// `version`: the version of the server.
    Version,
    /// `verbosity`: changes the amount of logging.
    Verbosity {
        /// The new level.
        level: u32,
        /// No reply is sent.
        is_quiet: bool,
    },
    /// `cache_memlimit`: changes the amount of memory.
    MemoryLimit {
        /// The new limit in MiB.
        mebibytes: u32,
        /// No reply is sent.
        is_quiet: bool,
    },
    /// A command for operators, whose words the reader leaves to the server.
    Operator {
        /// The command.
        command: Operator,
        /// Words behind the command, among them `noreply`.
        words: Words<'a>,
        /// No reply is sent.
        is_quiet: bool,
    },
    /// `quit`: the server closes the connection after all replies to earlier requests.
    Quit,
    /// `mg`: a value and facts about it.
    MetaGet(Meta<'a>),
    /// `ms`: stores a value.
    MetaSet {
        /// Key and flags.
        meta: Meta<'a>,
        /// Mode, in which a given CAS number makes `Set` and `Replace` a `CompareAndSwap`.
        mode: StoreMode,
        /// `F`: number that the client keeps with the value.
        client_flags: u32,
        /// The value.
        value: &'a [u8],
    },
    /// `md`: removes a key, or marks it as stale.
    MetaDelete(Meta<'a>),
    /// `ma`: changes a decimal number of 64 bits.
    MetaArithmetic {
        /// Key and flags.
        meta: Meta<'a>,
        /// Direction of the change.
        operation: Arithmetic,
        /// `D`: amount of the change, 1 if not given.
        delta: u64,
        /// `J`: number that flag `N` makes, 0 if not given.
        initial: u64,
    },
    /// `me`: facts for a human reader about an item.
    MetaDebug(Key<'a>),
    /// `mn`: only a reply, which is sent at once.
    MetaNoop,
}

/// A retrieval of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// Keys in order, each with at most 250 bytes. Only a retrieval with `touch` may have none.
    pub keys: Words<'a>,
    /// Values are returned with their CAS numbers.
    pub returns_cas: bool,
    /// Expiry that found keys are given.
    pub touch: Option<Expiry>,
}

/// A value to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// Condition and kind of the change.
    pub mode: StoreMode,
    /// The key.
    pub key: &'a [u8],
    /// Number that the client keeps with the value.
    pub client_flags: u32,
    /// Expiry; `append` and `prepend` have to ignore it.
    pub expiry: Expiry,
    /// CAS number that the present item must have (`cas`), or 0.
    pub cas: u64,
    /// The value.
    pub value: &'a [u8],
    /// No reply is sent.
    pub is_quiet: bool,
}

/// Condition and kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// Stores in any case.
    Set,
    /// Stores if the key does not exist.
    Add,
    /// Stores if the key exists.
    Replace,
    /// Adds bytes at the end of an existing value.
    Append,
    /// Adds bytes at the begin of an existing value.
    Prepend,
    /// Stores if the item has the given CAS number.
    CompareAndSwap,
}

/// A change of a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Direction of the change.
    pub operation: Arithmetic,
    /// Amount of the change.
    pub delta: u64,
    /// No reply is sent.
    pub is_quiet: bool,
}

/// Commands for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `stats`.
    Stats,
    /// `shutdown`.
    Shutdown,
    /// `slabs`.
    Slabs,
    /// `lru`.
    Lru,
    /// `lru_crawler`.
    LruCrawler,
    /// `watch`.
    Watch,
    /// `extstore`.
    ExternalStore,
}

/// Expiry of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The item does not expire.
    Never,
    /// The item has expired (a negative number).
    Now,
    /// The item expires in 1 s to 30 days.
    InSeconds(u32),
    /// The item expires at a time, in seconds since 1970.
    AtUnixTime(u32),
}

/// Largest number that is a duration, in seconds.
const RELATIVE_MAX_S: i32 = 60 * 60 * 24 * 30;

impl From<i32> for Expiry {
    /// Gives a number of the protocol its meaning.
    #[inline]
    fn from(seconds: i32) -> Self {
        match seconds {
            ..0 => Self::Now,
            0 => Self::Never,
            1..=RELATIVE_MAX_S => Self::InSeconds(seconds.unsigned_abs()),
            _ => Self::AtUnixTime(seconds.unsigned_abs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiries_beyond_thirty_days_are_times() {
        assert_eq!(Expiry::from(-1), Expiry::Now);
        assert_eq!(Expiry::from(i32::MIN), Expiry::Now);
        assert_eq!(Expiry::from(0), Expiry::Never);
        assert_eq!(Expiry::from(2_592_000), Expiry::InSeconds(2_592_000));
        assert_eq!(Expiry::from(2_592_001), Expiry::AtUnixTime(2_592_001));
    }
}
