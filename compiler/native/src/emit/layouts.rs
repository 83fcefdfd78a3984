// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where everything is in the graph, and the image: what the host finds its way by.

use super::Emitter;
use super::channels::{has_ring, ring_slots};
use super::plan::Plan;
use super::types::item_storage;
use freeport_ir::{ChannelId, Direction, Item};

/// The tables of layouts and the exported image.
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
    text += "    {0},\n};\n\n";
    text + &format!(
        "__attribute__((visibility(\"default\"))) const struct image freeport_image = {{\n\
         \x20   ABI_VERSION, sizeof(struct graph), _Alignof(struct graph), {}, {}, {},\n\
         \x20   instances, channels, endpoints, start, run, call, act_on_table,\n}};\n",
        graph.instances.len(),
        graph.channels.len(),
        graph.endpoints.len()
    )
}
