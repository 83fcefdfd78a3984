// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of the cluster and of this node.

use freeport_kv_cluster::Shard;
use freeport_kv_commands::Error;
use freeport_kv_protocol::resp::reply::shared;

use super::super::{Context, Flow};
use super::{node, view};

/// `CLUSTER INFO`. The cluster is in order if each slot has a primary with a lease, and this node
/// has one.
pub(super) fn info(context: &mut Context<'_>) -> Result<Flow, Error> {
    let view = view(context)?;
    let shards = &view.topology.shards;
    let slots = |is_counted: &dyn Fn(&&Shard) -> bool| -> usize {
        shards.iter().filter(|shard| is_counted(shard)).map(|shard| shard.slots.len()).sum()
    };
    let is_led = |shard: &&Shard| shard.primary == view.me || view.is_present(shard.primary);
    let (assigned, led) = (slots(&|_| true), slots(&is_led));
    let is_ok = view.topology.is_complete() && led == assigned && !context.core.is_fenced;
    let members: usize = shards.iter().map(|shard| shard.members.len()).sum();
    let stranger = usize::from(view.shard().is_none());
    let size = shards.iter().filter(|shard| !shard.slots.is_empty()).count();
    let lines = [
        ("cluster_state", if is_ok { "ok" } else { "fail" }.into()),
        ("cluster_slots_assigned", assigned.to_string()),
        ("cluster_slots_ok", led.to_string()),
        ("cluster_slots_pfail", "0".into()),
        ("cluster_slots_fail", (assigned - led).to_string()),
        ("cluster_known_nodes", (members + stranger).to_string()),
        ("cluster_size", size.to_string()),
        ("cluster_current_epoch", view.topology.epoch.to_string()),
        ("cluster_my_epoch", view.shard().map_or(0, |shard| shard.term).to_string()),
        ("cluster_stats_messages_sent", "0".into()),
        ("cluster_stats_messages_received", "0".into()),
        ("total_cluster_links_buffer_limit_exceeded", "0".into()),
    ];
    let text: String = lines.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
    context.reply().verbatim(*b"txt", text.as_bytes());
    Ok(Flow::Continue)
}

pub(super) fn my_id(context: &mut Context<'_>) -> Result<Flow, Error> {
    let me = node(context)?.me.to_string();
    context.reply().bulk(me.as_bytes());
    Ok(Flow::Continue)
}

pub(super) fn my_shard_id(context: &mut Context<'_>) -> Result<Flow, Error> {
    const NONE: Error = Error::fixed("ERR this node is in no shard: use `freeport kv cluster add`");
    let shard = view(context)?.shard().map(|shard| shard.id.to_string()).ok_or(NONE)?;
    context.reply().bulk(shard.as_bytes());
    Ok(Flow::Continue)
}

/// The registry has every change before it takes effect.
pub(super) fn save(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.reply().raw(shared::OK);
    Ok(Flow::Continue)
}
