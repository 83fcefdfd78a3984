// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The place where the nodes of a cluster agree: what each kind of it promises.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::id::NodeId;
use crate::topology::Topology;

/// A node that is there: the value of its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Presence {
    /// A random number of the process, so that two of them cannot be the same node.
    pub session: u64,
    /// Its addresses.
    pub address: Address,
    /// Bytes of the log that the node has (a replica: of its primary's log).
    pub position: u64,
    /// The term whose changes are the last ones of that log; 0 if it never had complete data.
    pub term: u64,
    /// It is a replica that gets a whole copy, so it cannot be elected before it has that, or is
    /// started again with its old data. Position and term are those of the old data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_copying: bool,
    /// It is a replica that takes no more changes of this term, because it saw the primary without
    /// a lease. Then `position` is final for the term, and a new primary can be elected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<u64>,
    /// It is a replica that an operator wants to be the primary: the primary hands over to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_to_lead: bool,
}

/// Number of a stored topology. A later one is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// A topology that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// Its number.
    pub revision: Revision,
    /// The topology.
    pub topology: Topology,
}

/// Contents of a registry at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The slot map; none before the cluster was created.
    pub topology: Option<Versioned>,
    /// Nodes that have a lease.
    pub nodes: BTreeMap<NodeId, Presence>,
}

impl State {
    /// Differs from an earlier state in more than positions.
    pub fn is_news(&self, seen: &Self) -> bool {
        let revision = |state: &Self| state.topology.as_ref().map(|stored| stored.revision);
        let are_same = |(mine, its): (&Presence, &Presence)| {
            *mine == Presence { position: mine.position, ..its.clone() }
        };
        revision(self) != revision(seen)
            || !self.nodes.keys().eq(seen.nodes.keys())
            || !self.nodes.values().zip(seen.nodes.values()).all(are_same)
    }
}

/// The place where the nodes of a cluster agree.
///
/// # Promises
/// - All calls of all nodes take effect one after the other.
/// - A lease that [`Registry::keep`] began or prolonged lasts for at least its time from the begin
///   of that call, by a clock that does not stop while a machine sleeps.
/// - A lease ends by itself some time after that, if nobody prolongs it.
pub trait Registry: Send + Sync {
    /// The present contents.
    ///
    /// # Errors
    /// The registry cannot be reached, or has contents that are none of this version.
    fn read(&self) -> Result<State, RegistryError>;

    /// Waits until the contents differ from these, but not longer than a time; returns the present
    /// ones. Positions alone are no difference.
    ///
    /// # Errors
    /// As [`Registry::read`].
    fn wait(&self, seen: &State, timeout: Duration) -> Result<State, RegistryError>;

    /// Replaces the topology, if the stored one has that revision (none: if there is none), and if
    /// the node `absent` has no lease. It counts up no epoch. Returns the new revision.
    ///
    /// # Errors
    /// See [`SwapError`].
    fn swap(
        &self,
        expected: Option<Revision>,
        absent: Option<NodeId>,
        topology: &Topology,
    ) -> Result<Revision, SwapError>;

    /// Begins or prolongs the lease of a node, and replaces its value.
    ///
    /// # Errors
    /// As [`Registry::read`]; or another session has the lease of this node
    /// ([`RegistryError::Taken`]).
    fn keep(&self, node: NodeId, presence: &Presence, time: Duration) -> Result<(), RegistryError>;

    /// Ends the lease of a node, if this session has it.
    ///
    /// # Errors
    /// As [`Registry::read`].
    fn leave(&self, node: NodeId, session: u64) -> Result<(), RegistryError>;
}

/// A registry does not answer as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// It cannot be reached, or has failed: where and why.
    Unavailable(String),
    /// It has contents that cannot be read: where and why.
    Contents(String),
    /// Another process has the lease of this node.
    Taken,
}

/// A topology was not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapError {
    /// The stored topology has another revision.
    Changed,
    /// The node that has to be absent has a lease.
    Present,
    /// The topology is wrong: why.
    Invalid(String),
    /// The registry has failed before it could decide.
    Failed(RegistryError),
    /// The answer got lost: the topology may have been replaced.
    Unknown(RegistryError),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(reason) => {
                write!(formatter, "the registry does not answer: {reason}")
            }
            Self::Contents(reason) => {
                write!(formatter, "the contents of the registry cannot be read: {reason}")
            }
            Self::Taken => formatter
                .write_str("another process is this node; stop it, or start with another folder"),
        }
    }
}

impl std::error::Error for RegistryError {}

impl fmt::Display for SwapError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => formatter.write_str("the cluster has changed meanwhile"),
            Self::Present => formatter.write_str("the node has a lease"),
            Self::Invalid(reason) => write!(formatter, "the new slot map is wrong: {reason}"),
            Self::Failed(error) => fmt::Display::fmt(error, formatter),
            Self::Unknown(error) => write!(formatter, "it is not known if it happened: {error}"),
        }
    }
}

impl std::error::Error for SwapError {}
