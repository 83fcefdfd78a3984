// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster add`, `remove` and `forget`: nodes come and go.

use super::create::check_empty;
use super::names::{self, short};
use super::progress::MoveProgress;
use super::session::{Session, Waiting, is_settled, stored};
use crate::commands::kv::login::Login;
use anyhow::bail;
use clap::{ArgGroup, Args};
use freeport_kv_cluster::planning::{self, PlanError};
use freeport_kv_cluster::{Member, ShardId, State, Topology};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster add 10.0.0.7:6379 --shard 3fa2\n  \
                  freeport kv cluster add 10.0.0.8:6379 10.0.0.9:6379 --new-shard --wait\n\n\
                  A new shard has no slots until `freeport kv cluster rebalance` or `move`.")]
#[command(group = ArgGroup::new("place").required(true).args(["shard", "new_shard"]))]
pub struct AddArguments {
    /// Nodes that run and are in no shard
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<String>,
    /// Shard that gets them as replicas
    #[arg(long, value_name = "SHARD")]
    shard: Option<String>,
    /// Make a new shard of each node
    #[arg(long)]
    new_shard: bool,
    /// Accept nodes that have stored something; their keys are lost
    #[arg(long)]
    discard: bool,
    #[command(flatten)]
    waiting: Waiting,
}

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster remove 10.0.0.7:6379\n  \
                  freeport kv cluster remove 10.0.0.8:6379 --wait\n\n\
                  The only node of a shard first gives its slots to the other shards. With --wait, \
                  it is removed after that; without, run the command again. The node keeps its \
                  folder, and serves no keys any more.")]
pub struct RemoveArguments {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    waiting: Waiting,
}

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster forget 9b1c\n  \
                  freeport kv cluster forget 10.0.0.8:6379 --lose-keys\n\n\
                  A node that has a lease is not forgotten. If the last node of a shard is gone, \
                  its keys are lost, and the other shards get its slots: start it again with its \
                  folder if you can.")]
pub struct ForgetArguments {
    /// The node
    #[arg(value_name = "NODE")]
    node: String,
    /// Give up the keys of its shard, if it is the only node
    #[arg(long)]
    lose_keys: bool,
}

/// Adds nodes.
///
/// # Errors
/// A node is not there, is in a shard, or has keys.
pub fn add(session: &Session, arguments: &AddArguments) -> anyhow::Result<ExitCode> {
    let topology = session.change(|state| plan_add(state, arguments))?;
    if arguments.waiting.wait {
        session.wait(&arguments.waiting, |state, line, _| {
            line.tell("new nodes copy what their shards have");
            Ok(is_settled(state).then_some(()))
        })?;
    }
    let state = session.state()?;
    for text in &arguments.nodes {
        let node = names::node(&state, text)?;
        let Some(shard) = topology.shard_of(node.id) else { continue };
        let role = if shard.primary == node.id { "primary" } else { "replica" };
        println!("{} is a {role} of shard {}", node.address, short(shard.id));
    }
    if arguments.new_shard {
        eprintln!("the new shards have no slots yet; run `freeport kv cluster rebalance`");
    }
    Ok(ExitCode::SUCCESS)
}

fn plan_add(state: &State, arguments: &AddArguments) -> anyhow::Result<Topology> {
    let stored = &stored(state)?.topology;
    let mut topology = stored.clone();
    for text in &arguments.nodes {
        let node = names::node(state, text)?;
        if !state.nodes.contains_key(&node.id) {
            bail!("node {} at {} does not run; start it first", short(node.id), node.address);
        }
        if !arguments.discard {
            check_empty(state, &node)?;
        }
        topology = match &arguments.shard {
            Some(shard) => {
                let shard = names::shard(state, stored, shard)?.id;
                planning::add_replica(&topology, shard, node)?
            }
            None => planning::add_shard(&topology, node)?,
        };
    }
    Ok(topology)
}

/// Removes a node, or begins to.
///
/// # Errors
/// It is in no shard, is the primary of replicas, or has the only shard.
pub fn remove(session: &Session, arguments: &RemoveArguments) -> anyhow::Result<ExitCode> {
    let state = session.state()?;
    let node = names::node(&state, &arguments.node)?;
    let refusal = planning::remove(&stored(&state)?.topology, node.id).err();
    if let Some(PlanError::HasSlots { shard, .. } | PlanError::IsMoving(shard)) = refusal {
        begin_to_empty(session, shard)?;
        if !arguments.waiting.wait {
            eprintln!("run the command again when `freeport kv cluster status` shows none of them");
            return Ok(ExitCode::SUCCESS);
        }
        wait_until_empty(session, arguments, shard)?;
    }
    session
        .change(|state| planning::remove(&stored(state)?.topology, node.id).map_err(with_advice))?;
    report_removed(&node);
    Ok(ExitCode::SUCCESS)
}

/// Begins to move the slots of a shard that are not being moved yet.
fn begin_to_empty(session: &Session, id: ShardId) -> anyhow::Result<()> {
    let topology = session.change(|state| {
        let topology = &stored(state)?.topology;
        Ok(planning::give_away(topology, id)?)
    })?;
    let moves = topology.moves.iter().filter(|one| one.from == id).count();
    println!("shard {} gives its slots away in {moves} moves", short(id));
    Ok(())
}

fn wait_until_empty(
    session: &Session,
    arguments: &RemoveArguments,
    id: ShardId,
) -> anyhow::Result<()> {
    session.wait(&arguments.waiting, |state, line, left| {
        let topology = &stored(state)?.topology;
        let is_moving = topology.moves.iter().any(|one| one.from == id || one.to == id);
        let is_empty = topology.shard(id).is_none_or(|shard| shard.slots.is_empty());
        if !is_moving && !is_empty {
            bail!("the moves were cancelled; shard {} still has slots", short(id));
        }
        if !is_moving {
            return Ok(Some(()));
        }
        MoveProgress::show(topology, &arguments.login, left, line);
        Ok(None)
    })
}

/// Removes a node that has no lease.
///
/// # Errors
/// It has one, or keys would be lost without consent.
pub fn forget(session: &Session, arguments: &ForgetArguments) -> anyhow::Result<ExitCode> {
    let node = names::node(&session.state()?, &arguments.node)?;
    session.change_without(Some(node.id), |state| {
        let topology = &stored(state)?.topology;
        let shard = topology.shard_of(node.id);
        let is_last =
            shard.is_some_and(|shard| shard.members.len() == 1 && !shard.slots.is_empty());
        if is_last && !arguments.lose_keys {
            bail!(
                "node {} has the only copy of its shard; start it again with its folder, or give \
                 up its keys with --lose-keys",
                short(node.id)
            );
        }
        planning::forget(topology, node.id).map_err(with_advice)
    })?;
    report_removed(&node);
    Ok(ExitCode::SUCCESS)
}

fn report_removed(node: &Member) {
    println!("node {} at {} is no longer in the cluster", short(node.id), node.address);
}

fn with_advice(error: PlanError) -> anyhow::Error {
    match error {
        PlanError::IsPrimary { shard, .. } => {
            let advice = format!("`freeport kv cluster failover {}` does that", short(shard));
            anyhow::anyhow!(
                "{error}: {advice}, and a replica does it by itself when the primary \
                             has no lease"
            )
        }
        error => error.into(),
    }
}
