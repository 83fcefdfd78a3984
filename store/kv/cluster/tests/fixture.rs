// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registries for tests, and values to put into them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use freeport_kv_cluster::{
    Address, Member, MemoryRegistry, NodeId, Presence, Registry, Shard, ShardId, SlotSet, Topology,
    open,
};
use freeport_testbed::etcd::EtcdServer;
use freeport_testbed::{skip, wait_until};
use tempfile::TempDir;

use crate::patient::Patient;

/// An empty registry, and what keeps it alive.
pub struct Fixture {
    open: Box<dyn Fn() -> Arc<dyn Registry> + Send + Sync>,
    _folder: Option<TempDir>,
    _server: Option<EtcdServer>,
}

impl Fixture {
    pub fn memory() -> Option<Self> {
        let registry = MemoryRegistry::default();
        let open = Box::new(move || Arc::new(registry.client()) as Arc<dyn Registry>);
        Some(Self { open, _folder: None, _server: None })
    }

    pub fn file() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let url = file_url(folder.path());
        let open = Box::new(move || open(&url).expect("a folder"));
        Some(Self { open, _folder: Some(folder), _server: None })
    }

    /// `None` if etcd is not installed; the test then was skipped.
    #[track_caller]
    pub fn etcd() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let server = start_etcd(folder.path())?;
        let url = etcd_url(&server);
        let open = Box::new(move || open(&url).expect("a URL"));
        Some(Self { open, _folder: Some(folder), _server: Some(server) })
    }

    /// The registry as another process has it.
    pub fn open(&self) -> Patient {
        Patient((self.open)())
    }
}

/// The URL of a registry in a folder.
pub fn file_url(folder: &Path) -> String {
    format!("file:{}", folder.join("registry").display())
}

/// The URL of a registry in a single etcd.
pub fn etcd_url(server: &EtcdServer) -> String {
    format!("etcd://{}/test", server.address())
}

/// A single etcd that answers; skips the test if none is installed.
#[track_caller]
pub fn start_etcd(folder: &Path) -> Option<EtcdServer> {
    let Some(server) = EtcdServer::start(folder) else {
        skip("etcd is not installed");
        return None;
    };
    wait_for(&*open(&etcd_url(&server)).expect("a URL"));
    Some(server)
}

/// Waits until a registry answers.
pub fn wait_for(registry: &dyn Registry) {
    wait_until("the registry answers", || registry.read().is_ok());
}

/// A value of a lease.
pub fn presence(session: u64, position: u64) -> Presence {
    let address = Address { host: "host".to_owned(), port: 7000, ..Address::default() };
    Presence {
        session,
        address,
        position,
        term: 1,
        is_copying: false,
        sealed: None,
        wants_to_lead: false,
    }
}

/// A slot map of one shard and node.
pub fn topology(epoch: u64) -> Topology {
    let primary = NodeId::random();
    let member = Member { id: primary, address: Address::default() };
    let shard = Shard {
        id: ShardId::random(),
        slots: SlotSet::all(),
        primary,
        term: 1,
        since: 0,
        members: vec![member],
    };
    Topology { epoch, shards: vec![shard], moves: vec![] }
}

/// A lease that does not end during a test.
pub const LONG: Duration = Duration::from_secs(1000);
