// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Channels as C: a ring of at least one item more than the declared depth (the one more is the
//! item that a firing has staged), and the ways around it: straight into the reader's firing where
//! the channel is fused, straight into the host's buffer where it leads out.

use super::elements::may_do_nothing;
use super::functions::suspends;
use super::packets::is_packet;
use super::plan::Plan;
use super::types::{bytes_of, item_storage};
use super::{Emitter, comment, has_fixed_mask, item_width};
use freeport_ir::{Channel, ChannelId, EndpointId, InstanceId, Item, OnFull, Sink, Source};

/// Fields of the graph for a channel.
pub(super) fn fields(emitter: &Emitter<'_>, id: ChannelId) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let mut text = format!("    struct channel channel_{};\n", id.0);
    if has_ring(channel) {
        let ty = item_storage(channel.item);
        text += &format!("    {ty} items_{}[{}];\n", id.0, ring_slots(channel));
    }
    text
}

/// Whether items ever wait in it: what the host feeds waits in the host's memory.
pub(super) fn has_ring(channel: &Channel) -> bool {
    matches!(channel.source, Source::Port(..))
}

/// Slots of a ring, a power of two.
fn ring_slots(channel: &Channel) -> u32 {
    (channel.depth + 1).next_power_of_two()
}

/// The place of the next item of a ring.
pub(super) fn front(channel: &Channel, id: ChannelId) -> String {
    nth(channel, id, "0")
}

/// The place of the item that `behind` others in a ring come before.
pub(super) fn nth(channel: &Channel, id: ChannelId, behind: &str) -> String {
    let (at, last) = (id.0, ring_slots(channel) - 1);
    format!("&graph->items_{at}[(graph->channel_{at}.head + {behind}) & {last}]")
}

/// Push and pop of a ring.
pub(super) fn ring(emitter: &Emitter<'_>, id: ChannelId) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let (at, last) = (id.0, ring_slots(channel) - 1);
    let ty = item_storage(channel.item);
    format!(
        "OUT_OF_LINE void push_{at}(struct graph *const graph, const {ty} item) {{\n\
         \x20   struct channel *const channel = &graph->channel_{at};\n\
         \x20   graph->items_{at}[(channel->head + channel->fill) & {last}] = item;\n\
         \x20   channel->fill++;\n}}\n\n\
         INLINE void pop_{at}(struct graph *const graph) {{\n\
         \x20   graph->channel_{at}.head++;\n    graph->channel_{at}.fill--;\n}}\n\n"
    )
}

/// The condition under which the writer may fire as far as this channel goes.
pub(super) fn admits(channel: &Channel, id: ChannelId) -> Option<String> {
    let fits = format!("channel_admits(&graph->channel_{}, {})", id.0, channel.depth);
    match (channel.on_full, channel.item) {
        (OnFull::Block, _) => Some(fits),
        // A packet that is kept is kept whole, so its later flits wait for room.
        (OnFull::DropCounted, Item::Flit) => {
            Some(format!("(!graph->channel_{}.is_inside || {fits})", id.0))
        }
        (OnFull::DropCounted, _) => None,
    }
}

/// Statements that count an item at `item`, and record it.
pub(super) fn entered(emitter: &Emitter<'_>, id: ChannelId, counts: bool, records: bool) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let bytes = bytes_of(item_width(channel.item));
    let mut text = String::new();
    if counts {
        text += &match channel.item {
            Item::Flit => "    count_flit(channel, item);\n".to_owned(),
            Item::Packet { .. } => "    count_packet(channel, item);\n".to_owned(),
            _ => format!("    count_record(channel, {bytes});\n"),
        };
    }
    if records && emitter.records {
        text += &match is_packet(channel.item) {
            true => "    record_packet(graph->runtime, &channel->history, item);\n".to_owned(),
            false => {
                format!("    record(graph->runtime, &channel->history, item, {bytes});\n")
            }
        };
    }
    text
}

/// Sends an item into a channel that a port writes. `is_direct`: into the reader's firing, where
/// the channel is fused.
pub(super) fn send(emitter: &Emitter<'_>, plan: &Plan, id: ChannelId, is_direct: bool) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let at = id.0;
    let suffix = if is_direct { "direct" } else { "queued" };
    let ty = item_storage(channel.item);
    let mut text = format!(
        "INLINE void send_{at}_{suffix}(struct graph *const graph, const {ty} *const item) {{\n\
         \x20   struct channel *const channel = &graph->channel_{at};\n"
    );
    text += &keep(emitter, channel);
    text += &entered(emitter, id, true, true);
    match channel.sink {
        Sink::Endpoint(endpoint) => text += &write_out(channel, endpoint),
        Sink::Port(reader, _) if is_direct && plan.is_fused[id.index()] => {
            text += &fire_reader(emitter, plan, reader, id);
        }
        Sink::Port(..) => {}
    }
    text + &format!("    push_{at}(graph, *item);\n}}\n\n")
}

/// A lossy channel's decision.
fn keep(emitter: &Emitter<'_>, channel: &Channel) -> String {
    if channel.on_full == OnFull::Block {
        return String::new();
    }
    let flags = match channel.item {
        Item::Flit => "true, flit_sop(item), flit_eop(item)",
        _ => "false, false, false",
    };
    let mut text = format!(
        "    const bool is_kept =\n        lossy_keeps(channel, {flags}, channel->fill >= {});\n",
        channel.depth
    );
    if emitter.records {
        text += "    record(graph->runtime, &channel->keep, &is_kept, 1);\n";
    }
    text + match is_packet(channel.item) {
        true => "    if (!is_kept) { packet_release(graph->runtime, item); return; }\n",
        false => "    if (!is_kept) return;\n",
    }
}

/// Writes to the host's buffer if nothing waits before.
fn write_out(channel: &Channel, endpoint: EndpointId) -> String {
    let output = format!("&graph->endpoint_{}", endpoint.0);
    let has_room = has_room(channel.item, endpoint);
    format!(
        "    if (LIKELY(channel->fill == 0 && {has_room})) {{\n\
         \x20       {}\n        return;\n    }}\n",
        write_item(channel.item, &output, "item")
    )
}

/// Whether an endpoint out of the graph takes an item.
pub(super) fn has_room(item: Item, endpoint: EndpointId) -> String {
    match item {
        Item::Flit => format!("flit_output_has_room(&graph->endpoint_{})", endpoint.0),
        _ => format!("graph->endpoint_{0}.at < graph->endpoint_{0}.count", endpoint.0),
    }
}

/// The statement that writes an item out.
pub(super) fn write_item(item: Item, output: &str, from: &str) -> String {
    match item {
        Item::Flit => format!("flit_output_write({output}, {from});"),
        Item::Packet { .. } => {
            format!("packet_output_write(graph->runtime, {output}, {from});")
        }
        _ => {
            let bytes = bytes_of(item_width(item));
            let to = format!("({output})->data + ({output})->at++ * {bytes}");
            format!("memcpy({to}, {from}, {bytes});")
        }
    }
}

/// The reader's firing, if it can take place now.
fn fire_reader(emitter: &Emitter<'_>, plan: &Plan, reader: InstanceId, id: ChannelId) -> String {
    let program = emitter.program;
    let element = program.element_of(reader);
    let element_at = program.instance(reader).element.0;
    let (at, channel) = (reader.0, id.0);
    let mut conditions = vec!["channel->fill == 0".to_owned()];
    if !has_fixed_mask(program, element) {
        conditions.push(format!("(graph->instance_{at}.mask & 1) != 0"));
    }
    if may_do_nothing(program, element) {
        conditions.push(format!(
            "!(graph->instance_{at}.is_quiet && graph->instance_{at}.quiet_ready == 1)"
        ));
    }
    conditions.extend(room(emitter, plan, reader));
    let frame = frame_argument(emitter, reader);
    format!(
        "    // Into {}.\n    if (LIKELY({})) {{\n\
         \x20       struct firing_{element_at} firing;\n\
         \x20       begin_{element_at}(&firing, &graph->instance_{at}, 1{frame});\n\
         \x20       firing.input_0 = item;\n\
         \x20       const bool did_something =\n\
         \x20           run_{element_at}(&graph->instance_{at}, &graph->state_{at}, &firing);\n\
         \x20       if (UNLIKELY(!(firing.taken & 1))) push_{channel}(graph, *item);\n\
         \x20       if (LIKELY(did_something)) commit_{at}_direct(graph, &firing);\n\
         \x20       return;\n    }}\n",
        comment(&program.instance(reader).name),
        conditions.join(" && ")
    )
}

/// The last argument of `begin` for an instance whose handler suspends.
pub(super) fn frame_argument(emitter: &Emitter<'_>, id: InstanceId) -> String {
    match suspends(emitter.function(emitter.program.element_of(id).handler)) {
        true => format!(", &graph->frame_{}", id.0),
        false => String::new(),
    }
}

/// The conditions under which the outputs of an instance allow it to fire.
pub(super) fn room(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> Vec<String> {
    let channels = plan.outputs[id.index()].iter();
    let admits = |at: &ChannelId| admits(&emitter.program.graph.channels[at.index()], *at);
    channels.filter_map(admits).collect()
}
