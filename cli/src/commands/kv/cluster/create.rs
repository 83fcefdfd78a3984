// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster create`: the first slot map.

use super::names::{self, counted, short};
use super::session::{Session, is_settled, late, stored};
use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use freeport_kv_cluster::{Member, State, Topology, planning};
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster --registry file:/run/kv create --nodes 6 \
                  --replicas 1\n  \
                  freeport kv cluster create 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379\n\n\
                  Nodes of one host are put into different shards as far as possible. To make a \
                  cluster of a server that has keys, create it of this node alone; then add nodes \
                  and rebalance.")]
#[command(group = ArgGroup::new("waits").multiple(true).args(["count", "wait"]))]
pub struct Arguments {
    /// Nodes [default: all that run and are in no shard]
    #[arg(value_name = "NODE", conflicts_with = "count")]
    nodes: Vec<String>,
    /// Wait until this many nodes run, and take them
    #[arg(long = "nodes", value_name = "COUNT", id = "count")]
    count: Option<usize>,
    /// Number of replicas of each shard; nodes that are left over become further replicas
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    replicas: usize,
    /// Accept nodes that have stored something; their keys may be lost
    #[arg(long)]
    discard: bool,
    /// Wait until the nodes serve their shards, with progress on standard error
    #[arg(long)]
    wait: bool,
    /// Longest time to wait, in seconds; what was begun continues after that
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, requires = "waits")]
    timeout: u64,
    /// Print the shards as a JSON object
    #[arg(long)]
    json: bool,
}

/// Makes the cluster, and prints its shards.
///
/// # Errors
/// There is a cluster, or there are not enough nodes, or they have keys.
pub fn run(session: &Session, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    let limit = Duration::from_secs(arguments.timeout);
    if let Some(count) = arguments.count {
        wait_for_nodes(session, count, limit)?;
    }
    let topology = session.change(|state| plan(state, arguments))?;
    if arguments.wait {
        let done = session.wait_for(limit.saturating_sub(begin.elapsed()), |state, line, _| {
            line.tell("nodes begin to serve their shards");
            Ok(is_settled(state).then_some(()))
        })?;
        done.with_context(|| late(arguments.timeout))?;
    }
    match arguments.json {
        true => println!("{}", object(&topology)),
        false => print!("{}", text(&topology)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until the number of nodes with a lease is `count`, or larger.
fn wait_for_nodes(session: &Session, count: usize, limit: Duration) -> anyhow::Result<()> {
    let mut found = 0;
    let done = session.wait_for(limit, |state, line, _| {
        // No more nodes are of use then.
        check_absent(state)?;
        found = state.nodes.len();
        line.tell(&format!("{found} of {count} nodes have a lease"));
        Ok((found >= count).then_some(()))
    })?;
    done.with_context(|| {
        format!(
            "{found} of {count} nodes have a lease after {} s; the logs of the others say why they \
             have none",
            limit.as_secs()
        )
    })
}

fn check_absent(state: &State) -> anyhow::Result<()> {
    if stored(state).is_ok() {
        bail!("there is a cluster already; `freeport kv cluster add` adds nodes to it");
    }
    Ok(())
}

fn plan(state: &State, arguments: &Arguments) -> anyhow::Result<Topology> {
    check_absent(state)?;
    let nodes: Vec<Member> = if arguments.nodes.is_empty() {
        let nodes = state.nodes.iter();
        nodes.map(|(id, it)| Member { id: *id, address: it.address.clone() }).collect()
    } else {
        let named = arguments.nodes.iter().map(|text| names::node(state, text));
        named.collect::<anyhow::Result<_>>()?
    };
    if let Some(count) = arguments.count.filter(|count| *count != nodes.len()) {
        bail!("{} nodes have a lease, not {count}; name those of the cluster", nodes.len());
    }
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
    let nodes: usize = topology.shards.iter().map(|shard| shard.members.len()).sum();
    let (nodes, shards_made) = (counted(nodes, "node"), counted(topology.shards.len(), "shard"));
    shards.chain([format!("{nodes}, {shards_made}\n")]).collect()
}

fn object(topology: &Topology) -> serde_json::Value {
    json!({ "event": "created", "shards": topology.shards })
}
