// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Layout tables and the image, with which the host locates everything in the graph.

use super::Emitter;
use super::channels::{has_ring, ring_slots};
use super::packets::is_packet;
use super::plan::Plan;
use super::types::item_storage;
use freeport_ir::{ChannelId, Direction, Item};

/// Emits the tables of layouts.
pub(super) fn emit(emitter: &Emitter<'_>, plan: &Plan) -> String {
    let graph = &emitter.program.graph;
    let mut text = String::from("static const struct instance_layout instances[] = {\n");
    for (at, instance) in graph.instances.iter().enumerate() {
        text += &format!(
            "    {{offsetof(struct graph, instance_{}), offsetof(struct graph, state_{}), \
             objects_{2}, tables_{2}}},\n",
            at, at, instance.element.0
        );
    }
    text += "    {0, 0, NULL},\n};\n\nstatic const struct channel_layout channels[] = {\n";
    for (at, channel) in graph.channels.iter().enumerate() {
        let ring = match has_ring(channel) {
            true => format!(
                "offsetof(struct graph, items_{at}), sizeof({}), {}",
                item_storage(channel.item),
                ring_slots(plan, ChannelId::new(at))
            ),
            false => "0, 0, 0".to_owned(),
        };
        text += &format!("    {{offsetof(struct graph, channel_{at}), {ring}}},\n");
    }
    text += "    {0},\n};\n\nstatic const struct endpoint_layout endpoints[] = {\n";
    for (at, endpoint) in graph.endpoints.iter().enumerate() {
        let place = |field: &str| format!("offsetof(struct graph, endpoint_{at}{field})");
        let nowhere = || "~UINT64_C(0)".to_owned();
        let (counters, begun) = match (endpoint.direction, endpoint.item) {
            (Direction::Into, Item::Flit) => (nowhere(), place(".offset")),
            (Direction::OutOf, Item::Flit) => (place(".too_long"), place("")),
            (Direction::OutOf, Item::Packet { .. }) => (place(".too_long"), nowhere()),
            _ => (nowhere(), nowhere()),
        };
        text += &format!("    {{{counters}, {begun}}},\n");
    }
    text += "    {0},\n};\n\n\
             #define CHANNEL(layout) ((struct channel *)((uint8_t *)graph + (layout).offset))\n\n";
    text + &packet_rings(emitter)
}

/// Emits the list of rings in which packets wait, and the function that copies waiting packets out
/// of the host's frames.
fn packet_rings(emitter: &Emitter<'_>) -> String {
    let channels = emitter.program.graph.channels.iter().enumerate();
    let rings = channels.filter(|(_, it)| has_ring(it) && is_packet(it.item));
    let rings = rings.map(|(at, _)| format!("    {at},\n")).collect::<String>();
    if rings.is_empty() {
        return rings;
    }
    format!(
        "static const uint32_t packet_rings[] = {{\n{rings}}};\n\n\
         static void keep_packets(struct graph *const graph, \
         const struct channel_layout *const ring) {{\n\
         \x20   const struct channel *const channel = CHANNEL(*ring);\n\
         \x20   struct packet *const items = (struct packet *)((uint8_t *)graph + ring->items);\n\
         \x20   for (uint32_t at = 0; at < channel->fill; at++) {{\n\
         \x20       const uint64_t slot = (channel->head + at) & (ring->slots - 1);\n\
         \x20       packet_keep(graph->runtime, &items[slot]);\n\
         \x20   }}\n}}\n\n"
    )
}

/// Emits the exported image.
pub(super) fn image(emitter: &Emitter<'_>) -> String {
    let graph = &emitter.program.graph;
    format!(
        "__attribute__((visibility(\"default\"))) const struct image freeport_image = {{\n\
         \x20   ABI_VERSION, sizeof(struct graph), _Alignof(struct graph), {}, {}, {},\n\
         \x20   instances, channels, endpoints, start, run, call, act_on_table,\n}};\n",
        graph.instances.len(),
        graph.channels.len(),
        graph.endpoints.len()
    )
}
