// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cases of servers as a table, with what is measured if nothing else is asked for.

use super::super::case::CaseName;
use super::super::load::contents::{Form, Workload};
use super::super::load::wire::Wire;
use super::deployment::Deployment;
use super::server::{Kind, Over, Sync};

/// A protocol of ours, with peers.
pub struct Case {
    pub name: CaseName,
    /// Name in results.
    pub title: &'static str,
    /// The form of requests to our server.
    pub form: Form,
    /// The transport that carries them.
    pub over: Over,
    /// What our server belongs to.
    pub deployment: Deployment,
    pub peers: &'static [Peer],
    /// Connections to our server, unless chosen.
    pub connections: usize,
    /// Whether servers and clients run under `freeport exec`.
    pub is_accelerated: bool,
    /// When servers sync the log of all changes that they keep; none: they keep none.
    pub sync: Option<Sync>,
    pub workloads: &'static [Workload],
    pub values: &'static [usize],
    pub pipelines: &'static [usize],
}

impl Case {
    /// Whether the memory per pair is measured: it depends on no protocol, that of accelerated
    /// servers is also that of their connections, and a replica has memory of its own.
    pub fn has_memory(&self) -> bool {
        let is_alone = self.deployment == Deployment::Alone;
        is_alone && !self.is_accelerated && matches!(self.form, Form::Single(_))
    }

    /// Whether a server that stores nothing shows the limit of the load generator.
    pub fn has_limit(&self) -> bool {
        !self.is_accelerated && self.over != Over::Udp
    }
}

/// Another server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Name in results.
    pub name: &'static str,
    pub kind: Kind,
    pub deployment: Deployment,
    /// The form of its requests, which TCP carries.
    pub form: Form,
    /// Outstanding requests of a connection, if not those of ours.
    pub pipeline: Option<usize>,
}

const REDIS: Peer = peer(Kind::Redis, Wire::Resp);
const MEMCACHED: Peer = peer(Kind::Memcached, Wire::Text);
const MEMCACHED_META: Peer = peer(Kind::Memcached, Wire::Meta);
/// The pipeline with which these servers are fastest.
const DEEP: Option<usize> = Some(64);
/// The peers of the batched protocol, at their best.
const FASTEST: [Peer; 2] =
    [Peer { pipeline: DEEP, ..REDIS }, Peer { pipeline: DEEP, ..MEMCACHED_META }];

const fn peer(kind: Kind, wire: Wire) -> Peer {
    let deployment = Deployment::Alone;
    Peer { name: kind.name(), kind, deployment, form: Form::Single(wire), pipeline: None }
}

/// Peers of a node of a cluster. All keep the same log.
const OF_NODE: [Peer; 3] = [
    Peer { name: "freeport, no cluster", ..peer(Kind::Ours, Wire::Resp) },
    Peer { name: "redis, cluster", deployment: Deployment::Clustered, ..REDIS },
    Peer { name: "redis, no cluster", ..REDIS },
];
const REPLICATED: Peer = Peer { deployment: Deployment::Replicated, ..REDIS };
/// Peers of a primary.
const OF_PRIMARY: [Peer; 3] = [
    Peer { name: "freeport, no replica", ..peer(Kind::Ours, Wire::Resp) },
    REPLICATED,
    Peer { name: "redis, no replica", ..REDIS },
];

/// Connections that keep a server of protocols of text busy.
pub const MANY: usize = 50;
/// Connections that keep a server busy with packets. The next packet of one lies in its socket or
/// ring while the server works on another.
const FEW: usize = 4;
/// The protocol of Redis beside redis.
const RESP: Case = Case {
    name: CaseName::Resp,
    title: "resp",
    form: Form::Single(Wire::Resp),
    over: Over::Tcp,
    deployment: Deployment::Alone,
    peers: &[REDIS],
    connections: MANY,
    is_accelerated: false,
    sync: None,
    workloads: &[Workload::A, Workload::C],
    values: &[2, 92],
    pipelines: &[1, 16, 64],
};
/// The same with a log of all changes.
const RESP_LOG: Case = Case { workloads: &[Workload::A], values: &[92], ..RESP };
/// A log is where nodes and replicas get changes from.
const LOGGED: Case = Case { sync: Some(Sync::EverySecond), pipelines: &[1, 16], ..RESP_LOG };
/// The batched protocol beside the fastest of the others.
const FABRIC: Case = Case {
    name: CaseName::Fabric,
    title: "fabric",
    form: Form::STREAM,
    over: Over::Fabric,
    peers: &FASTEST,
    connections: FEW,
    workloads: &[Workload::A, Workload::B, Workload::C],
    pipelines: &[16, 64, 256],
    ..RESP
};

/// All cases of servers.
pub const CASES: [Case; 12] = [
    RESP,
    Case {
        name: CaseName::RespExec,
        title: "resp-exec",
        is_accelerated: true,
        workloads: &[Workload::C],
        values: &[92],
        pipelines: &[1, 16],
        ..RESP
    },
    Case {
        name: CaseName::RespEverysec,
        title: "resp-everysec",
        sync: Some(Sync::EverySecond),
        ..RESP_LOG
    },
    Case { name: CaseName::RespAlways, title: "resp-always", sync: Some(Sync::Always), ..RESP_LOG },
    Case {
        name: CaseName::Cluster,
        title: "cluster",
        deployment: Deployment::Clustered,
        peers: &OF_NODE,
        workloads: &[Workload::A, Workload::C],
        ..LOGGED
    },
    Case {
        name: CaseName::Replica,
        title: "replica",
        deployment: Deployment::Replicated,
        peers: &OF_PRIMARY,
        ..LOGGED
    },
    Case {
        name: CaseName::ReplicaWait,
        title: "replica-wait",
        form: Form::Single(Wire::RespWait),
        deployment: Deployment::Replicated,
        peers: &[Peer { form: Form::Single(Wire::RespWait), ..REPLICATED }],
        workloads: &[Workload::Put],
        ..LOGGED
    },
    Case {
        name: CaseName::Memcached,
        title: "memcached",
        form: Form::Single(Wire::Text),
        peers: &[MEMCACHED],
        values: &[92],
        pipelines: &[1, 16],
        ..RESP
    },
    Case {
        name: CaseName::MemcachedMeta,
        title: "memcached-meta",
        form: Form::Single(Wire::Meta),
        peers: &[MEMCACHED_META],
        workloads: &[Workload::C],
        values: &[92],
        pipelines: &[1, 16],
        ..RESP
    },
    FABRIC,
    Case { name: CaseName::BatchTcp, title: "batch-tcp", over: Over::Tcp, ..FABRIC },
    Case {
        name: CaseName::BatchUdp,
        title: "batch-udp",
        form: Form::DATAGRAM,
        over: Over::Udp,
        ..FABRIC
    },
];
