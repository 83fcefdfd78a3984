// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv cluster failover`: a replica takes the place of its primary while both run.

use super::names::{self, short};
use super::session::{Session, is_complete, stored};
use crate::commands::kv::login::Login;
use crate::progress::ProgressLine;
use anyhow::{Context, bail};
use clap::Args;
use freeport_kv_cluster::{Member, Shard, State, Topology};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest time to wait for news before the time-out is looked at again.
const TURN: Duration = Duration::from_millis(500);

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv cluster failover 3fa2\n  \
                  freeport kv cluster failover 10.0.0.7:6379\n\n\
                  Clients wait for a moment, and then are sent to the new primary. When a primary \
                  is gone, a replica takes its place without this command.")]
pub struct Arguments {
    /// Replica that becomes the primary; or a shard, whose most complete replica does
    #[arg(value_name = "SHARD|NODE")]
    name: String,
    #[command(flatten)]
    login: Login,
    /// Longest time to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
}

/// Asks the replica to take over, and waits until it is the primary.
///
/// # Errors
/// There is no such replica, it refuses, or nothing happens for the time-out.
pub fn run(session: &Session, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut state = session.state()?;
    let topology = &stored(&state)?.topology;
    let replica = replica(&state, topology, &arguments.name)?;
    let (begin, limit) = (Instant::now(), Duration::from_secs(arguments.timeout));
    let mut connection = arguments.login.connect(&replica.address, limit)?;
    let refused = || format!("{} does not take over", replica.address);
    connection.run(&["CLUSTER", "FAILOVER"]).with_context(refused)?;
    let mut line = ProgressLine::default();
    while !is_primary(&state, &replica) {
        let Some(left) = limit.checked_sub(begin.elapsed()) else {
            bail!(
                "{} is no primary after {} s; its log says why, and `freeport kv cluster status` \
                 shows the shard",
                replica.address,
                arguments.timeout
            );
        };
        line.tell("the replica catches up");
        state = session.next(&state, left.min(TURN))?;
    }
    println!("{} is the primary", replica.address);
    Ok(ExitCode::SUCCESS)
}

fn is_primary(state: &State, node: &Member) -> bool {
    let shard = state.topology.as_ref().and_then(|stored| stored.topology.shard_of(node.id));
    shard.is_some_and(|shard| shard.primary == node.id)
}

/// The replica with this name, or the most complete one of the shard with it.
fn replica(state: &State, topology: &Topology, name: &str) -> anyhow::Result<Member> {
    if let Ok(node) = names::node(state, name) {
        let Some(shard) = topology.shard_of(node.id) else {
            bail!("node {} is in no shard", short(node.id));
        };
        if shard.primary == node.id {
            bail!("{} is the primary of shard {} already", node.address, short(shard.id));
        }
        return Ok(node);
    }
    let shard = names::shard(state, topology, name)?;
    most_complete(state, shard).with_context(|| {
        format!(
            "shard {} has no replica with a lease and its primary's changes; see `freeport kv \
             cluster status`",
            short(shard.id)
        )
    })
}

fn most_complete(state: &State, shard: &Shard) -> Option<Member> {
    let position = |node: &&Member| {
        let presence = state.nodes.get(&node.id).filter(|it| is_complete(shard, it));
        presence.map(|presence| presence.position)
    };
    let candidates = shard.replicas().filter(|node| position(node).is_some());
    candidates.max_by_key(position).cloned()
}
