// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands of replication.

use freeport_kv_cluster::Address;
use freeport_kv_commands::arguments::{integer, is};
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;

use super::server::check_timeout;
use super::{Context, Flow, ServerRun};
use crate::persistence::Awaited;
use crate::replication::{Leader, LinkPhase, Replication, Request, Role};

const READY: Flags = Flags::NO_SCRIPT.with(Flags::LOADING).with(Flags::STALE);
const ADMIN: Flags = Flags::ADMIN.with(Flags::NO_SCRIPT);
const ROLE: Flags = READY.with(Flags::FAST);
const LINK: Flags = ADMIN.with(Flags::NO_MULTI);
const NO_FOLDER: Error = Error::fixed(
    "ERR replication needs a folder, because replicas get the server's log; start the server \
     with --dir",
);
const OTHER_PROTOCOL: Error = Error::fixed(
    "ERR replicas of Redis cannot follow this server; start a Freeport server as the replica",
);

/// Commands of replication.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("role", 1), Group::Server, ROLE, Keys::None, role),
    Command::new(("replicaof", 3), Group::Server, ADMIN.with(Flags::STALE), Keys::All, replica_of),
    Command::new(("slaveof", 3), Group::Server, ADMIN.with(Flags::STALE), Keys::All, replica_of),
    Command::new(("failover", -1), Group::Server, ADMIN.with(Flags::STALE), Keys::None, failover),
    Command::new(("sync", 1), Group::Server, LINK, Keys::None, other_protocol),
    Command::new(("psync", -3), Group::Server, LINK, Keys::None, other_protocol),
    Command::new(("replconf", -1), Group::Server, ADMIN.with(READY), Keys::None, other_protocol),
    Command::new(("kv.follow", -6), Group::Server, LINK, Keys::None, follow),
    Command::new(("wait", 3), Group::Generic, Flags::BLOCKING, Keys::None, wait),
];

fn replication<'a>(context: &'a Context<'_>) -> Result<&'a Replication, Error> {
    context.core.shared.replication.as_ref().ok_or(NO_FOLDER)
}

fn other_protocol(_context: &mut Context<'_>) -> Result<Flow, Error> {
    Err(OTHER_PROTOCOL)
}

/// `REPLICAOF host port`, and `REPLICAOF NO ONE`. All shards are here.
fn replica_of(context: &mut Context<'_>) -> Result<Flow, Error> {
    const IN_CLUSTER: Error = Error::fixed("ERR REPLICAOF not allowed in cluster mode.");
    const PORT: Error = Error::fixed("ERR Invalid master port");
    if context.core.shared.cluster.is_some() {
        return Err(IN_CLUSTER);
    }
    if !context.client.session.may_block {
        return Err(Error::fixed("ERR REPLICAOF is not allowed inside a transaction"));
    }
    let [_, host, port] = *context.arguments else { return Err(Error::SYNTAX) };
    if is(host, "no") && is(port, "one") {
        if context.core.shared.replication.is_some() {
            context.core.lead(0).map_err(|error| Error::new(format!("ERR {error}")))?;
        }
        context.reply().raw(shared::OK);
        return Ok(Flow::Continue);
    }
    replication(context)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let port = text(port).parse::<u16>().ok().filter(|port| *port > 0).ok_or(PORT)?;
    let address = Address { host: text(host), port, ..Address::default() };
    context.core.follow_primary(Some(Leader { node: None, address, term: 0 }));
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// A primary lists its replicas; a replica has its primary, and the state of its link.
fn role(context: &mut Context<'_>) -> Result<Flow, Error> {
    let server = context.core.shared.clone();
    let mut reply = context.reply();
    let Some(replication) = &server.replication else {
        reply.array(3);
        reply.bulk(b"master");
        reply.integer(0);
        reply.array(0);
        return Ok(Flow::Continue);
    };
    let position = replication.position().0 as i64;
    match replication.role() {
        Role::Primary { .. } => {
            let replicas = replication.replicas();
            reply.array(3);
            reply.bulk(b"master");
            reply.integer(position);
            reply.array(replicas.len());
            for replica in replicas {
                reply.array(3);
                reply.bulk(replica.host.as_bytes());
                reply.bulk(replica.port.to_string().as_bytes());
                reply.bulk(replica.acked.0.to_string().as_bytes());
            }
        }
        Role::Replica { leader, .. } => {
            let address = leader.map(|leader| leader.address).unwrap_or_default();
            let state = match replication.link().phase {
                LinkPhase::Down => "connect",
                LinkPhase::Syncing => "sync",
                LinkPhase::Online => "connected",
            };
            reply.array(5);
            reply.bulk(b"slave");
            reply.bulk(address.host.as_bytes());
            reply.integer(i64::from(address.port));
            reply.bulk(state.as_bytes());
            reply.integer(position);
        }
    }
    Ok(Flow::Continue)
}

fn failover(context: &mut Context<'_>) -> Result<Flow, Error> {
    let is_abort = matches!(context.arguments, [_, word] if is(word, "abort"));
    Err(Error::fixed(match is_abort {
        true => "ERR No failover in progress.",
        false => {
            "ERR FAILOVER is for clusters, where it is CLUSTER FAILOVER; here, send REPLICAOF NO \
             ONE to the replica"
        }
    }))
}

/// The connection leaves its worker: a thread sends the log there from now on.
fn follow(context: &mut Context<'_>) -> Result<Flow, Error> {
    const REPLICA: Error =
        Error::fixed("ERR this server is a replica itself; follow its primary instead");
    const UNSENT: Error =
        Error::fixed("ERR KV.FOLLOW needs the replies before it to be read; send it alone");
    if !context.client.session.may_block {
        return Err(Error::fixed("ERR KV.FOLLOW is not allowed here"));
    }
    // They may depend on changes that the log does not have yet.
    if !context.output.is_empty() {
        return Err(UNSENT);
    }
    let request = Request::parse(&context.arguments[1..])?;
    if replication(context)?.is_replica() {
        return Err(REPLICA);
    }
    context.client.following = Some(Box::new(request));
    Ok(Flow::Continue)
}

/// Replies with the number of replicas that have all changes until now, when they are as many as
/// the client wants, or its time is over.
fn wait(context: &mut Context<'_>) -> Result<Flow, Error> {
    const REPLICA: Error = Error::fixed(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if \
         a replica is configured to be writable (which is not the default) writes to replicas are \
         just local and are not propagated.",
    );
    let wanted = integer(context.arguments[1])?;
    let timeout_ms = check_timeout(context.arguments[2])?;
    let server = context.core.shared.clone();
    let Some(replication) = &server.replication else {
        context.reply().integer(0);
        return Ok(Flow::Continue);
    };
    if replication.is_replica() {
        return Err(REPLICA);
    }
    context.core.flush_log();
    let position = replication.position();
    let acked = replication.acked(position);
    if acked as i64 >= wanted || !context.client.session.may_block {
        context.reply().integer(acked as i64);
        return Ok(Flow::Continue);
    }
    let deadline_ms = (timeout_ms > 0).then(|| context.core.now_ms.saturating_add(timeout_ms));
    let replicas = wanted.unsigned_abs() as usize;
    context.core.await_log(context.client, Awaited::Replicas { position, deadline_ms, replicas });
    Ok(Flow::Continue)
}
