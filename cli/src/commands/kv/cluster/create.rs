// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster create`: the first slot map.

use super::names::{self, short};
use super::session::{Session, Waiting, is_settled, stored};
use anyhow::bail;
use clap::Args;
use freeport_kv_cluster::{Member, State, Topology, planning};
use serde_json::json;
use std::process::ExitCode;

#[derive(Args)]
#[command(
    after_help = "Example:\n  freeport kv cluster --registry file:/run/kv create --replicas 1\n  \
                  freeport kv cluster create 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379\n\n\
                  Nodes of one host are put into different shards as far as possible. To make a \
                  cluster of a server that has keys, create it of this node alone; then add nodes \
                  and rebalance."
)]
pub struct Arguments {
    /// Nodes [default: all that run and are in no shard]
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Number of replicas of each shard; nodes that are left over become further replicas
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    replicas: usize,
    /// Accept nodes that have stored something; their keys may be lost
    #[arg(long)]
    discard: bool,
    #[command(flatten)]
    waiting: Waiting,
    /// Print the shards as a JSON object
    #[arg(long)]
    json: bool,
}

/// Makes the cluster, and prints its shards.
///
/// # Errors
/// There is a cluster, or there are not enough nodes, or they have keys.
pub fn run(session: &Session, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let topology = session.change(|state| plan(state, arguments))?;
    if arguments.waiting.wait {
        session.wait(&arguments.waiting, |state, line| {
            line.tell("nodes begin to serve their shards");
            Ok(is_settled(state).then_some(()))
        })?;
    }
    match arguments.json {
        true => println!("{}", object(&topology)),
        false => print!("{}", text(&topology)),
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(state: &State, arguments: &Arguments) -> anyhow::Result<Topology> {
    if stored(state).is_ok() {
        bail!("there is a cluster already; `freeport kv cluster add` adds nodes to it");
    }
    let nodes: Vec<Member> = if arguments.nodes.is_empty() {
        let nodes = state.nodes.iter();
        nodes.map(|(id, it)| Member { id: *id, address: it.address.clone() }).collect()
    } else {
        let named = arguments.nodes.iter().map(|text| names::node(state, text));
        named.collect::<anyhow::Result<_>>()?
    };
    let topology = planning::create(&nodes, arguments.replicas)?;
    let is_alone = nodes.len() == 1;
    if !is_alone && !arguments.discard {
        nodes.iter().try_for_each(|node| check_empty(state, node))?;
    }
    topology.check().map_err(anyhow::Error::msg)?;
    Ok(topology)
}

/// Refuses a node that has stored something.
///
/// # Errors
/// The advice for such a node.
pub fn check_empty(state: &State, node: &Member) -> anyhow::Result<()> {
    match state.nodes.get(&node.id).map_or(0, |presence| presence.position) {
        0 => Ok(()),
        bytes => bail!(
            "node {} at {} has a log of {bytes} bytes, and would lose keys; start it with an empty \
             folder, or accept that with --discard",
            short(node.id),
            node.address
        ),
    }
}

fn text(topology: &Topology) -> String {
    let shards = topology.shards.iter().map(|shard| {
        let replicas: String =
            shard.replicas().map(|node| format!(", replica {}", node.address)).collect();
        let primary = &shard.primary().address;
        format!("shard {}: slots {}: primary {primary}{replicas}\n", short(shard.id), shard.slots)
    });
    shards.collect()
}

fn object(topology: &Topology) -> serde_json::Value {
    json!({ "event": "created", "shards": topology.shards })
}
