// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster status`: shards, nodes, moves of slots, and problems.

use super::names::short;
use super::progress::{MoveProgress, REPLYING};
use super::session::{Session, is_complete, stored};
use super::warnings::{Warning, warnings};
use crate::commands::kv::login::Login;
use crate::table::Table;
use clap::Args;
use freeport_kv_cluster::{Member, Move, NodeId, Presence, Shard, State, Versioned};
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster --registry file:/run/kv status\n  \
                  freeport kv cluster status --json\n\n\
                  The lag is in bytes of the log that the node lacks; nodes publish their \
                  positions when they renew their leases. The exit status is 1 if clients get \
                  errors for some slots.")]
pub struct Arguments {
    #[command(flatten)]
    login: Login,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the state of the cluster.
///
/// # Errors
/// The registry does not answer, or there is no cluster.
pub fn run(session: &Session, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let state = session.state()?;
    if state.topology.is_none() && !arguments.json {
        print_free(&state);
    }
    let stored = stored(&state)?;
    let progress = MoveProgress::of(&stored.topology, &arguments.login, REPLYING);
    let problems = warnings(&state, &stored.topology);
    match arguments.json {
        true => println!("{}", object(&state, stored, &progress, &problems)),
        false => print_text(&state, stored, &progress, &problems),
    }
    let is_served = !problems.iter().any(|problem| problem.is_outage);
    Ok(if is_served { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_text(state: &State, stored: &Versioned, progress: &MoveProgress, problems: &[Warning]) {
    let topology = &stored.topology;
    let (epoch, shards) = (topology.epoch, topology.shards.len());
    println!("epoch {epoch}; shards: {shards}; nodes with a lease: {}", state.nodes.len());
    let heading = ["shard", "slots", "role", "node", "address", "lease", "position", "lag"];
    let mut table = Table::new(heading, usize::MAX);
    for shard in &topology.shards {
        for (number, member) in ordered(shard).into_iter().enumerate() {
            let (id, slots) = match number {
                0 => (short(shard.id), slots(shard)),
                _ => (String::new(), String::new()),
            };
            let presence = state.nodes.get(&member.id);
            let [lease, position] = cells(presence);
            let lag = lag(state, shard, member.id);
            table.add([
                id,
                slots,
                role(shard, member.id).to_owned(),
                short(member.id),
                member.address.to_string(),
                lease,
                position,
                lag.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
            ]);
        }
    }
    print!("{}", table.text("  ", [false; 8]));
    for one in &topology.moves {
        println!("{}", moving(one, progress));
    }
    print_free(state);
    for Warning { text, .. } in problems {
        println!("warning: {text}");
    }
}

/// Nodes that are in no shard.
fn print_free(state: &State) {
    for (id, presence) in free(state) {
        println!("node {} at {} is in no shard", short(id), presence.address);
    }
}

fn free(state: &State) -> impl Iterator<Item = (&NodeId, &Presence)> {
    let is_member = |node: &NodeId| {
        state.topology.as_ref().is_some_and(|it| it.topology.shard_of(*node).is_some())
    };
    state.nodes.iter().filter(move |(id, _)| !is_member(id))
}

/// The primary before its replicas.
fn ordered(shard: &Shard) -> Vec<&Member> {
    [shard.primary()].into_iter().chain(shard.replicas()).collect()
}

fn role(shard: &Shard, node: NodeId) -> &'static str {
    if shard.primary == node { "primary" } else { "replica" }
}

/// Slots in few letters; many ranges are counted.
fn slots(shard: &Shard) -> String {
    const SHOWN_RANGES: usize = 3;

    let ranges = shard.slots.ranges().len();
    match shard.slots.len() {
        0 => "none".to_owned(),
        count if ranges <= SHOWN_RANGES => format!("{} ({count})", shard.slots),
        count => format!("{count} in {ranges} ranges"),
    }
}

fn cells(presence: Option<&Presence>) -> [String; 2] {
    match presence {
        None => ["none".to_owned(), "-".to_owned()],
        Some(presence) => {
            let lease = if presence.sealed.is_some() { "sealed" } else { "yes" };
            [lease.to_owned(), presence.position.to_string()]
        }
    }
}

/// Bytes of the log that a replica lacks, as far as the registry knows.
fn lag(state: &State, shard: &Shard, node: NodeId) -> Option<u64> {
    let position = |node| state.nodes.get(&node).map(|presence| presence.position);
    let is_replica = shard.primary != node;
    let (primary, own) = (position(shard.primary)?, position(node)?);
    is_replica.then(|| primary.saturating_sub(own))
}

fn moving(one: &Move, progress: &MoveProgress) -> String {
    let Move { from, to, slots } = one;
    let text = format!("moving slots {slots} from shard {} to {}", short(from), short(to));
    match progress.report(slots) {
        None => text,
        Some(report) => {
            let error = match report.error.as_str() {
                "" => String::new(),
                error => format!("; last failure: {error}"),
            };
            let (state, bytes, total) = (&report.state, report.bytes, report.total_bytes);
            format!("{text}: {state}; {bytes} of {total} bytes sent{error}")
        }
    }
}

fn object(
    state: &State,
    stored: &Versioned,
    progress: &MoveProgress,
    problems: &[Warning],
) -> Value {
    let topology = &stored.topology;
    let node = |shard: &Shard, member: &Member| {
        let presence = state.nodes.get(&member.id);
        json!({
            "id": member.id,
            "role": role(shard, member.id),
            "address": member.address,
            "has_lease": presence.is_some(),
            "is_complete": presence.is_some_and(|presence| is_complete(shard, presence)),
            "sealed_term": presence.and_then(|presence| presence.sealed),
            "term": presence.map(|presence| presence.term),
            "position": presence.map(|presence| presence.position),
            "lag_bytes": lag(state, shard, member.id),
        })
    };
    let shard = |shard: &Shard| {
        let nodes: Vec<Value> =
            ordered(shard).into_iter().map(|member| node(shard, member)).collect();
        json!({ "id": shard.id, "slots": shard.slots, "term": shard.term, "nodes": nodes })
    };
    let moving = |one: &Move| {
        let Move { from, to, slots } = one;
        json!({ "from": from, "to": to, "slots": slots, "progress": progress.report(slots) })
    };
    let free: Vec<Value> = free(state)
        .map(|(id, presence)| json!({ "id": id, "address": presence.address }))
        .collect();
    json!({
        "epoch": topology.epoch,
        "revision": stored.revision.0,
        "is_served": !problems.iter().any(|problem| problem.is_outage),
        "shards": topology.shards.iter().map(shard).collect::<Vec<_>>(),
        "moves": topology.moves.iter().map(moving).collect::<Vec<_>>(),
        "free_nodes": free,
        "warnings": problems.iter().map(|problem| &problem.text).collect::<Vec<_>>(),
    })
}
