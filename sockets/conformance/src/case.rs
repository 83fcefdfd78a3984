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
}

/// A case of a program, over one family of addresses.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is called on the command line of its program.
    pub name: String,
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

    /// Program and case, for people.
    pub fn title(&self) -> String {
        format!("{}: {}", self.program, self.name)
    }
}
