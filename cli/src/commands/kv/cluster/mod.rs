// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster`: makes a cluster of servers, shows it, and changes it while it is used.
//!
//! Every change replaces the slot map in the registry, where the nodes see it. Only a fail-over
//! needs a certain node to answer. Primaries are asked how far their moves of slots are; one that
//! does not answer is left out.

mod create;
mod events;
mod failover;
mod members;
mod names;
mod progress;
mod session;
mod slots;
mod status;
mod warnings;
mod watch;

use clap::{Args, Subcommand};
use session::Session;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster --registry file:/run/kv create --nodes 6 \
                  --replicas 1\n  freeport kv cluster --registry etcd://10.0.0.1:2379/kv status\n  \
                  freeport kv cluster rebalance --wait\n\n\
                  Nodes and shards are named by the first digits of their id, at least 4. \
                  HOST:PORT also names a node. See docs/guide/kv-cluster.md.")]
pub struct Arguments {
    /// Where the nodes agree: file:FOLDER for one machine, or
    /// etcd://HOST:PORT[,HOST:PORT...]/PREFIX [default: FREEPORT_KV_REGISTRY of the environment]
    #[arg(long, value_name = "URL", global = true)]
    registry: Option<String>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Make a cluster of nodes that run and are in no shard
    Create(create::Arguments),
    /// Show shards, nodes, moves of slots, and problems
    Status(status::Arguments),
    /// Add nodes to a shard, or as new shards
    Add(members::AddArguments),
    /// Remove a node; the last one of a shard first gives its slots away
    Remove(members::RemoveArguments),
    /// Move slots from one shard to another while they are used, or cancel moves
    Move(slots::MoveArguments),
    /// Move slots until all shards have equally many
    Rebalance(slots::RebalanceArguments),
    /// Let a replica take the place of its primary; no acknowledged write is lost
    Failover(failover::Arguments),
    /// Remove a node that is gone for good
    Forget(members::ForgetArguments),
    /// Print changes as they happen
    Watch(watch::Arguments),
}

/// Runs the command.
///
/// # Errors
/// The reason why it cannot.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let session = Session::open(arguments.registry.as_deref())?;
    match &arguments.what {
        What::Create(arguments) => create::run(&session, arguments),
        What::Status(arguments) => status::run(&session, arguments),
        What::Add(arguments) => members::add(&session, arguments),
        What::Remove(arguments) => members::remove(&session, arguments),
        What::Move(arguments) => slots::run_move(&session, arguments),
        What::Rebalance(arguments) => slots::run_rebalance(&session, arguments),
        What::Failover(arguments) => failover::run(&session, arguments),
        What::Forget(arguments) => members::forget(&session, arguments),
        What::Watch(arguments) => watch::run(&session, arguments),
    }
}
