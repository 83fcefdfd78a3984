// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places as processes of one machine, over shared memory of the [fabric](freeport_fabric).
//!
//! A folder holds what belongs to a place: the Unix socket `<place>.sock` at which others connect,
//! and the file `<place>.log`. A place connects to another one at its first operation, and again
//! after that one has died and begun anew. Its own operations and the other's use different
//! connections.
//!
//! - **Memory** is one region, which every place that connects can read and write. Operations on
//!   it go through [`Endpoint`], and no code of the other process runs.
//! - **Calls** are messages over rings between the two processes.
//! - **Death.** The kernel reports the end of a process. Calls that wait for its answer fail, and
//!   no operation that ends after the death succeeds. A process that is only stopped has not died:
//!   its memory can be accessed, and calls wait for it.
//! - **Ways.** There is no NIC and no DMA engine, so both [ways](crate::Way) are the same.
//! - **Time.** Cores are real: [`work`](crate::Verbs::work) takes no time of its own.

mod frames;
mod greeting;
mod guest;
mod hello;
#[expect(unsafe_code, reason = "access to regions, after a check of the range")]
mod memory;
mod peer;
mod progress;
mod refusal;
mod shared;
mod stable;
mod transfers;
mod turns;
mod verbs;
mod wire;

pub use memory::RegisteredMemory;
pub use refusal::Refusal;
pub use stable::FabricStable;
pub use verbs::{FabricMemory, FabricVerbs};

use crate::fault::Fault;
use crate::inbox::Inbox;
use crate::place::Place;
use crate::tasks::Tasks;
use freeport_fabric::Endpoint;
use freeport_fabric::shm::{self, ShmEndpoint};
use futures::executor::LocalPool;
use greeting::region_bytes;
use hello::Hello;
use progress::Guests;
use shared::Shared;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Options of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Time after which a place that does not continue a handshake is considered gone.
    pub patience: Duration,
    /// Time after which [`run_until`](Node::run_until) asks its condition again, at the latest: it
    /// may depend on something else than the tasks of the place.
    pub longest_sleep: Duration,
    /// Whether an append waits until the data are on the disk.
    pub syncs: bool,
}

impl Default for Options {
    fn default() -> Self {
        let longest_sleep = Duration::from_millis(20);
        Self { patience: Duration::from_secs(2), longest_sleep, syncs: false }
    }
}

/// A place of this process, with the tasks that run in it.
///
/// It is for one thread. When it is dropped, its tasks end, others find it gone, and its socket
/// file is removed.
pub struct Node {
    pool: LocalPool,
    shared: Rc<Shared>,
    guests: Guests,
    turns: u32,
    path: PathBuf,
    _lock: File,
}

/// Connections that a place has refused or ended because of what the other side sent.
#[derive(Clone, Default, Debug)]
pub struct Refusals {
    /// Number of them.
    pub count: u64,
    /// Reason of the last one.
    pub last: Option<Refusal>,
}

impl Node {
    /// Begins a place in a folder, with this number of bytes of memory, at most 2 GiB. The socket
    /// of a process that was killed is replaced; its file stays.
    ///
    /// # Errors
    /// The system refuses, or another process is this place.
    pub fn begin(folder: &Path, place: Place, memory_bytes: usize) -> Result<Self, Fault> {
        Self::begin_with(folder, place, memory_bytes, Options::default())
    }

    /// Begins a place with options.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    pub fn begin_with(
        folder: &Path,
        place: Place,
        memory_bytes: usize,
        options: Options,
    ) -> Result<Self, Fault> {
        let stable = FabricStable::open(folder, place, options.syncs)?;
        let lock = stable.lock()?;
        let memory = register(memory_bytes)
            .map_err(|error| Fault::Broken { place, reason: error.to_string() })?;
        let path = folder.join(format!("{place}.sock"));
        let listener = listen(&path).map_err(|error| {
            let reason = format!("{}: {error}: use a folder with a short name", path.display());
            Fault::Broken { place, reason }
        })?;
        let pool = LocalPool::new();
        let shared = Rc::new(Shared {
            mine: Hello { place, memory_bytes: memory_bytes as u64 },
            folder: folder.to_owned(),
            options,
            memory,
            stable,
            tasks: Tasks::new(&pool),
            turns: Rc::default(),
            inbox: Inbox::default(),
            peers: RefCell::new(BTreeMap::new()),
        });
        let guests = Guests::new(listener);
        Ok(Self { pool, shared, guests, turns: 0, path, _lock: lock })
    }

    /// Returns the operations of the place.
    pub fn verbs(&self) -> FabricVerbs {
        FabricVerbs { shared: Rc::clone(&self.shared) }
    }

    /// Returns the connections that were refused so far.
    pub fn refusals(&self) -> Refusals {
        self.guests.refusals()
    }
}

/// Registers memory, which every endpoint can export.
fn register(memory_bytes: usize) -> Result<FabricMemory, freeport_fabric::Error> {
    // Regions of shared memory do not depend on the endpoint that has made them.
    let (home, _) = ShmEndpoint::pair(&shm::Options::with_capacity(1024))?;
    let bytes = usize::try_from(region_bytes(memory_bytes as u64)).unwrap_or(usize::MAX);
    Ok(RegisteredMemory::new(home.register(bytes)?, memory_bytes))
}

/// Listens at a path. The caller holds the lock of the place, so a socket that is there belongs to
/// a process that has ended.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Drop for Node {
    fn drop(&mut self) {
        let Shared { mine, tasks, turns, inbox, peers, .. } = &*self.shared;
        tasks.end(mine.place);
        self.pool.run_until_stalled();
        inbox.clear();
        turns.clear();
        peers.take();
        // If the file is gone already, nothing is left to do.
        let _ = fs::remove_file(&self.path);
    }
}
