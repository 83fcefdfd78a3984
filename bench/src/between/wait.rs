// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a process waits between two polls.

use freeport_fabric::wait::Waiting;

/// A way to wait without ever sleeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Polls again at once: for a process with its own core.
    Spin,
    /// Yields the core to others, one of which may be the awaited peer.
    Yield,
}

impl Wait {
    /// Returns the same as a waiting policy of Freeport.
    pub fn of_freeport(self) -> Waiting {
        match self {
            Self::Spin => Waiting::SPIN,
            Self::Yield => Waiting::YIELD,
        }
    }

    /// Waits between two polls.
    #[inline]
    pub fn a_moment(self) {
        match self {
            Self::Spin => std::hint::spin_loop(),
            Self::Yield => std::thread::yield_now(),
        }
    }
}
