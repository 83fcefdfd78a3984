// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the processes of pairs are, and how they may wait there.

use super::wait::Wait;
use anyhow::{Result, ensure};

/// Where the two processes of a pair are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Placement {
    /// On two cores
    Across,
    /// Both on one core
    Same,
}

impl Placement {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Across, Self::Same];

    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Across => "across two cores",
            Self::Same => "on the same core",
        }
    }

    /// The same for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Across => "across",
            Self::Same => "same",
        }
    }

    /// The cores of so many pairs: as many different ones as there are.
    ///
    /// # Errors
    /// There is only one core, and two are wanted.
    pub fn cores(self, pairs: usize, allowed: &[usize]) -> Result<Vec<[usize; 2]>> {
        ensure!(!allowed.is_empty(), "the system does not say which cores there are");
        ensure!(self == Self::Same || allowed.len() > 1, "there is only one core");
        let core = |at: usize| allowed[at % allowed.len()];
        Ok((0..pairs)
            .map(|pair| match self {
                Self::Across => [core(2 * pair), core(2 * pair + 1)],
                Self::Same => [core(pair); 2],
            })
            .collect())
    }

    /// How processes wait when so many pairs are placed so: without a core of his own, nobody may
    /// keep it.
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
