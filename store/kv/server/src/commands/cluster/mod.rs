// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `CLUSTER` and the commands of its clients. Replies are those of Redis Cluster. Nodes do not
//! gossip, so commands that tell a node of others are refused; each names what to use instead.

mod failure;
mod keys;
mod map;
mod nodes;
mod refused;
mod state;

use std::sync::Arc;

use freeport_kv_cluster::NodeId;
use freeport_kv_commands::arguments::is;
use freeport_kv_commands::{Command, Error, Flags, Group, Keys};
use freeport_kv_protocol::resp::reply::shared;

use super::{Container, Context, Flow, ServerRun, Subcommand};
use crate::cluster::{Cluster, View};

const ADMIN: Flags = Flags::ADMIN.with(Flags::STALE);
const READY: Flags = Flags::LOADING.with(Flags::STALE);
const QUICK: Flags = READY.with(Flags::FAST);
const DISABLED: Error = Error::fixed("ERR This instance has cluster support disabled");

/// `CLUSTER` needs all keys to count those of a slot.
const KEYS: Keys = Keys::AllFor(|arguments| {
    arguments.get(1).is_some_and(|word| is(word, "countkeysinslot") || is(word, "getkeysinslot"))
});

/// Commands of a cluster.
pub const COMMANDS: &[Command<ServerRun>] = &[
    Command::new(("cluster", -2), Group::Server, Flags::STALE, KEYS, cluster),
    Command::new(("readonly", 1), Group::Connection, QUICK, Keys::None, |context| {
        set_readonly(context, true)
    }),
    Command::new(("readwrite", 1), Group::Connection, QUICK, Keys::None, |context| {
        set_readonly(context, false)
    }),
    Command::new(("asking", 1), Group::Connection, Flags::FAST, Keys::None, asking),
];

/// Subcommands of `CLUSTER`.
pub const CLUSTER: Container = Container {
    name: "cluster",
    group: Group::Server,
    subcommands: &[
        Subcommand::new("addslots", -3, ADMIN, refused::slots),
        Subcommand::new("addslotsrange", -4, ADMIN, refused::slots),
        Subcommand::new("bumpepoch", 2, ADMIN, refused::epoch),
        Subcommand::new("count-failure-reports", 3, ADMIN, nodes::failure_reports),
        Subcommand::new("countkeysinslot", 3, Flags::STALE, keys::count),
        Subcommand::new("delslots", -3, ADMIN, refused::slots),
        Subcommand::new("delslotsrange", -4, ADMIN, refused::slots),
        Subcommand::new("failover", -2, ADMIN, failure::failover),
        Subcommand::new("flushslots", 2, ADMIN, refused::slots),
        Subcommand::new("forget", 3, ADMIN, refused::forget),
        Subcommand::new("getkeysinslot", 4, Flags::STALE, keys::list),
        Subcommand::new("info", 2, Flags::STALE, state::info),
        Subcommand::new("keyslot", 3, Flags::STALE, keys::slot),
        Subcommand::new("links", 2, Flags::STALE, nodes::links),
        Subcommand::new("meet", -4, ADMIN, refused::meet),
        Subcommand::new("myid", 2, Flags::STALE, state::my_id),
        Subcommand::new("myshardid", 2, Flags::STALE, state::my_shard_id),
        Subcommand::new("nodes", 2, Flags::STALE, nodes::list),
        Subcommand::new("replicas", 3, ADMIN, nodes::replicas),
        Subcommand::new("replicate", 3, ADMIN, refused::replicate),
        Subcommand::new("reset", -2, ADMIN.with(Flags::NO_SCRIPT), refused::reset),
        Subcommand::new("saveconfig", 2, ADMIN, state::save),
        Subcommand::new("set-config-epoch", 3, ADMIN, refused::epoch),
        Subcommand::new("setslot", -4, ADMIN, refused::slots),
        Subcommand::new("shards", 2, READY, map::shards),
        Subcommand::new("slaves", 3, ADMIN, nodes::replicas),
        Subcommand::new("slots", 2, READY, map::slots),
    ],
    help: &[
        "COUNTKEYSINSLOT <slot>",
        "    Return the number of keys in <slot>.",
        "FAILOVER [FORCE|TAKEOVER]",
        "    Promote current replica node to being a master.",
        "GETKEYSINSLOT <slot> <count>",
        "    Return key names stored by current node in a slot.",
        "INFO",
        "    Return information about the cluster.",
        "KEYSLOT <key>",
        "    Return the hash slot for <key>.",
        "LINKS",
        "    Return an empty array: nodes have no links but those to their primaries.",
        "MYID",
        "    Return the node id.",
        "MYSHARDID",
        "    Return the node's shard id.",
        "NODES",
        "    Return cluster configuration seen by node. Output format:",
        "    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
        "REPLICAS <node-id>",
        "    Return <node-id> replicas.",
        "SAVECONFIG",
        "    Do nothing: the registry has every change.",
        "SHARDS",
        "    Return information about slot range mappings and the nodes associated with them.",
        "SLOTS",
        "    Return information about slots range mappings. Each range is made of:",
        "    start, end, master and replicas IP addresses, ports and ids",
        "(all others)",
        "    Refused. Change the cluster by `freeport kv cluster`.",
    ],
};

fn cluster(context: &mut Context<'_>) -> Result<Flow, Error> {
    let subcommand = CLUSTER.find(context.arguments)?;
    node(context)?;
    (subcommand.run)(context)
}

fn set_readonly(context: &mut Context<'_>, is_readonly: bool) -> Result<Flow, Error> {
    node(context)?;
    context.client.is_readonly = is_readonly;
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// Slots move at one moment, so a client is never sent to a node for one command alone.
fn asking(context: &mut Context<'_>) -> Result<Flow, Error> {
    node(context)?;
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}

/// The node that the server is.
///
/// # Errors
/// It is in no cluster.
fn node<'a>(context: &'a Context<'_>) -> Result<&'a Cluster, Error> {
    context.core.shared.cluster.as_ref().ok_or(DISABLED)
}

/// The cluster, as the node has seen it.
fn view(context: &Context<'_>) -> Result<Arc<View>, Error> {
    context.core.routes.as_ref().map(|routes| routes.view.clone()).ok_or(DISABLED)
}

/// The node of a name that a client has sent.
fn named(word: &[u8]) -> Option<NodeId> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
