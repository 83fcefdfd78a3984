// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Passes the body of a packet at once through elements that only forward it.
//!
//! After the first flit of a packet has passed fused elements that are transparent to the other
//! flits (`crate::transparency`), those pass in one step. Each element is evaluated once, with a
//! flit of zeros, to find the ports it would put them to; then cursors and counters advance as if
//! each flit had been fired. If that is not possible, nothing happens, and the flits pass one by
//! one.

use super::channels::{fired, room};
use super::elements::may_do_nothing;
use super::plan::{Input, Plan};
use super::{Emitter, breakpoints, comment, has_fixed_mask};
use crate::transparency::Transparency;
use freeport_ir::{ChannelId, EndpointId, InstanceId, Item, OnFull, Sink, Source};

/// Emits functions for a transparent root of host frames, and for the members fused into it.
pub(super) fn emit(emitter: &Emitter<'_>, plan: &Plan, root: InstanceId) -> String {
    let mut text = String::new();
    for id in plan.members(root).iter().rev().filter(|id| passes(emitter, plan, **id)) {
        for channel in &plan.outputs[id.index()] {
            text += &enter(emitter, plan, *channel);
        }
        text += &instance(emitter, plan, *id);
        if let [Input::Host(endpoint, channel)] = plan.inputs[id.index()][..] {
            text += &start(emitter, *id, endpoint, channel);
        }
    }
    text
}

/// Emits the statement that passes as many flits as possible, in the step of a root.
pub(super) fn attempt(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> Option<String> {
    let [Input::Host(endpoint, _)] = plan.inputs[id.index()][..] else { return None };
    passes(emitter, plan, id).then(|| {
        format!(
            "if (flit_input_is_inside(&graph->endpoint_{}) && pass_from_{}(graph, turn)) \
             {{ has_moved = true; continue; }}",
            endpoint.0, id.0
        )
    })
}

/// Emits the same statement for a channel from endpoint to endpoint.
pub(super) fn attempt_through(
    emitter: &Emitter<'_>,
    id: ChannelId,
    from: EndpointId,
    to: EndpointId,
) -> String {
    if emitter.program.graph.channels[id.index()].item != Item::Flit {
        return String::new();
    }
    format!(
        "        struct flit_input *const input = &graph->endpoint_{};\n\
         \x20       struct flit_output *const output = &graph->endpoint_{};\n\
         \x20       if (flit_input_is_inside(input) && flit_output_passes(output, input)) {{\n\
         \x20           const struct passage passage = passage_of(input, PASSES_REST);\n\
         \x20           struct channel *const channel = &graph->channel_{};\n{}\
         \x20           flit_output_pass(output, &passage);\n\
         \x20           flit_input_advance(input, passage.flits);\n\
         \x20           has_moved = true;\n            continue;\n        }}\n",
        from.0,
        to.0,
        id.0,
        entered(emitter, id, "&passage", "passage.input->is_exposed")
    )
}

/// Returns whether bodies may pass an instance, given its element and its writer.
fn passes(emitter: &Emitter<'_>, plan: &Plan, mut id: InstanceId) -> bool {
    let graph = &emitter.program.graph;
    loop {
        if plan.transparency(emitter.program, id) == Transparency::None {
            return false;
        }
        let [input] = plan.inputs[id.index()][..] else { return false };
        match (input, graph.channels[input.channel().index()].source) {
            (Input::Host(..), _) => return true,
            (Input::Ring(channel), Source::Port(writer, _)) if plan.is_fused[channel.index()] => {
                id = writer;
            }
            _ => return false,
        }
    }
}

/// Emits the start of a passage, at the host's frame.
fn start(emitter: &Emitter<'_>, id: InstanceId, from: EndpointId, channel: ChannelId) -> String {
    format!(
        "INLINE bool pass_from_{0}(struct graph *const graph, struct turn_{0} *const turn) {{\n\
         \x20   struct flit_input *const input = &graph->endpoint_{1};\n\
         \x20   struct channel *const channel = &turn->channel_{2};\n\
         \x20   const uint32_t passes = passes_{0}(graph, turn, input);\n\
         \x20   const struct passage passage = passage_of(input, passes);\n\
         \x20   if (passes == PASSES_NOTHING || passage.flits == 0) return false;\n{3}\
         \x20   pass_{0}(graph, turn, &passage);\n\
         \x20   flit_input_advance(input, passage.flits);\n\
         \x20   return true;\n}}\n\n",
        id.0,
        from.0,
        channel.0,
        entered(emitter, channel, "&passage", "input->is_exposed")
    )
}

/// Emits statements that count a passage that enters `channel`, and record all of it except the
/// first `known` flits.
fn entered(emitter: &Emitter<'_>, id: ChannelId, passage: &str, known: &str) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let mut text = format!("    count_passage(channel, {passage});\n");
    if emitter.records {
        text += &format!(
            "    record_passage(graph->runtime, &graph->channel_{}.history, {passage}, {known});\n",
            id.0
        );
        if channel.on_full == OnFull::DropCounted {
            text += &format!(
                "    const uint8_t is_kept = 1;\n\
                 \x20   record_often(graph->runtime, &graph->channel_{}.keep, &is_kept, 1, \
                 ({passage})->flits - {known});\n",
                id.0
            );
        }
    }
    text
}

/// Emits the functions that check what a channel lets pass, and pass it.
fn enter(emitter: &Emitter<'_>, plan: &Plan, id: ChannelId) -> String {
    let channel = &emitter.program.graph.channels[id.index()];
    let at = id.0;
    let (asked, passed) = match channel.sink {
        Sink::Endpoint(to) => (
            format!("flit_output_passes(&graph->endpoint_{}, input)", to.0),
            format!("flit_output_pass(&graph->endpoint_{}, passage);", to.0),
        ),
        Sink::Port(reader, _) if passes(emitter, plan, reader) => (
            format!("passes_{}(graph, turn, input)", reader.0),
            format!("pass_{}(graph, turn, passage);", reader.0),
        ),
        Sink::Port(..) => ("PASSES_NOTHING".to_owned(), String::new()),
    };
    let Source::Port(writer, _) = channel.source else { return String::new() };
    let root = plan.root[writer.index()].0;
    let is_lossy = channel.on_full == OnFull::DropCounted;
    let dropping = if is_lossy { " || turn->channel_{at}.is_dropping" } else { "" };
    let dropping = dropping.replace("{at}", &at.to_string());
    let kept = if is_lossy { "    channel->is_inside = !passage->has_last;\n" } else { "" };
    format!(
        "INLINE uint32_t passes_into_{at}(struct graph *const graph,\n\
         \x20    struct turn_{root} *const turn,\n\
         \x20                             const struct flit_input *const input) {{\n\
         \x20   if (turn->channel_{at}.fill != 0{dropping}) return PASSES_NOTHING;\n\
         \x20   return {asked};\n}}\n\n\
         INLINE void pass_into_{at}(struct graph *const graph,\n\
         \x20    struct turn_{root} *const turn,\n\
         \x20                      const struct passage *const passage) {{\n\
         \x20   struct channel *const channel = &turn->channel_{at};\n{}{kept}\
         \x20   {passed}\n}}\n\n",
        entered(emitter, id, "passage", "0")
    )
}

/// Emits the functions that check what an instance lets pass, and pass it.
fn instance(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> String {
    let program = emitter.program;
    let element = program.element_of(id);
    let (at, element_at) = (id.0, program.instance(id).element.0);
    let root = plan.root[id.index()].0;
    let fired = fired(emitter, id).replace("++", " += passage->flits");
    let asks = format!(
        "    static const struct wide_512 body;\n\
         \x20   struct firing_{element_at} firing;\n\
         \x20   begin_{element_at}(&firing, &graph->instance_{at}, 1);\n\
         \x20   firing.input_0 = &body;\n\
         \x20   function_{}(&graph->state_{at}, &firing);\n",
        element.handler.0
    );
    let mut conditions = room(emitter, plan, id);
    if !has_fixed_mask(program, element) {
        conditions.push(format!("graph->instance_{at}.mask == 1"));
    }
    conditions.extend(breakpoints::is_free(emitter, id));
    let mut text = format!(
        "// Through {}.\nINLINE uint32_t passes_{at}(struct graph *const graph,\n\
         \x20    struct turn_{root} *const turn,\n\
         \x20                       const struct flit_input *const input) {{\n",
        comment(&program.instance(id).name)
    );
    if !conditions.is_empty() {
        text += &format!("    if (!({})) return PASSES_NOTHING;\n", conditions.join(" && "));
    }
    text += &asks;
    let most = match plan.transparency(program, id) {
        Transparency::Rest => "PASSES_REST",
        _ => "PASSES_BODY",
    };
    text += &format!("    uint32_t passes = {most}, next;\n");
    let outputs = || plan.outputs[id.index()].iter().enumerate();
    for (port, channel) in outputs() {
        text += &format!(
            "    if (firing.is_staged_{port} &&\n\
             \x20       (next = passes_into_{}(graph, turn, input)) < passes) passes = next;\n",
            channel.0
        );
    }
    text += &format!(
        "    return passes;\n}}\n\nINLINE void pass_{at}(struct graph *const graph,\n\
         \x20    struct turn_{root} *const turn,\n\
         \x20                const struct passage *const passage) {{\n\
         \x20   struct instance *const instance = &graph->instance_{at};\n{asks}\
         \x20   {fired}\n\
         \x20   instance->out_of_range += passage->flits * firing.activation.out_of_range;\n"
    );
    if may_do_nothing(program, element) {
        text += "    instance->is_quiet = false;\n";
    }
    if emitter.records && emitter.has_choice[element_at as usize] {
        text += "    record_often(graph->runtime, &instance->ready, &firing.ready, 8, \
                 passage->flits);\n";
    }
    for (port, channel) in outputs() {
        text += &format!(
            "    if (firing.is_staged_{port}) pass_into_{}(graph, turn, passage);\n",
            channel.0
        );
    }
    text + "}\n\n"
}
