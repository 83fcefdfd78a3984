// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Folders on a disk in memory that crashes: their options, and how far a server was that used
//! them.

use freeport_kv_journal::memory::MemoryDisk;
use freeport_kv_journal::{Options, Policy};
use std::sync::Arc;
use std::time::Duration;

/// How far a server is, in numbers of its units or states. After a crash, the folder is not before
/// `durable` if the machine has crashed, not before `released` if only the process has, and not
/// behind `last`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub durable: u64,
    pub released: u64,
    pub last: u64,
}

impl Bounds {
    /// Stores them with the next operations of the disk.
    pub fn note(self, disk: &MemoryDisk) {
        disk.note(self.durable << 40 | self.released << 20 | self.last);
    }

    /// Those that were stored.
    pub fn of(note: u64) -> Bounds {
        let field = |shift: u32| note >> shift & 0xf_ffff;
        Bounds { durable: field(40), released: field(20), last: field(0) }
    }
}

/// A folder on a disk, whose journal does not wait long for anything.
pub fn options(disk: &MemoryDisk, policy: Policy) -> Options {
    Options {
        policy,
        disk: Arc::new(disk.clone()),
        sync_interval: Duration::from_millis(2),
        retry_interval: Duration::from_millis(1),
        ..Options::new("folder")
    }
}
