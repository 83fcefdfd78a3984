// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Persistence: a log of all changes and snapshots, from which the server recovers.
//!
//! The journal ([`freeport_kv_journal`]) writes the files and knows nothing of keys. This module
//! has the contents of its [records](record), the replay at the [start](Start), the
//! [recorder](Recorder) of a worker, the [replies that wait](Holding), and the
//! [snapshots](Snapshots).

mod applying;
mod holding;
pub mod record;
mod recorder;
mod replay;
mod snapshots;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use freeport_kv_commands::{Shard, ShardOptions};
use freeport_kv_journal::disk::{Disk, SystemDisk};
use freeport_kv_journal::{Journal, OpenError, Policy, Progress, Recovered};

use crate::options::Options;
pub use applying::Applier;
pub use holding::Holding;
pub use recorder::{Awaited, Recorder, UNIT_BYTES};
pub use replay::{Loader, PAIRS, RECORDS};
pub use snapshots::{Reason, Snapshots};

/// Where a server keeps its data.
#[derive(Clone)]
pub struct PersistenceOptions {
    /// The folder, which is made if it is missing.
    pub folder: PathBuf,
    /// When changes are durable.
    pub policy: Policy,
    /// The disk that the folder is on.
    pub disk: Arc<dyn Disk>,
}

impl PersistenceOptions {
    /// A folder on the system's disk, which gets all changes once a second.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, policy: Policy::EverySecond, disk: Arc::new(SystemDisk) }
    }
}

impl std::fmt::Debug for PersistenceOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PersistenceOptions")
            .field("folder", &self.folder)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Contents that a server has found in its folder.
#[derive(Debug)]
pub struct Recovery {
    /// Number of keys.
    pub keys: usize,
    /// Number of units of the log that were executed.
    pub units: u64,
    /// Things that the journal has repaired.
    pub journal: Recovered,
}

/// The persistence of a running server.
pub struct Persistence {
    /// The files.
    pub journal: Arc<Journal>,
    /// Snapshots.
    pub snapshots: Arc<Snapshots>,
    /// Contents that were found at the start.
    pub recovery: Recovery,
    /// Time of the latest recovered change, in milliseconds since 1970. The server's time does not
    /// go back behind it, or keys that had expired would be there again.
    pub floor_ms: AtomicU64,
    folder: PathBuf,
}

impl std::fmt::Debug for Persistence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Persistence").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// State of a server when its workers start.
pub struct Start {
    /// Its files, if it has a folder.
    pub persistence: Option<Persistence>,
    /// A shard for each worker.
    #[expect(clippy::vec_box, reason = "shards move between threads in boxes")]
    pub shards: Vec<Box<Shard>>,
    /// Version and bytes of its functions, if it had any.
    pub functions: Option<(u64, Vec<u8>)>,
}

impl Start {
    /// Recovers the state from the server's folder. Without one, all shards are empty.
    ///
    /// # Errors
    /// The files cannot be read or are damaged, or their contents do not fit in the memory.
    pub fn new(
        options: &Options,
        shard: &ShardOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, OpenError> {
        let mut loader = Loader::new(options.workers, shard);
        let persistence = match &options.persistence {
            Some(options) => Some(Persistence::open(options, &mut loader, progress)?),
            None => None,
        };
        let functions = loader.applier.functions.take();
        Ok(Self { persistence, shards: loader.into_shards(), functions })
    }
}

impl Persistence {
    fn open(
        options: &PersistenceOptions,
        loader: &mut Loader,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, OpenError> {
        let journal = freeport_kv_journal::Options {
            policy: options.policy,
            disk: options.disk.clone(),
            ..freeport_kv_journal::Options::new(&options.folder)
        };
        let (journal, recovered) = Journal::open(journal, loader, progress)?;
        let (keys, units) = (loader.keys(), loader.units);
        Ok(Self {
            journal: Arc::new(journal),
            snapshots: Arc::default(),
            recovery: Recovery { keys, units, journal: recovered },
            floor_ms: AtomicU64::new(loader.applier.latest_ms),
            folder: options.folder.clone(),
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A change at that time was executed. See [`Persistence::floor_ms`].
    pub fn note_time(&self, now_ms: u64) {
        self.floor_ms.fetch_max(now_ms, Ordering::Relaxed);
    }

    /// The recorder of a worker.
    pub fn recorder(&self) -> Recorder {
        Recorder::new(self.journal.clone())
    }
}
