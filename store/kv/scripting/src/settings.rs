// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits of states of Lua, and what they are for.

/// Limits of scripts, and the version of the server that they find.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum bytes of a state of Lua. There is one for scripts, and one for functions.
    pub memory_bytes: usize,
    /// Instructions of Lua between two calls of [`Caller::interrupt`](crate::Caller::interrupt).
    pub instructions_between_checks: u32,
    /// The version of Redis whose behaviour the server has: major, minor, patch.
    pub redis_version: [u8; 3],
}

impl Default for Settings {
    /// 1 GiB, 100000 instructions, version 7.2.4.
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            instructions_between_checks: 100_000,
            redis_version: [7, 2, 4],
        }
    }
}

/// The limit of memory does not suffice for an empty state of Lua.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("scripts need more memory than {0} bytes: raise the limit")]
pub struct TooLittleMemory(pub usize);

/// Use of a state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// `EVAL`.
    Scripts,
    /// `FCALL`.
    Functions,
}
