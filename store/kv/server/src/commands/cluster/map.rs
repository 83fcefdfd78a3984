// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The slot map, as clients ask for it.

use freeport_kv_cluster::{Member, Shard};
use freeport_kv_commands::Error;
use freeport_kv_protocol::resp::Writer;

use super::super::{Context, Flow};
use super::view;
use crate::cluster::{Port, View};

/// `CLUSTER SLOTS`: ranges of slots in their order, each with its primary and the replicas that
/// have a lease.
pub(super) fn slots(context: &mut Context<'_>) -> Result<Flow, Error> {
    let view = view(context)?;
    let port = Port::of(&context.client.record.origin);
    let shards = view.topology.shards.iter();
    let mut ranges: Vec<_> = shards
        .flat_map(|shard| shard.slots.ranges().into_iter().map(move |range| (range, shard)))
        .collect();
    ranges.sort_by_key(|(range, _)| *range.start());
    let mut reply = context.reply();
    reply.array(ranges.len());
    for (range, shard) in ranges {
        let replicas: Vec<&Member> =
            shard.replicas().filter(|member| is_online(&view, member)).collect();
        reply.array(3 + replicas.len());
        reply.integer((*range.start()).into());
        reply.integer((*range.end()).into());
        for member in [shard.primary()].into_iter().chain(replicas) {
            let address = view.address(member);
            reply.array(4);
            reply.bulk(address.host.as_bytes());
            reply.integer(port.at(address).unwrap_or(address.port).into());
            reply.bulk(member.id.to_string().as_bytes());
            // Nothing else is known of the node.
            reply.map(0);
        }
    }
    Ok(Flow::Continue)
}

/// `CLUSTER SHARDS`: all shards with all of their nodes.
pub(super) fn shards(context: &mut Context<'_>) -> Result<Flow, Error> {
    let view = view(context)?;
    let mut reply = context.reply();
    reply.array(view.topology.shards.len());
    for shard in &view.topology.shards {
        let ranges = shard.slots.ranges();
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * ranges.len());
        for range in &ranges {
            reply.integer((*range.start()).into());
            reply.integer((*range.end()).into());
        }
        reply.bulk(b"nodes");
        reply.array(shard.members.len());
        shard.members.iter().for_each(|member| show_node(&mut reply, &view, shard, member));
    }
    Ok(Flow::Continue)
}

fn show_node(reply: &mut Writer<'_>, view: &View, shard: &Shard, member: &Member) {
    let address = view.address(member);
    let position = view.present.get(&member.id).map_or(0, |presence| presence.position);
    let role = if member.id == shard.primary { "master" } else { "replica" };
    let health = if is_online(view, member) { "online" } else { "failed" };
    reply.map(7 + usize::from(address.tls_port.is_some()));
    reply.bulk(b"id");
    reply.bulk(member.id.to_string().as_bytes());
    for (name, port) in [("port", Some(address.port)), ("tls-port", address.tls_port)] {
        if let Some(port) = port {
            reply.bulk(name.as_bytes());
            reply.integer(port.into());
        }
    }
    for (name, text) in [("ip", &address.host[..]), ("endpoint", &address.host), ("role", role)] {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    reply.bulk(b"replication-offset");
    reply.integer(i64::try_from(position).unwrap_or(i64::MAX));
    reply.bulk(b"health");
    reply.bulk(health.as_bytes());
}

/// This node answers, and the others have a lease.
fn is_online(view: &View, member: &Member) -> bool {
    member.id == view.me || view.is_present(member.id)
}
