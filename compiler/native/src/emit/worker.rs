// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The graph and its worker: a step for each instance, which fires it as long as possible, and a
//! loop over all of them until nothing moves.

use super::channels::{
    admits, entered, fields, fired, frame_argument, front, has_ring, has_room, is_full,
    rings_ahead, room, write_item,
};
use super::elements::{has_initial, may_do_nothing, may_take_long, may_wait_for_time};
use super::functions::suspends;
use super::layouts;
use super::packets::{is_packet, keep_suspended};
use super::plan::{Input, Plan};
use super::prefetch;
use super::types::{bytes_of, is_wide, item_storage, ones};
use super::{Emitter, all_ports, body, breakpoints, comment, has_fixed_mask, item_width, units};
use freeport_ir::{
    Channel, ChannelId, Direction, Element, EndpointId, InstanceId, Item, OnFull, Sink, Source,
};

/// Maximum firings of one instance in a turn.
const BATCH: u32 = 1024;

/// Maximum firings in a turn in which an instance only reads the clock.
const LOOKS_AT_CLOCK: u32 = 16;

/// Maximum turns of each instance in one run.
pub(super) const ROUNDS: u32 = 1024;

/// Emits everything from the graph's structure to the exported image.
pub(super) fn emit(emitter: &Emitter<'_>, plan: &Plan) -> String {
    let graph = &emitter.program.graph;
    let channels = || (0..graph.channels.len()).map(ChannelId::new);
    let mut text = structure(emitter, plan);
    text += &units::emit(emitter, plan);
    let through = channels().filter(|id| is_through(&graph.channels[id.index()]));
    text += &through.map(|id| step_through(emitter, id)).collect::<String>();
    text += &layouts::emit(emitter, plan);
    text += &run(emitter, plan);
    text += &start(emitter, plan);
    text += &dispatch(emitter);
    text += &super::tables::dispatch(emitter);
    text + &layouts::image(emitter)
}

/// Returns whether a channel connects two endpoints.
fn is_through(channel: &Channel) -> bool {
    matches!((channel.source, channel.sink), (Source::Endpoint(_), Sink::Endpoint(_)))
}

pub(super) fn endpoint_type(item: Item, direction: Direction) -> &'static str {
    match (item, direction) {
        (Item::Flit, Direction::Into) => "flit_input",
        (Item::Flit, Direction::OutOf) => "flit_output",
        (Item::Packet { .. }, Direction::Into) => "packet_input",
        (Item::Packet { .. }, Direction::OutOf) => "packet_output",
        (_, Direction::Into) => "record_input",
        (_, Direction::OutOf) => "record_output",
    }
}

fn structure(emitter: &Emitter<'_>, plan: &Plan) -> String {
    let graph = &emitter.program.graph;
    let mut text =
        String::from("\n// The graph.\n\nstruct graph {\n    struct runtime *runtime;\n");
    text += "    bool waits_for_time; // In the last round, an instance only read the clock.\n";
    text += "    struct flit_input *newest; // Read last, by an instance with several.\n";
    for (at, endpoint) in graph.endpoints.iter().enumerate() {
        let ty = endpoint_type(endpoint.item, endpoint.direction);
        text += &format!("    struct {ty} endpoint_{at}; // {}\n", comment(&endpoint.name));
    }
    for (at, instance) in graph.instances.iter().enumerate() {
        let (element, name) = (instance.element.0, comment(&instance.name));
        let handler = emitter.program.element(instance.element).handler;
        text += &format!("    struct instance instance_{at}; // {name}\n");
        text += &format!("    struct state_{element} state_{at};\n");
        text += &format!("    uint64_t traps_{at}[{}];\n", emitter.trap_count());
        if suspends(emitter.function(handler)) {
            text += &format!("    struct frame_{} frame_{at};\n", handler.0);
        }
    }
    for at in 0..graph.channels.len() {
        text += &fields(emitter, plan, ChannelId::new(at));
    }
    text + "};\n\n"
}

/// Returns the C condition that a port has an item; `turn` is the prefix of the channel's position.
fn is_ready(emitter: &Emitter<'_>, input: Input, turn: &str) -> String {
    match input {
        Input::Ring(channel) => format!("{turn}channel_{}.fill != 0", channel.0),
        Input::Host(endpoint, _) => host_is_ready(emitter, endpoint),
    }
}

fn host_is_ready(emitter: &Emitter<'_>, endpoint: EndpointId) -> String {
    let at = endpoint.0;
    match emitter.program.graph.endpoints[endpoint.index()].item {
        Item::Flit => format!("flit_input_ready(&graph->endpoint_{at})"),
        _ => format!("graph->endpoint_{at}.at < graph->endpoint_{at}.count"),
    }
}

/// Returns the declaration of `to`, a pointer to the next item of an endpoint, and statements that
/// make that item. A packet stays where the host has it.
fn host_item(emitter: &Emitter<'_>, endpoint: EndpointId, to: &str) -> (String, String) {
    let item = emitter.program.graph.endpoints[endpoint.index()].item;
    let (ty, from) = (item_storage(item), format!("graph->endpoint_{}", endpoint.0));
    if is_packet(item) {
        let place = format!("&{from}.frames[{from}.at]");
        return (format!("const {ty} *const {to} = {place};"), String::new());
    }
    let build = build_at(emitter, endpoint, &format!("{from}.at"), &format!("{to}_item"));
    (format!("{ty} {to}_item, *const {to} = &{to}_item;"), build)
}

/// Emits statements that make an item of an endpoint in `to`; for records, the one at `position`.
pub(super) fn build_at(
    emitter: &Emitter<'_>,
    endpoint: EndpointId,
    position: &str,
    to: &str,
) -> String {
    let at = endpoint.0;
    let item = emitter.program.graph.endpoints[endpoint.index()].item;
    let width = item_width(item);
    if item == Item::Flit {
        return format!("flit_input_build(&graph->endpoint_{at}, &{to});");
    }
    let bytes = bytes_of(width);
    let from = format!("graph->endpoint_{at}.data + {position} * {bytes}");
    let mut text = format!("memcpy(&{to}, {from}, {bytes});");
    if is_wide(width) && !width.is_multiple_of(8) {
        text += &format!(" {to}.b[{}] &= {:#x};", width / 8, 0xff_u32 >> (8 - width % 8));
    } else if !is_wide(width) {
        text += &format!(" {to} &= {};", ones(width, width));
    }
    text
}

/// Emits statements that record once that a host's item has entered.
fn expose(emitter: &Emitter<'_>, endpoint: EndpointId, channel: ChannelId, item: &str) -> String {
    if !emitter.records {
        return String::new();
    }
    let found = &emitter.program.graph.channels[channel.index()];
    let (at, id) = (endpoint.0, channel.0);
    let history = format!("graph->runtime, &graph->channel_{id}.history, {item}");
    let record = match is_packet(found.item) {
        true => format!("record_packet({history});"),
        false => format!("record({history}, {});", bytes_of(item_width(found.item))),
    };
    let mut text = format!(
        "if (!graph->endpoint_{at}.is_exposed) {{ graph->endpoint_{at}.is_exposed = true; {record}"
    );
    if found.on_full == OnFull::DropCounted {
        text += " const uint8_t is_kept = 1;";
        text += &format!(" record(graph->runtime, &graph->channel_{id}.keep, &is_kept, 1);");
    }
    text + " }"
}

/// Emits statements that count a taken item of the host, in `turn`, and advance to the next.
fn advance(
    emitter: &Emitter<'_>,
    endpoint: EndpointId,
    channel: ChannelId,
    item: &str,
    turn: &str,
) -> String {
    let at = endpoint.0;
    let mut text = format!("struct channel *const channel = &{turn}channel_{};", channel.0);
    let entered = entered(emitter, channel, true, false).replace(", item", &format!(", {item}"));
    text += &format!(" {}", entered.trim());
    match emitter.program.graph.endpoints[endpoint.index()].item {
        Item::Flit => text += &format!(" flit_input_advance(&graph->endpoint_{at}, 1);"),
        Item::Packet { .. } => text += &format!(" packet_input_advance(&graph->endpoint_{at});"),
        _ => {
            text +=
                &format!(" graph->endpoint_{at}.at++; graph->endpoint_{at}.is_exposed = false;");
        }
    }
    text
}

const RECORD_IS_FULL: &str =
    "graph->runtime->recorded_bytes >= graph->runtime->recorded_bytes_limit";

/// Emits the function that fires an instance as long as possible, unless deferring it gives larger
/// batches; it returns whether it moved anything.
pub(super) fn step(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> String {
    let program = emitter.program;
    let element = program.element_of(id);
    let (at, element_at) = (id.0, program.instance(id).element.0);
    let inputs = &plan.inputs[id.index()];
    let mut text = format!(
        "// {}\nOUT_OF_LINE bool step_{at}(struct graph *const graph) {{\n",
        comment(&program.instance(id).name)
    );
    if !inputs.is_empty() {
        let ready = inputs.iter().map(|input| is_ready(emitter, *input, "graph->"));
        let ready = ready.collect::<Vec<_>>().join(" || ");
        let waits = match has_fixed_mask(program, element) {
            true => String::new(),
            false => format!(" && graph->instance_{at}.mask != 0"),
        };
        text += &format!("    if (!({ready}){waits}) return false;\n");
    }
    text += &format!(
        "    struct instance *const instance = &graph->instance_{at};\n\
         \x20   struct turn_{at} copy, *const turn = &copy;\n    turn_{at}_opened(graph, turn);\n\
         \x20   bool has_moved = false;\n"
    );
    let rings = rings_ahead(emitter, plan, id);
    for ring in &rings {
        text += &format!("    const bool was_full_{0} = {1};\n", ring.0, is_full(plan, *ring));
    }
    let may_wait = may_wait_for_time(program, element);
    if may_wait {
        text += &format!("    uint32_t looks_left = {LOOKS_AT_CLOCK};\n");
    }
    for port in 0..inputs.len() {
        text += &prefetch::of_ring(plan, program, id, port);
    }
    text += &format!("    for (uint32_t left = {BATCH}; left > 0; left--) {{\n");
    let mut line = |line: &str| text += &format!("        {line}\n");
    if emitter.records {
        line(&format!("if ({RECORD_IS_FULL}) break;"));
    }
    if let Some(is_free) = breakpoints::is_free(emitter, id) {
        line(&format!("if (UNLIKELY(!({is_free}))) break;"));
    }
    if let Some(attempt) = body::attempt(emitter, plan, id) {
        line(&attempt);
    }
    match has_fixed_mask(program, element) {
        true => line(&format!("const uint64_t mask = {};", all_ports(inputs.len()))),
        false => line("const uint64_t mask = instance->mask;"),
    }
    let has_item = inputs.iter().map(|input| is_ready(emitter, *input, "turn->"));
    if element.await_all && !inputs.is_empty() && has_fixed_mask(program, element) {
        let all = has_item.collect::<Vec<_>>();
        line(&format!("if (!({})) break;", all.join(" && ")));
        line("const uint64_t ready = mask;");
    } else {
        line("uint64_t ready = 0;");
        for (port, has_item) in has_item.enumerate() {
            line(&format!("ready |= (uint64_t)({has_item}) << {port};"));
        }
        line("ready &= mask;");
        let is_enough = if element.await_all { "ready == mask" } else { "ready != 0 || mask == 0" };
        line(&format!("if (!({is_enough})) break;"));
    }
    if may_do_nothing(program, element) {
        line("if (instance->is_quiet && instance->quiet_ready == ready) break;");
    }
    let room = room(emitter, plan, id);
    if !room.is_empty() {
        line(&format!("if (UNLIKELY(!({}))) {{", room.join(" && ")));
        for channel in &plan.outputs[id.index()] {
            let found = &program.graph.channels[channel.index()];
            if let Some(admits) = admits(plan, found, *channel) {
                let at = channel.0;
                let stalled =
                    format!("channel_stalled(&graph->channel_{at}, turn->channel_{at}.items)");
                line(&format!("    if (!{admits}) {stalled};"));
            }
        }
        line("    break;");
        line("}");
    }
    line(&format!("struct firing_{element_at} firing;"));
    let frame = frame_argument(emitter, id);
    line(&format!("begin_{element_at}(&firing, instance, ready{frame});"));
    for (port, input) in inputs.iter().enumerate() {
        line(&begin_input(emitter, plan, id, port, *input));
    }
    line(&format!("if (!run_{element_at}(instance, &graph->state_{at}, &firing)) continue;"));
    match may_wait {
        true => line(&looks_at_clock(element)),
        false => line("has_moved = true;"),
    }
    line(&fired(emitter, id));
    let host_flits = plan.host_flits(program, id);
    for (port, input) in inputs.iter().enumerate() {
        let leave = match *input {
            Input::Ring(channel) => format!("pop_{0}(&turn->channel_{0});", channel.0),
            Input::Host(endpoint, channel) => {
                let host = format!("host_{port}");
                let mut text = advance(emitter, endpoint, channel, &host, "turn->");
                if host_flits.len() > 1 && host_flits.contains(&endpoint) {
                    text += &format!(" graph->newest = &graph->endpoint_{};", endpoint.0);
                }
                text
            }
        };
        line(&format!("if (firing.taken >> {port} & 1) {{ {leave} }}"));
    }
    let suffix = if plan.is_root[id.index()] { "direct" } else { "queued" };
    line(&format!("commit_{at}_{suffix}(graph, turn, &firing);"));
    if plan.members(id).iter().any(|id| breakpoints::may_be_held(emitter, *id)) {
        line("if (UNLIKELY(graph->runtime->has_stopped)) break;");
    }
    for ring in &rings {
        line(&format!("if (UNLIKELY({} && !was_full_{})) break;", is_full(plan, *ring), ring.0));
    }
    if may_wait {
        line("if (looks_left == 0) break;");
    }
    if plan.members(id).iter().any(|id| may_take_long(emitter, program.element_of(*id).handler)) {
        line("if (gives_way(graph->runtime)) break;");
    }
    text += &format!("    }}\n    turn_{at}_closed(graph, turn);\n");
    text + "    return has_moved;\n}\n\n"
}

/// Emits statements that record whether a firing moved anything, or only read the clock.
fn looks_at_clock(element: &Element) -> String {
    let puts = (0..element.outputs.len()).map(|at| format!(" || firing.is_staged_{at}"));
    let moves = format!("firing.taken != 0{}", puts.collect::<String>());
    format!(
        "if (LIKELY({moves})) {{ has_moved = true; }} \
         else {{ graph->waits_for_time = true; looks_left--; }}"
    )
}

/// Emits statements that pass the item of a port to a firing.
fn begin_input(
    emitter: &Emitter<'_>,
    plan: &Plan,
    id: InstanceId,
    port: usize,
    input: Input,
) -> String {
    let (endpoint, channel) = match input {
        Input::Ring(channel) => {
            return format!("firing.input_{port} = {};", front(plan, channel, "turn->"));
        }
        Input::Host(endpoint, channel) => (endpoint, channel),
    };
    let host = format!("host_{port}");
    let (declaration, build) = host_item(emitter, endpoint, &host);
    let expose = expose(emitter, endpoint, channel, &host);
    let ask = prefetch::of_records(emitter, plan, id, port, endpoint);
    format!(
        "{declaration} if (ready >> {port} & 1) {{ {ask}{build} {expose} }} \
         firing.input_{port} = {host};"
    )
}

/// Emits the function that passes items from one endpoint to another.
fn step_through(emitter: &Emitter<'_>, id: ChannelId) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let (Source::Endpoint(from), Sink::Endpoint(to)) = (channel.source, channel.sink) else {
        return String::new();
    };
    let mut text = format!(
        "OUT_OF_LINE bool step_through_{}(struct graph *const graph) {{\n\
         \x20   bool has_moved = false;\n    while ({} && {}) {{\n",
        id.0,
        host_is_ready(emitter, from),
        has_room(channel.item, to)
    );
    if emitter.records {
        text += &format!("        if ({RECORD_IS_FULL}) break;\n");
    }
    text += &body::attempt_through(emitter, id, from, to);
    let (declaration, build) = host_item(emitter, from, "host");
    text += &format!("        {declaration}\n        {build}\n");
    text += &format!("        {}\n", expose(emitter, from, id, "host"));
    let output = format!("&graph->endpoint_{}", to.0);
    let source = format!("&graph->endpoint_{}", from.0);
    text += &format!("        {}\n", advance(emitter, from, id, "host", "graph->"));
    text += &format!("        {}\n", write_item(channel.item, &output, "host", Some(source)));
    text + "        has_moved = true;\n    }\n    return has_moved;\n}\n\n"
}

fn run(emitter: &Emitter<'_>, plan: &Plan) -> String {
    let graph = &emitter.program.graph;
    let mut text = String::from(
        "static uint32_t run(void *const memory, struct endpoint_io *const io) {\n\
         \x20   struct graph *const graph = memory;\n\
         \x20   graph->runtime->has_stopped = false;\n",
    );
    for (at, endpoint) in graph.endpoints.iter().enumerate() {
        let ty = endpoint_type(endpoint.item, endpoint.direction);
        text += &match endpoint.item {
            Item::Flit if endpoint.direction == Direction::Into => {
                format!("    {ty}_attach(&graph->endpoint_{at}, &io[{at}], {at});\n")
            }
            Item::Flit | Item::Packet { .. } => {
                format!("    {ty}_attach(&graph->endpoint_{at}, &io[{at}]);\n")
            }
            Item::Bits(_) => format!(
                "    graph->endpoint_{at}.data = io[{at}].data;\n\
                 \x20   graph->endpoint_{at}.count = io[{at}].count;\n\
                 \x20   graph->endpoint_{at}.at = 0;\n{}",
                match endpoint.direction {
                    Direction::Into => format!("    graph->endpoint_{at}.asked = 0;\n"),
                    Direction::OutOf => String::new(),
                }
            ),
        };
    }
    text += &format!(
        "    bool has_moved = true;\n\
         \x20   for (uint32_t left = {ROUNDS}; has_moved && left > 0; left--) {{\n\
         \x20       if (left != {ROUNDS} && gives_way(graph->runtime)) break;\n\
         \x20       has_moved = false;\n\
         \x20       graph->waits_for_time = false;\n\
         \x20       graph->runtime->clock_reads_left = 0;\n"
    );
    let outputs = || {
        graph.channels.iter().enumerate().filter_map(|(at, channel)| match channel.sink {
            Sink::Endpoint(endpoint) if has_ring(channel) => Some((at, channel, endpoint)),
            _ => None,
        })
    };
    for (at, channel, endpoint) in outputs() {
        let from = front(plan, ChannelId::new(at), "graph->");
        let output = format!("&graph->endpoint_{}", endpoint.0);
        text += &format!(
            "        while (graph->channel_{at}.fill != 0 && {}) {{\n\
             \x20           {}\n            pop_{at}(&graph->channel_{at});\n\
             \x20           has_moved = true;\n        }}\n",
            has_room(channel.item, endpoint),
            write_item(channel.item, &output, &from, None)
        );
    }
    for (at, _) in graph.channels.iter().enumerate().filter(|(_, it)| is_through(it)) {
        text += &format!("        has_moved |= step_through_{at}(graph);\n");
    }
    text += &units::step_all(emitter, plan);
    text += "    }\n    bool has_input = false;\n";
    for (at, endpoint) in graph.endpoints.iter().enumerate() {
        if endpoint.direction == Direction::Into {
            let ready = host_is_ready(emitter, EndpointId::new(at));
            text += &format!("    has_input |= {ready};\n");
        } else if endpoint.item == Item::Flit {
            text += &format!("    flit_output_detach(&graph->endpoint_{at});\n");
        }
        text += &format!("    io[{at}].done = graph->endpoint_{at}.at;\n");
    }
    text += &keep_packets(emitter);
    if emitter.records {
        text += &format!("    if ({RECORD_IS_FULL}) return STATUS_RECORD_FULL;\n");
    }
    text += "    if (has_moved) return STATUS_BUDGET;\n";
    for (at, ..) in outputs() {
        text += &format!("    if (graph->channel_{at}.fill != 0) return STATUS_OUTPUT_FULL;\n");
    }
    for (_, channel) in graph.channels.iter().enumerate().filter(|(_, it)| is_through(it)) {
        let (Source::Endpoint(from), Sink::Endpoint(to)) = (channel.source, channel.sink) else {
            continue;
        };
        let (ready, room) = (host_is_ready(emitter, from), has_room(channel.item, to));
        text += &format!("    if ({ready} && !({room})) return STATUS_OUTPUT_FULL;\n");
    }
    text += "    if (graph->waits_for_time) return STATUS_WAITING;\n";
    // Items that wait now are waiting for an instance.
    text += &format!(
        "    for (uint64_t at = 0; at < {}; at++) {{\n\
         \x20       const struct channel *const channel = CHANNEL(channels[at]);\n\
         \x20       if (channels[at].slots != 0 && channel->fill != 0) return STATUS_STALLED;\n\
         \x20   }}\n",
        graph.channels.len()
    );
    text + "    return has_input ? STATUS_STALLED : STATUS_IDLE;\n}\n\n"
}

/// Emits statements that copy packets inside the graph out of the host's frames, which are invalid
/// after the run.
fn keep_packets(emitter: &Emitter<'_>) -> String {
    let graph = &emitter.program.graph;
    let mut text = String::new();
    let has_packets = |channel: &Channel| has_ring(channel) && is_packet(channel.item);
    if graph.channels.iter().any(has_packets) {
        text += "    const uint64_t count = sizeof packet_rings / sizeof *packet_rings;\n\
                 \x20   for (uint64_t at = 0; at < count; at++) {\n\
                 \x20       keep_packets(graph, &channels[packet_rings[at]]);\n    }\n";
    }
    for (at, instance) in graph.instances.iter().enumerate() {
        let handler = emitter.function(emitter.program.element(instance.element).handler);
        if suspends(handler) {
            text += &keep_suspended(emitter, handler, &format!("graph->frame_{at}"));
        }
    }
    text
}

fn start(emitter: &Emitter<'_>, plan: &Plan) -> String {
    let graph = &emitter.program.graph;
    // It runs once, and its size is proportional to the graph.
    let mut text = if plan.shares { "__attribute__((optnone, noinline)) " } else { "" }.to_owned();
    text += "static void start(void *const memory, struct runtime *const runtime, \
             const uint64_t seed) {\n\
             \x20   struct graph *const graph = memory;\n    graph->runtime = runtime;\n";
    for (at, instance) in graph.instances.iter().enumerate() {
        let element = emitter.program.element(instance.element);
        let mask = all_ports(element.inputs.len());
        text += &format!(
            "    graph->instance_{at}.runtime = runtime;\n\
             \x20   graph->instance_{at}.index = {at};\n\
             \x20   graph->instance_{at}.traps = graph->traps_{at};\n\
             \x20   graph->instance_{at}.mask = {mask};\n\
             \x20   graph->instance_{at}.random = seed ^ UINT64_C({:#x});\n",
            (at as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95)
        );
        text += &super::tables::start(element, at);
        for (object, _) in element.state.iter().enumerate().filter(|(_, it)| has_initial(it)) {
            let from = format!("initial_{}_{object}", instance.element.0);
            text +=
                &format!("    memcpy(graph->state_{at}.object_{object}, {from}, sizeof {from});\n");
        }
    }
    for (at, instance) in graph.instances.iter().enumerate() {
        if emitter.program.element(instance.element).init.is_some() {
            text += &format!(
                "    call_{}(&graph->instance_{at}, &graph->state_{at}, UINT32_MAX - 1, NULL, \
                 NULL);\n",
                instance.element.0
            );
        }
    }
    text + "}\n\n"
}

fn dispatch(emitter: &Emitter<'_>) -> String {
    let mut text = String::from(
        "static uint32_t call(void *const memory, const uint32_t instance, const uint32_t method,\n\
         \x20                    const uint8_t *const arguments, uint8_t *const result) {\n\
         \x20   struct graph *const graph = memory;\n\
         \x20   graph->runtime->clock_reads_left = 0;\n    switch (instance) {\n",
    );
    for (at, instance) in emitter.program.graph.instances.iter().enumerate() {
        text += &format!(
            "    case {at}: return call_{}(&graph->instance_{at}, &graph->state_{at}, method, \
             arguments, result);\n",
            instance.element.0
        );
    }
    text + "    default: return 0;\n    }\n}\n\n"
}
