// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lists of nodes, one line for each.

use std::ops::RangeInclusive;

use freeport_kv_cluster::{Address, Member, NodeId, Shard};
use freeport_kv_commands::Error;

use super::super::{Context, Flow};
use super::{named, node, view};
use crate::cluster::{Port, View};

/// `CLUSTER NODES`: all nodes of the slot map, and this one.
pub(super) fn list(context: &mut Context<'_>) -> Result<Flow, Error> {
    let view = view(context)?;
    let port = Port::of(&context.client.record.origin);
    let mut text: String = view
        .topology
        .shards
        .iter()
        .flat_map(|shard| shard.members.iter().map(move |member| (shard, member)))
        .map(|(shard, member)| line(&view, shard, member, port) + "\n")
        .collect();
    if view.shard().is_none() {
        let place = place(&node(context)?.options.address, port);
        text += &format!("{} {place} myself,master - 0 0 0 connected\n", view.me);
    }
    context.reply().verbatim(*b"txt", text.as_bytes());
    Ok(Flow::Continue)
}

/// `CLUSTER REPLICAS`: the replicas of a primary.
pub(super) fn replicas(context: &mut Context<'_>) -> Result<Flow, Error> {
    const NO_PRIMARY: Error = Error::fixed("ERR The specified node is not a master");
    let (view, id) = known(context)?;
    let shard = view.topology.shard_of(id).filter(|shard| shard.primary == id);
    let port = Port::of(&context.client.record.origin);
    let lines: Vec<String> = match shard {
        Some(shard) => shard.replicas().map(|member| line(&view, shard, member, port)).collect(),
        // It is this node, before it is in a shard.
        None if view.topology.member(id).is_none() => vec![],
        None => return Err(NO_PRIMARY),
    };
    let mut reply = context.reply();
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.bulk(line.as_bytes()));
    Ok(Flow::Continue)
}

/// `CLUSTER COUNT-FAILURE-REPORTS`: leases decide who has failed, so nobody reports it.
pub(super) fn failure_reports(context: &mut Context<'_>) -> Result<Flow, Error> {
    known(context)?;
    context.reply().integer(0);
    Ok(Flow::Continue)
}

/// `CLUSTER LINKS`: nodes do not gossip.
pub(super) fn links(context: &mut Context<'_>) -> Result<Flow, Error> {
    context.reply().array(0);
    Ok(Flow::Continue)
}

/// The node that the second argument names.
fn known(context: &Context<'_>) -> Result<(std::sync::Arc<View>, NodeId), Error> {
    let view = view(context)?;
    let word = context.arguments[2];
    let is_known = |id: &NodeId| *id == view.me || view.topology.member(*id).is_some();
    match named(word).filter(is_known) {
        Some(id) => Ok((view, id)),
        None => Err(Error::new(format!("ERR Unknown node {}", Error::shown(word)))),
    }
}

/// `<id> <ip:port@cport> <flags> <master> <ping-sent> <pong-recv> <config-epoch> <link> <slots>`.
/// There is no bus, so its port is 0, and there are no pings.
fn line(view: &View, shard: &Shard, member: &Member, port: Port) -> String {
    let (id, place) = (member.id, place(view.address(member), port));
    let is_present = id == view.me || view.is_present(id);
    let myself = if id == view.me { "myself," } else { "" };
    let (role, primary) = match id == shard.primary {
        true => ("master", "-".to_owned()),
        false => ("slave", shard.primary.to_string()),
    };
    let (failed, link) = if is_present { ("", "connected") } else { (",fail", "disconnected") };
    let term = shard.term;
    let mut line = format!("{id} {place} {myself}{role}{failed} {primary} 0 0 {term} {link}");
    if id == shard.primary {
        line.extend(shard.slots.ranges().into_iter().map(text_of_range));
    }
    line
}

fn text_of_range(range: RangeInclusive<u16>) -> String {
    match (range.start(), range.end()) {
        (first, last) if first == last => format!(" {first}"),
        (first, last) => format!(" {first}-{last}"),
    }
}

fn place(address: &Address, port: Port) -> String {
    format!("{}:{}@0", address.host, port.at(address).unwrap_or(address.port))
}
