// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The fence: whether the lease of a node lasts, by a clock that nobody can set.
//!
//! The agent sets until when the node may answer clients. Workers compare that with the clock just
//! before they send replies, so a process that was stopped for a while sends nothing that it should
//! not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use freeport_kv_cluster::boot_time;

/// Whether the lease of a node lasts.
#[derive(Debug, Default)]
pub struct Fence {
    /// Time since the start of the machine, in nanoseconds. 0: there is no lease yet.
    until_ns: AtomicU64,
    /// Number of times that the node was replaced as primary.
    replaced: AtomicU64,
}

impl Fence {
    /// The node may answer clients.
    #[inline]
    pub fn is_valid(&self) -> bool {
        nanoseconds(boot_time()) < self.until_ns.load(Ordering::Acquire)
    }

    /// Number of times that the node was replaced as primary. Replies from before may not leave it.
    /// A caller that has found the fence valid gets the present number.
    #[inline]
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Acquire)
    }

    /// The node may answer clients until this time since the start of the machine. Returns whether
    /// that differs from before, as far as workers that wait want to know it.
    pub(super) fn set(&self, until: Duration) -> bool {
        let until_ns = nanoseconds(until);
        let before_ns = self.until_ns.swap(until_ns, Ordering::AcqRel);
        // Read after that: a worker that has just found the time before to be over is roused.
        let now_ns = nanoseconds(boot_time());
        (now_ns < until_ns) != (now_ns < before_ns)
    }

    /// Another node has become the primary, without an agreement with this one.
    pub(super) fn replace(&self) {
        self.replaced.fetch_add(1, Ordering::AcqRel);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_valid_until_its_time() {
        let fence = Fence::default();
        assert!(!fence.is_valid(), "there is no lease yet");
        assert!(fence.set(boot_time() + Duration::from_secs(3_600)));
        assert!(fence.is_valid());
        assert!(!fence.set(boot_time() + Duration::from_secs(7_200)), "it stays valid");
        assert!(fence.set(boot_time()));
        assert!(!fence.is_valid(), "the time has come");
    }
}
