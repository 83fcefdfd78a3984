// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cases of servers as a table, with what is measured if nothing else is asked for.

use super::super::case::CaseName;
use super::super::load::contents::{Form, Workload};
use super::super::load::wire::Wire;
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
    /// Whether the memory per pair is measured: it depends on no protocol, and that of accelerated
    /// servers is also that of their connections.
    pub fn has_memory(&self) -> bool {
        !self.is_accelerated && matches!(self.form, Form::Single(_))
    }

    /// Whether a server that stores nothing shows the limit of the load generator.
    pub fn has_limit(&self) -> bool {
        !self.is_accelerated && self.over != Over::Udp
    }
}

/// Another server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub kind: Kind,
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
    Peer { kind, form: Form::Single(wire), pipeline: None }
}

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
pub const CASES: [Case; 9] = [
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
