// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Placement of the processes of pairs, and how they may wait there.

use super::wait::Wait;
use anyhow::{Result, ensure};

/// Cores of the two processes of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Placement {
    /// On two cores
    Across,
    /// Both on one core
    Same,
}

impl Placement {
    /// Both placements.
    pub const ALL: [Self; 2] = [Self::Across, Self::Same];

    /// Returns its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Across => "across two cores",
            Self::Same => "on the same core",
        }
    }

    /// Returns its name in JSON lines and CSV files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Across => "across",
            Self::Same => "same",
        }
    }

    /// Returns the cores of this many pairs; pairs share cores if there are too few.
    ///
    /// # Errors
    /// There is only one core, and two are required.
    pub fn cores(self, pairs: usize, allowed: &[usize]) -> Result<Vec<[usize; 2]>> {
        ensure!(!allowed.is_empty(), "the system does not report the available cores");
        ensure!(self == Self::Same || allowed.len() > 1, "there is only one core");
        let core = |at: usize| allowed[at % allowed.len()];
        Ok((0..pairs)
            .map(|pair| match self {
                Self::Across => [core(2 * pair), core(2 * pair + 1)],
                Self::Same => [core(pair); 2],
            })
            .collect())
    }

    /// Returns how processes wait for this number of pairs: a process that shares its core has to
    /// yield it.
    pub fn wait(self, pairs: usize, allowed: &[usize]) -> Wait {
        match self {
            Self::Across if 2 * pairs <= allowed.len() => Wait::Spin,
            _ => Wait::Yield,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_spread_over_the_cores() {
        let across = Placement::Across.cores(2, &[3, 5, 7]).expect("three cores");
        assert_eq!(across, [[3, 5], [7, 3]]);
        assert_eq!(Placement::Same.cores(3, &[3, 5]).expect("cores"), [[3; 2], [5; 2], [3; 2]]);
        assert!(Placement::Across.cores(1, &[3]).is_err());
        assert_eq!(Placement::Across.wait(2, &[3, 5, 7]), Wait::Yield);
        assert_eq!(Placement::Across.wait(1, &[3, 5]), Wait::Spin);
        assert_eq!(Placement::Same.wait(1, &[3, 5]), Wait::Yield);
    }
}
