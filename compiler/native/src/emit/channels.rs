// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Channels as C: a ring for at least one item more than the declared depth (the additional item is
//! the one that a firing has staged), and bypasses: directly into the reader's firing if the
//! channel is fused, directly into the host's buffer if it leads out of the graph.
//!
//! While an instance is stepped, the position and the counters of each channel that it and its
//! members touch are in a copy, the turn of the instance, most of which becomes registers.

use super::elements::may_do_nothing;
use super::functions::suspends;
use super::packets::is_packet;
use super::plan::Plan;
use super::prefetch;
use super::types::{assign, bytes_of, item_storage};
use super::{Emitter, breakpoints, comment, has_fixed_mask, item_width};
use freeport_ir::{
    Channel, ChannelId, EndpointId, InstanceId, Item, OnFull, Op, PortId, Sink, Source,
};

/// Emits the graph's fields for a channel.
pub(super) fn fields(emitter: &Emitter<'_>, plan: &Plan, id: ChannelId) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let mut text = format!("    struct channel channel_{};\n", id.0);
    if has_ring(channel) {
        let ty = item_storage(channel.item);
        text += &format!("    {ty} items_{}[{}];\n", id.0, ring_slots(plan, id));
        text += &format!("    uint32_t asked_{}; // After the prefetched items.\n", id.0);
    }
    text
}

/// Returns whether items ever wait in it: items from the host wait in the host's memory.
pub(super) fn has_ring(channel: &Channel) -> bool {
    matches!(channel.source, Source::Port(..))
}

/// Returns the slots of a ring, a power of two.
pub(super) fn ring_slots(plan: &Plan, id: ChannelId) -> u32 {
    (plan.depths[id.index()] + 1).next_power_of_two()
}

/// Returns the location of the next item in a ring; `turn` is the prefix of the channel's position.
pub(super) fn front(plan: &Plan, id: ChannelId, turn: &str) -> String {
    nth(plan, id, turn, "0")
}

/// Returns the location of the item after `behind` others in a ring.
pub(super) fn nth(plan: &Plan, id: ChannelId, turn: &str, behind: &str) -> String {
    let (at, last) = (id.0, ring_slots(plan, id) - 1);
    format!("&graph->items_{at}[({turn}channel_{at}.head + {behind}) & {last}]")
}

/// Emits push and pop of a ring.
pub(super) fn ring(emitter: &Emitter<'_>, plan: &Plan, id: ChannelId) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let (at, last) = (id.0, ring_slots(plan, id) - 1);
    let ty = item_storage(channel.item);
    let slot = format!("graph->items_{at}[(channel->head + channel->fill) & {last}]");
    let pop = format!(
        "INLINE void pop_{at}(struct channel *const channel) {{\n\
         \x20   channel->head++;\n    channel->fill--;\n}}\n\n"
    );
    let is_passed = match channel.source {
        Source::Port(writer, port) => {
            emitter.passed(emitter.program.instance(writer).element, port).is_some()
        }
        Source::Endpoint(_) => false,
    };
    let copy = |to: &str| match channel.item {
        // The item lies in memory, and should not be loaded into registers.
        Item::Packet { .. } if is_passed => format!("{to} = *item;"),
        Item::Packet { .. } => format!("packet_assign(&{to}, item);"),
        _ => assign(to, "(*item)", item_width(channel.item)),
    };
    // An item rarely enters a ring that can be bypassed. The call takes the address of its
    // argument, so it gets a copy: the item itself should stay in registers.
    if plan.is_fused[id.index()] || matches!(channel.sink, Sink::Endpoint(_)) {
        return format!(
            "OUT_OF_LINE void place_{at}({ty} *const slot, const {ty} item) {{\n\
             \x20   *slot = item;\n}}\n\n\
             INLINE void push_{at}(struct graph *const graph, struct channel *const channel, \
             const {ty} *const item) {{\n\
             \x20   {ty} given;\n    {}\n    place_{at}(&{slot}, given);\n\
             \x20   channel->fill++;\n}}\n\n{pop}",
            copy("given")
        );
    }
    let mut text = format!(
        "INLINE void push_{at}(struct graph *const graph, struct channel *const channel, \
         const {ty} *const item) {{\n\
         \x20   {ty} *const slot = &{slot};\n\
         \x20   {}\n    channel->fill++;\n",
        copy("(*slot)")
    );
    if let Sink::Port(reader, port) = channel.sink {
        let element = emitter.program.instance(reader).element;
        if plan.slices.has(element, port) {
            let state = format!("&graph->state_{}", reader.0);
            text += &format!("    {}\n", prefetch::call(element, port, &state, "item"));
        }
    }
    text + "}\n\n" + &pop
}

/// Returns the condition under which this channel lets its writer fire.
pub(super) fn admits(plan: &Plan, channel: &Channel, id: ChannelId) -> Option<String> {
    let fits = format!("channel_admits(&turn->channel_{}, {})", id.0, plan.depths[id.index()]);
    match (channel.on_full, channel.item) {
        (OnFull::Block, _) => Some(fits),
        // A packet that is kept is kept whole, so its later flits wait for room.
        (OnFull::DropCounted, Item::Flit) => {
            Some(format!("(!turn->channel_{}.is_inside || {fits})", id.0))
        }
        (OnFull::DropCounted, _) => None,
    }
}

/// Emits the structure of a turn, and the functions that open and close it.
pub(super) fn turn(plan: &Plan, id: InstanceId) -> String {
    let at = id.0;
    let (channels, members) = (plan.channels(id), plan.members(id));
    let mut text = format!("struct turn_{at} {{\n");
    for channel in &channels {
        text += &format!("    struct channel channel_{};\n", channel.0);
    }
    for member in &members {
        text += &format!("    uint64_t firings_{};\n", member.0);
    }
    text += &format!(
        "}};\n\nINLINE void turn_{at}_opened(const struct graph *const graph, \
         struct turn_{at} *const turn) {{\n"
    );
    for channel in channels.iter().map(|channel| channel.0) {
        let opened = format!("channel_opened(&graph->channel_{channel})");
        text += &format!("    turn->channel_{channel} = {opened};\n");
    }
    for member in &members {
        text += &format!("    turn->firings_{} = 0;\n", member.0);
    }
    text += &format!(
        "}}\n\nINLINE void turn_{at}_closed(struct graph *const graph, \
         const struct turn_{at} *const turn) {{\n"
    );
    for channel in channels.iter().map(|channel| channel.0) {
        text +=
            &format!("    channel_close(&graph->channel_{channel}, &turn->channel_{channel});\n");
    }
    for member in members.iter().map(|member| member.0) {
        text += &format!("    graph->instance_{member}.firings += turn->firings_{member};\n");
    }
    text + "}\n\n"
}

/// Emits the statement that counts a firing of an instance. Probes report the count, so with a
/// probe it cannot be deferred to the end of the turn.
pub(super) fn fired(emitter: &Emitter<'_>, id: InstanceId) -> String {
    let handler = emitter.function(emitter.program.element_of(id).handler);
    let mut insts = handler.blocks.iter().flat_map(|block| &block.insts);
    match insts.any(|inst| matches!(inst.op, Op::Probe { .. } | Op::Call { .. })) {
        true => format!("graph->instance_{}.firings++;", id.0),
        false => format!("turn->firings_{}++;", id.0),
    }
}

/// Emits statements that count the item at `item`, and record it.
pub(super) fn entered(emitter: &Emitter<'_>, id: ChannelId, counts: bool, records: bool) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let bytes = bytes_of(item_width(channel.item));
    let mut text = String::new();
    if counts {
        text += &match channel.item {
            Item::Flit => "    count_flit(channel, item);\n".to_owned(),
            Item::Packet { .. } => "    count_packet(channel, item);\n".to_owned(),
            Item::Bits(_) => "    count_record(channel);\n".to_owned(),
        };
    }
    if records && emitter.records {
        let history = format!("graph->runtime, &graph->channel_{}.history, item", id.0);
        text += &match is_packet(channel.item) {
            true => format!("    record_packet({history});\n"),
            false => format!("    record({history}, {bytes});\n"),
        };
    }
    text
}

/// Emits the function that sends an item into a channel written by a port. With `is_direct`, a
/// fused channel passes it directly to the reader's firing.
pub(super) fn send(emitter: &Emitter<'_>, plan: &Plan, id: ChannelId, is_direct: bool) -> String {
    let program = emitter.program;
    let channel = &program.graph.channels[id.index()];
    let at = id.0;
    let suffix = if is_direct { "direct" } else { "queued" };
    let ty = item_storage(channel.item);
    let Source::Port(writer, _) = channel.source else { return String::new() };
    let turn = if is_direct { plan.root[writer.index()] } else { writer };
    let mut text = format!(
        "INLINE void send_{at}_{suffix}(struct graph *const graph, struct turn_{} *const turn,\n\
         \x20                          const {ty} *const item) {{\n\
         \x20   struct channel *const channel = &turn->channel_{at};\n",
        turn.0
    );
    text += &keep(emitter, plan, id);
    text += &entered(emitter, id, true, true);
    match channel.sink {
        Sink::Endpoint(endpoint) => {
            text += &write_out(channel, endpoint, plan.source(program, id));
        }
        Sink::Port(reader, _) if is_direct && plan.is_fused[id.index()] => {
            text += &fire_reader(emitter, plan, reader, id);
        }
        Sink::Port(..) => {}
    }
    text + &format!("    push_{at}(graph, channel, item);\n}}\n\n")
}

/// Returns the declaration of `commit`; `is_direct` as for `send`.
pub(super) fn commit_declaration(
    emitter: &Emitter<'_>,
    plan: &Plan,
    id: InstanceId,
    is_direct: bool,
) -> String {
    let element = emitter.program.instance(id).element.0;
    let (suffix, turn) = match is_direct {
        true => ("direct", plan.root[id.index()]),
        false => ("queued", id),
    };
    format!(
        "INLINE void commit_{}_{suffix}(struct graph *const graph, struct turn_{} *const turn,\n\
         \x20                          const struct firing_{element} *const firing)",
        id.0, turn.0
    )
}

/// Emits the function that sends the items staged by a firing. A forwarded packet lies in its
/// input's ring, so it is sent first: other items may make elements fire that fill the ring.
pub(super) fn commit(
    emitter: &Emitter<'_>,
    plan: &Plan,
    id: InstanceId,
    is_direct: bool,
) -> String {
    let suffix = if is_direct { "direct" } else { "queued" };
    let element = emitter.program.instance(id).element;
    let text = format!("{} {{\n", commit_declaration(emitter, plan, id, is_direct));
    let (mut first, mut last) = (String::new(), String::new());
    for (port, channel) in plan.outputs[id.index()].iter().enumerate() {
        let passed = emitter.passed(element, PortId::new(port));
        let item = match passed {
            Some(input) => format!("firing->input_{}", input.0),
            None => format!("&firing->staged_{port}"),
        };
        let send = format!("send_{}_{suffix}(graph, turn, {item})", channel.0);
        let line = format!("    if (firing->is_staged_{port}) {send};\n");
        if passed.is_some() { first += &line } else { last += &line }
    }
    text + &first + &last + "}\n\n"
}

/// Emits a lossy channel's decision.
fn keep(emitter: &Emitter<'_>, plan: &Plan, id: ChannelId) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    if channel.on_full == OnFull::Block {
        return String::new();
    }
    let flags = match channel.item {
        Item::Flit => "true, flit_sop(item), flit_eop(item)",
        _ => "false, false, false",
    };
    let mut text = format!(
        "    const bool is_kept =\n        lossy_keeps(channel, {flags}, channel->fill >= {});\n",
        plan.depths[id.index()]
    );
    if emitter.records {
        let keep = format!("&graph->channel_{}.keep", id.0);
        text += &format!("    record(graph->runtime, {keep}, &is_kept, 1);\n");
    }
    text + match is_packet(channel.item) {
        true => "    if (!is_kept) { packet_release(graph->runtime, item); return; }\n",
        false => "    if (!is_kept) return;\n",
    }
}

/// Emits statements that write to the host's buffer if no earlier items wait.
fn write_out(channel: &Channel, endpoint: EndpointId, source: Option<String>) -> String {
    let output = format!("&graph->endpoint_{}", endpoint.0);
    let has_room = has_room(channel.item, endpoint);
    format!(
        "    if (LIKELY(channel->fill == 0 && {has_room})) {{\n\
         \x20       {}\n        return;\n    }}\n",
        write_item(channel.item, &output, "item", source)
    )
}

/// Returns the condition under which an endpoint out of the graph accepts an item.
pub(super) fn has_room(item: Item, endpoint: EndpointId) -> String {
    match item {
        Item::Flit => format!("flit_output_has_room(&graph->endpoint_{})", endpoint.0),
        _ => format!("graph->endpoint_{0}.at < graph->endpoint_{0}.count", endpoint.0),
    }
}

/// Emits the statement that writes an item out. `source` is the C expression of the input that a
/// flit may have come from in the same step, if any.
pub(super) fn write_item(item: Item, output: &str, from: &str, source: Option<String>) -> String {
    match item {
        Item::Flit => {
            let source = source.as_deref().unwrap_or("NULL");
            format!("flit_output_write({output}, {source}, {from});")
        }
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

/// Emits the reader's firing, if it can happen immediately.
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
    conditions.extend(breakpoints::is_free(emitter, reader));
    conditions.extend(room(emitter, plan, reader));
    let frame = frame_argument(emitter, reader);
    format!(
        "    // Into {}.\n    if (LIKELY({})) {{\n\
         \x20       struct firing_{element_at} firing;\n\
         \x20       begin_{element_at}(&firing, &graph->instance_{at}, 1{frame});\n\
         \x20       firing.input_0 = item;\n\
         \x20       const bool did_something =\n\
         \x20           run_{element_at}(&graph->instance_{at}, &graph->state_{at}, &firing);\n\
         \x20       if (UNLIKELY(!(firing.taken & 1))) push_{channel}(graph, channel, item);\n\
         \x20       if (LIKELY(did_something)) {{\n            {fired}\n\
         \x20           commit_{at}_direct(graph, turn, &firing);\n        }}\n\
         \x20       return;\n    }}\n",
        comment(&program.instance(reader).name),
        conditions.join(" && "),
        fired = fired(emitter, reader)
    )
}

/// Returns the last argument of `begin` for an instance whose handler suspends.
pub(super) fn frame_argument(emitter: &Emitter<'_>, id: InstanceId) -> String {
    match suspends(emitter.function(emitter.program.element_of(id).handler)) {
        true => format!(", &graph->frame_{}", id.0),
        false => String::new(),
    }
}

/// Returns the conditions under which the outputs of an instance allow it to fire.
pub(super) fn room(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> Vec<String> {
    let channels = plan.outputs[id.index()].iter();
    let admits = |at: &ChannelId| admits(plan, &emitter.program.graph.channels[at.index()], *at);
    channels.filter_map(admits).collect()
}

/// Returns the rings that firings of `id` may fill without being blocked: those its members write,
/// and lossy ones. Once one becomes full, its reader has to run; otherwise it would get a small
/// batch, or lose items.
pub(super) fn rings_ahead(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> Vec<ChannelId> {
    let channels = &emitter.program.graph.channels;
    let mut rings = vec![];
    for member in plan.members(id) {
        rings.extend(plan.outputs[member.index()].iter().copied().filter(|channel| {
            let found = &channels[channel.index()];
            !plan.is_fused[channel.index()]
                && matches!(found.sink, Sink::Port(..))
                && (member != id || found.on_full == OnFull::DropCounted)
        }));
    }
    rings
}

/// Returns the condition under which a ring cannot accept another item, or would drop it.
pub(super) fn is_full(plan: &Plan, id: ChannelId) -> String {
    format!("turn->channel_{}.fill >= {}", id.0, plan.depths[id.index()])
}
