// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts and functions of a Redis server: Lua 5.1 with the tables `redis`, `cjson`, `cmsgpack`,
//! `struct` and `bit`, in a sandbox that no script can change.
//!
//! The crate knows neither sockets nor keys. [`Scripts`] belongs to one worker thread; commands of
//! a script go out through the [`Caller`], and replies are appended to a buffer in the version of
//! the client.
//!
//! A script cannot end the process: memory of Lua has a limit, recursion has one too, and a caller
//! that is asked now and then stops a script that runs too long.

mod api;
mod bit;
mod caller;
mod frames;
mod from_reply;
mod hash;
mod header;
mod json;
mod libraries;
mod machine;
mod native;
mod number;
mod packing;
mod payload;
mod pickle;
mod random;
mod register;
mod registration;
mod run;
mod sandbox;
mod scripts;
mod session;
mod settings;
mod stack;
mod to_reply;

pub use caller::{Caller, LogLevel, StopReason};
pub use header::Flags;
pub use libraries::{Libraries, RestorePolicy};
pub use run::Run;
pub use scripts::Scripts;
pub use settings::{Settings, TooLittleMemory};
