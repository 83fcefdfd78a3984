// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A registry in a folder, for the processes of one machine.
//!
//! 1. Every call locks the folder (`flock`), so calls take effect one after the other; those that
//!    only read share the lock. The kernel ends the lock with the process that holds it. A new
//!    topology is written before, under a lock of its own, because the disk may take long.
//! 2. Files are replaced as a whole by a rename, so a process that is killed at any moment leaves
//!    the old value or the new one.
//! 3. Leases are in a folder with the name of the machine's boot. They end by a clock that starts
//!    with the machine, so those of another boot have ended, and nobody reads them.

mod folder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use self::folder::{Held, PATIENCE, ReplaceError, Use, Writer, check_filesystem};
use crate::clock::boot_time;
use crate::id::NodeId;
use crate::registry::{Presence, Registry, RegistryError, Revision, State, SwapError, Versioned};
use crate::stored::{check_length, checked, decode, encode};
use crate::topology::Topology;

/// Pause between two looks for changes.
const POLL: Duration = Duration::from_millis(40);

/// A lease is removed this time after its end.
const KEPT: Duration = Duration::from_secs(60);

const TOPOLOGY: &str = "topology";
/// A call that has locked this file may write a new topology.
const WRITER: &str = "topology.lock";
/// Begin of the name of a folder with leases; the rest is the boot.
const LEASES: &str = "leases.";

/// A registry in a folder of the local disk. See [`crate::open`].
pub struct FileRegistry {
    folder: PathBuf,
    /// The folder of this boot's leases, in `folder`.
    leases: String,
}

/// Contents of the file `topology`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTopology {
    revision: u64,
    topology: Topology,
}

/// Contents of the file of a lease.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLease {
    /// End by the clock of the boot, in milliseconds.
    end_ms: u64,
    presence: Presence,
}

impl FileRegistry {
    /// The registry in a folder, which is made if it is missing.
    ///
    /// # Errors
    /// The folder cannot be made or read, or is on a filesystem that machines share.
    pub fn open(folder: &Path) -> Result<Self, RegistryError> {
        folder::create(folder)?;
        check_filesystem(folder)?;
        let leases = format!("{LEASES}{}", folder::boot()?);
        Ok(Self { folder: folder.to_owned(), leases })
    }

    fn lock(&self, way: Use) -> Result<Held, RegistryError> {
        Held::lock(&self.folder, way, PATIENCE)
    }

    fn topology(&self, held: &Held) -> Result<Option<Versioned>, RegistryError> {
        let Some((place, text)) = held.read(TOPOLOGY)? else { return Ok(None) };
        let StoredTopology { revision, topology } = decode(&place, &text)?;
        let topology = checked(&place, topology)?;
        Ok(Some(Versioned { revision: Revision(revision), topology }))
    }

    fn revision(&self, held: &Held) -> Result<Option<Revision>, RegistryError> {
        Ok(self.topology(held)?.map(|stored| stored.revision))
    }

    /// The value of a lease that has not ended.
    fn lease(&self, held: &Held, node: NodeId) -> Result<Option<Presence>, RegistryError> {
        let stored = self.stored_lease(held, node)?;
        Ok(stored.and_then(|(end, presence)| (boot_time() <= end).then_some(presence)))
    }

    /// The end of a lease, and its value.
    fn stored_lease(
        &self,
        held: &Held,
        node: NodeId,
    ) -> Result<Option<(Duration, Presence)>, RegistryError> {
        let Some((place, text)) = held.read(&self.lease_name(node))? else { return Ok(None) };
        let StoredLease { end_ms, presence } = decode(&place, &text)?;
        Ok(Some((Duration::from_millis(end_ms), presence)))
    }

    /// Removes leases that ended long ago, of nodes that are gone.
    fn remove_old_leases(&self, held: &Held) -> Result<(), RegistryError> {
        for node in held.list(&self.leases)?.iter().filter_map(|name| name.parse().ok()) {
            if let Some((end, _)) = self.stored_lease(held, node)?
                && boot_time() > end + KEPT
            {
                held.remove(&self.lease_name(node))?;
            }
        }
        Ok(())
    }

    fn lease_name(&self, node: NodeId) -> String {
        format!("{}/{node}", self.leases)
    }

    fn nodes(&self, held: &Held) -> Result<BTreeMap<NodeId, Presence>, RegistryError> {
        let mut nodes = BTreeMap::new();
        // Other names are files that a killed process did not finish.
        for node in held.list(&self.leases)?.iter().filter_map(|name| name.parse().ok()) {
            nodes.extend(self.lease(held, node)?.map(|presence| (node, presence)));
        }
        Ok(nodes)
    }

    /// Makes the folder of this boot's leases, and removes those of other boots.
    fn prepare_leases(&self, held: &Held) -> Result<(), RegistryError> {
        if held.has(&self.leases) {
            return Ok(());
        }
        for name in held.list("")?.iter().filter(|name| name.starts_with(LEASES)) {
            held.remove_folder(name)?;
        }
        held.create_folder(&self.leases)
    }
}

impl Registry for FileRegistry {
    fn read(&self) -> Result<State, RegistryError> {
        let held = self.lock(Use::Reads)?;
        Ok(State { topology: self.topology(&held)?, nodes: self.nodes(&held)? })
    }

    fn wait(&self, seen: &State, timeout: Duration) -> Result<State, RegistryError> {
        let begin = Instant::now();
        loop {
            let state = self.read()?;
            let left = timeout.saturating_sub(begin.elapsed());
            if state.is_news(seen) || left.is_zero() {
                return Ok(state);
            }
            thread::sleep(POLL.min(left));
        }
    }

    fn swap(
        &self,
        expected: Option<Revision>,
        absent: Option<NodeId>,
        topology: &Topology,
    ) -> Result<Revision, SwapError> {
        topology.check().map_err(SwapError::Invalid)?;
        let writer = Writer::wait(&self.folder, WRITER).map_err(SwapError::Failed)?;
        let held = self.lock(Use::Reads).map_err(SwapError::Failed)?;
        if self.revision(&held).map_err(SwapError::Failed)? != expected {
            return Err(SwapError::Changed);
        }
        drop(held);
        let revision = expected.unwrap_or_default().0 + 1;
        let text = encode(&StoredTopology { revision, topology: topology.clone() });
        check_length(&text)?;
        writer.write(TOPOLOGY, &text).map_err(SwapError::Failed)?;
        let held = self.lock(Use::Writes).map_err(SwapError::Failed)?;
        if self.revision(&held).map_err(SwapError::Failed)? != expected {
            return Err(SwapError::Changed);
        }
        if let Some(node) = absent
            && self.lease(&held, node).map_err(SwapError::Failed)?.is_some()
        {
            return Err(SwapError::Present);
        }
        // A lease that cannot be removed does no harm.
        let _ = self.remove_old_leases(&held);
        match held.put_in_place(&writer, TOPOLOGY) {
            Ok(()) => Ok(Revision(revision)),
            Err(ReplaceError::Before(error)) => Err(SwapError::Failed(error)),
            Err(ReplaceError::Unknown(error)) => Err(SwapError::Unknown(error)),
        }
    }

    fn keep(&self, node: NodeId, presence: &Presence, time: Duration) -> Result<(), RegistryError> {
        // The node counts its lease from here too, and others wait for its end.
        let began = boot_time();
        let held = Held::lock(&self.folder, Use::Writes, PATIENCE.min(time / 3))?;
        let lease = self.lease(&held, node)?;
        if lease.is_some_and(|lease| lease.session != presence.session) {
            return Err(RegistryError::Taken);
        }
        self.prepare_leases(&held)?;
        // Rounded up, so that the lease is not shorter than promised.
        let end_ms = (began + time).as_millis() as u64 + 1;
        let text = encode(&StoredLease { end_ms, presence: presence.clone() });
        held.replace(&self.lease_name(node), &text)
    }

    fn leave(&self, node: NodeId, session: u64) -> Result<(), RegistryError> {
        let held = self.lock(Use::Writes)?;
        match self.lease(&held, node)? {
            Some(lease) if lease.session == session => held.remove(&self.lease_name(node)),
            _ => Ok(()),
        }
    }
}
