// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands of Redis on values, without connections.
//!
//! A [`Command`] is a [`Spec`], the properties that `COMMAND` reports, and a function. The function
//! gets a [`Call`]: arguments, the client's [`Session`], the [`Database`] that it has selected, and
//! a place for the reply. The keys of a database are divided among the [`Shard`]s of a [`Store`],
//! one for each worker of a server.
//!
//! Life of a command:
//! 1. The server finds it in its [`Table`], and checks the number of arguments.
//! 2. It takes hold of the shards that have the keys ([`Spec::keys`]).
//! 3. [`Command::execute`] runs the function, which replies. An error replaces what it had written.
//! 4. The [`Effects`] have all that happened besides: changed keys, events, and a wait for a key.

#![forbid(unsafe_code)]

mod access;
pub mod arguments;
pub mod batch;
pub mod bits;
mod call;
mod command;
mod database;
mod effects;
mod entries;
mod error;
mod evict;
mod eviction;
mod expiry;
mod flush;
pub mod generic;
pub mod geo;
pub mod hashes;
pub mod hyperloglog;
mod image;
mod invalidation;
mod keys;
pub mod lists;
mod lookups;
mod readers;
mod sample;
mod scan;
mod session;
pub mod sets;
mod shard;
mod slots;
pub mod sort;
pub mod sorted_sets;
mod store;
pub mod streams;
pub mod strings;
pub(crate) mod subcommand;
mod table;
mod uses;
pub mod vectors;

pub use access::{Access, Uses};
pub use call::Call;
pub use command::{Command, Flags, Group, Run, Spec};
pub use database::Database;
pub use effects::{Block, Class, Effects, Event};
pub use error::Error;
pub use eviction::{Evicted, EvictionOptions, Policy, Ranking};
pub use keys::Keys;
pub use readers::{Invalidation, Reader, ReaderCounts};
pub use session::Session;
pub use shard::{Shard, ShardOptions, Waiter};
pub use store::Store;
pub use table::Table;

/// All commands of this crate.
pub const FAMILIES: &[&[Command]] = &[
    generic::COMMANDS,
    strings::COMMANDS,
    bits::COMMANDS,
    hyperloglog::COMMANDS,
    vectors::COMMANDS,
    hashes::COMMANDS,
    sets::COMMANDS,
    lists::COMMANDS,
    sorted_sets::COMMANDS,
    geo::COMMANDS,
    streams::COMMANDS,
    sort::COMMANDS,
];
