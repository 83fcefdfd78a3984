// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases, and the configurations in which each runs.

use std::path::PathBuf;

/// Flags of a case, as in `programs/case.h`.
pub mod flag {
    /// The connection is upgraded before the case starts.
    pub const WARM: u32 = 1;
    /// It is upgraded while the case runs.
    pub const ACROSS: u32 = 2;
    /// The case also runs over IPv6.
    pub const V6: u32 = 4;
    /// Runs of the case take different paths, although their transcripts are equal.
    pub const RACE: u32 = 8;
    /// The case also runs with only one side accelerated.
    pub const MIXED: u32 = 16;
    /// There is a listener, but no connection yet.
    pub const BARE: u32 = 32;
    /// The case runs over TCP only.
    pub const TCP: u32 = 64;
    /// The case runs over Unix sockets only.
    pub const UNIX: u32 = 128;
    /// Later connections reuse a stream, without the kernel.
    pub const REUSED: u32 = 256;
}

/// Kind of connection that a case runs over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// TCP over IPv4.
    V4,
    /// TCP over IPv6.
    V6,
    /// Unix sockets, by `listen` and `connect`.
    Unix,
    /// Unix sockets, by `socketpair`.
    Pair,
}

impl Over {
    /// Suffix of the case's name on the command line of a program.
    pub fn mark(self) -> &'static str {
        match self {
            Self::V4 => "",
            Self::V6 => "@v6",
            Self::Unix => "@unix",
            Self::Pair => "@pair",
        }
    }

    /// Returns the kinds of connection that a case with these flags runs over.
    pub fn of(flags: u32) -> impl Iterator<Item = Self> {
        [Self::V4, Self::V6, Self::Unix, Self::Pair].into_iter().filter(move |over| match over {
            Self::V4 => flags & flag::UNIX == 0,
            Self::V6 => flags & flag::V6 != 0,
            Self::Unix => flags & flag::TCP == 0,
            Self::Pair => flags & (flag::TCP | flag::BARE) == 0,
        })
    }
}

/// A case of a program, over one kind of connection.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the case.
    pub name: String,
    /// Kind of connection.
    pub over: Over,
    /// Name of the program, without extension.
    pub program: String,
    /// Path of the executable.
    pub executable: PathBuf,
    /// [Flags](flag).
    pub flags: u32,
}

/// Processes of a case that load the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// None.
    Plain,
    /// All.
    Accelerated,
    /// Only the server.
    ServerAccelerated,
    /// Only the client.
    ClientAccelerated,
}

impl Case {
    /// Returns whether it has one of these flags.
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// Returns the runs that are compared with a plain run.
    pub fn comparisons(&self) -> &'static [Runs] {
        const ALL: [Runs; 3] =
            [Runs::Accelerated, Runs::ServerAccelerated, Runs::ClientAccelerated];
        if self.has(flag::MIXED) { &ALL } else { &ALL[..1] }
    }

    /// Returns whether a run is valid only if both ends were upgraded.
    pub fn must_be_upgraded(&self, runs: Runs) -> bool {
        runs == Runs::Accelerated && self.has(flag::WARM | flag::ACROSS)
    }

    /// Returns whether a run is valid only if both sides reused streams.
    pub fn must_be_reused(&self, runs: Runs) -> bool {
        runs == Runs::Accelerated && self.has(flag::REUSED)
    }

    /// Returns the name of the case on the command line of its program.
    pub fn argument(&self) -> String {
        format!("{}{}", self.name, self.over.mark())
    }

    /// Returns program and case, without the kind of connection.
    pub fn subject(&self) -> String {
        format!("{}: {}", self.program, self.name)
    }

    /// Returns program and case, for users.
    pub fn title(&self) -> String {
        format!("{}: {}", self.program, self.argument())
    }
}
