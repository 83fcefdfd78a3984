// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clusters of key-value servers.
//!
//! The slot map ([`Topology`]) and a lease for each node ([`Presence`]) are in a [`Registry`],
//! which decides about every change by compare-and-swap: etcd, or a file of one machine. There is
//! no other consensus, and nodes do not gossip.

#![forbid(unsafe_code)]

mod address;
mod clock;
pub mod election;
mod etcd;
mod file;
mod id;
mod memory;
pub mod planning;
mod registry;
mod slot_set;
mod stored;
mod topology;
mod url;

pub use address::Address;
pub use clock::boot_time;
pub use etcd::{EtcdOptions, EtcdRegistry, read_etcd_answer};
pub use file::FileRegistry;
pub use id::{NodeId, ParseIdError, ShardId};
pub use memory::{Fault, MemoryClient, MemoryRegistry};
pub use registry::{Presence, Registry, RegistryError, Revision, State, SwapError, Versioned};
pub use slot_set::{ParseSlotsError, SlotSet};
pub use topology::{Member, Move, Shard, Topology};
pub use url::{OpenError, ParseUrlError, RegistryUrl, open};
