// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a process does between two looks for what has not come.

use freeport_fabric::wait::Waiting;

/// A way to wait without ever sleeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Looks again: for who has a core of his own.
    Spin,
    /// Lets others on the core go on, of whom one may be awaited.
    Yield,
}

impl Wait {
    /// The same as a policy of Freeport's.
    pub fn of_freeport(self) -> Waiting {
        match self {
            Self::Spin => Waiting::SPIN,
            Self::Yield => Waiting::YIELD,
        }
    }

    /// Waits between two looks.
    #[inline]
    pub fn a_moment(self) {
        match self {
            Self::Spin => std::hint::spin_loop(),
            Self::Yield => std::thread::yield_now(),
        }
    }
}
