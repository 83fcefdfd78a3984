// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cases, and the ways in which each is run.

use std::path::PathBuf;

/// What a case says of itself, as in `programs/case.h`.
pub mod flag {
    /// The connection is upgraded before the case begins.
    pub const WARM: u32 = 1;
    /// It is upgraded while the case goes on.
    pub const ACROSS: u32 = 2;
    /// The case also runs over IPv6.
    pub const V6: u32 = 4;
    /// Runs of the case differ, although their transcripts do not.
    pub const RACE: u32 = 8;
    /// The case also runs with only one side accelerated.
    pub const MIXED: u32 = 16;
    /// There is no connection yet, but a listener.
    pub const BARE: u32 = 32;
    /// The case is about TCP.
    pub const TCP: u32 = 64;
    /// The case is about Unix sockets.
    pub const UNIX: u32 = 128;
    /// Connections are made again without the kernel.
    pub const REUSED: u32 = 256;
}

/// Over what a case runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// TCP over IPv4.
    V4,
    /// TCP over IPv6.
    V6,
    /// Unix sockets that listen and connect.
    Unix,
    /// Unix sockets that were made as a pair.
    Pair,
}

impl Over {
    /// What the name of a case ends with, as programs take it.
    pub fn mark(self) -> &'static str {
        match self {
            Self::V4 => "",
            Self::V6 => "@v6",
            Self::Unix => "@unix",
            Self::Pair => "@pair",
        }
    }

    /// Over what all a case with these flags runs.
    pub fn of(flags: u32) -> impl Iterator<Item = Self> {
        [Self::V4, Self::V6, Self::Unix, Self::Pair].into_iter().filter(move |over| match over {
            Self::V4 => flags & flag::UNIX == 0,
            Self::V6 => flags & flag::V6 != 0,
            Self::Unix => flags & flag::TCP == 0,
            Self::Pair => flags & (flag::TCP | flag::BARE) == 0,
        })
    }
}

/// A case of a program, over one kind of sockets.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is called.
    pub name: String,
    /// What it runs over.
    pub over: Over,
    /// The program, without its ending.
    pub program: String,
    /// The executable file.
    pub executable: PathBuf,
    /// [Flags](flag).
    pub flags: u32,
}

/// Which processes of a case have the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// None.
    Plain,
    /// All.
    Accelerated,
    /// The server alone.
    ServerAccelerated,
    /// The client alone.
    ClientAccelerated,
}

impl Case {
    /// Whether it has one of these flags.
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// In which ways it is compared with a plain run.
    pub fn comparisons(&self) -> &'static [Runs] {
        const ALL: [Runs; 3] =
            [Runs::Accelerated, Runs::ServerAccelerated, Runs::ClientAccelerated];
        if self.has(flag::MIXED) { &ALL } else { &ALL[..1] }
    }

    /// Whether a run proves nothing unless both ends were upgraded.
    pub fn must_be_upgraded(&self, runs: Runs) -> bool {
        runs == Runs::Accelerated && self.has(flag::WARM | flag::ACROSS)
    }

    /// Whether a run proves nothing unless both sides made connections without the kernel.
    pub fn must_be_reused(&self, runs: Runs) -> bool {
        runs == Runs::Accelerated && self.has(flag::REUSED)
    }

    /// What it is called on the command line of its program.
    pub fn argument(&self) -> String {
        format!("{}{}", self.name, self.over.mark())
    }

    /// Program and case, whatever it runs over.
    pub fn subject(&self) -> String {
        format!("{}: {}", self.program, self.name)
    }

    /// Program and case, for people.
    pub fn title(&self) -> String {
        format!("{}: {}", self.program, self.argument())
    }
}
