// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Units: the functions that step one instance, with everything fused into it.
//!
//! In a graph of few instances, each has its own unit, in which the compiler knows every address.
//! Compile time for that grows with the number of instances. So above a number of instances
//! ([`Options::many_instances`](crate::Options::many_instances)) identical units share functions.
//! The text of the units decides: two of them have the same [`Shape`] if they differ only by the
//! numbers of the instances, channels and endpoints they access. The functions of a shape find
//! those in a table of offsets in the graph, which each unit has.

use super::body;
use super::channels::{commit, commit_declaration, has_ring, ring, send, turn};
use super::functions::suspends;
use super::plan::Plan;
use super::types::item_storage;
use super::worker::{ROUNDS, endpoint_type, step};
use super::{Emitter, breakpoints};
use freeport_ir::{ChannelId, InstanceId, Sink};
use std::collections::{BTreeMap, BTreeSet};

/// Prologue of the functions of shapes.
const RUNTIME: &str = "// A place in the graph, by its position in a unit's table of offsets.\n\
                       #define PLACE(type, at) (*(type *)((uint8_t *)graph + places[at]))\n\n\
                       typedef const uint64_t *restrict places_of_unit;\n\n\
                       struct unit {\n    \
                       bool (*step)(struct graph *graph, places_of_unit places);\n    \
                       const uint64_t *places;\n};\n\n";

/// Loop over all units in one round, if they have a table.
const STEP_ALL: &str = "        for (uint64_t at = 0; at < sizeof units / sizeof *units; at++) {\n\
                        \x20           has_moved |= units[at].step(graph, units[at].places);\n";

/// Emits the functions of all units, and a table of them if some are shared.
pub(super) fn emit(emitter: &Emitter<'_>, plan: &Plan) -> String {
    let ids = (0..emitter.program.graph.instances.len()).map(InstanceId::new).collect::<Vec<_>>();
    match plan.shares {
        true => shared(emitter, plan, &ids),
        false => alone(emitter, plan, &ids),
    }
}

/// Emits the statements that step all instances once.
pub(super) fn step_all(emitter: &Emitter<'_>, plan: &Plan) -> String {
    let may_be_held = |id: InstanceId| breakpoints::may_be_held(emitter, id);
    if plan.shares {
        let may_stop = plan.order.iter().any(|id| may_be_held(*id));
        return STEP_ALL.to_owned() + &gives_way(may_stop) + "        }\n";
    }
    let step = |id: &InstanceId| {
        let may_stop = plan.members(*id).into_iter().any(may_be_held);
        format!("        has_moved |= step_{}(graph);\n", id.0) + &gives_way(may_stop)
    };
    plan.order.iter().map(step).collect()
}

/// Returns the number of instances in all functions with fused members, functions of one shape
/// counted once.
pub(super) fn fused_in_all(emitter: &Emitter<'_>, plan: &Plan) -> usize {
    let ids = (0..emitter.program.graph.instances.len()).map(InstanceId::new);
    let several = ids.map(|id| (id, plan.members(id).len())).filter(|(_, count)| *count > 1);
    let shape = |(id, count)| (Shape::of(emitter, id, &unit(emitter, plan, id)).0, count);
    several.map(shape).collect::<BTreeMap<Shape, usize>>().values().sum()
}

/// Emits statements that end a round after a step if the host waits for that. In the first round
/// every instance has a turn, however often the host wants to act.
fn gives_way(may_stop: bool) -> String {
    let stops = "        if (UNLIKELY(graph->runtime->has_stopped)) break;\n";
    format!(
        "        if (left != {ROUNDS} && gives_way(graph->runtime)) \
         {{ has_moved = true; break; }}\n{}",
        if may_stop { stops } else { "" }
    )
}

/// Emits units that share no functions, and the rings from which the worker itself takes items that
/// leave the graph.
fn alone(emitter: &Emitter<'_>, plan: &Plan, ids: &[InstanceId]) -> String {
    let channels = emitter.program.graph.channels.iter().enumerate();
    let leave = channels.filter(|(_, it)| has_ring(it) && matches!(it.sink, Sink::Endpoint(_)));
    let mut touched: BTreeSet<ChannelId> = leave.map(|(at, _)| ChannelId::new(at)).collect();
    touched.extend(ids.iter().flat_map(|id| rings(emitter, plan, *id)));
    let text = touched.into_iter().map(|id| ring(emitter, plan, id)).collect::<String>();
    text + &ids.iter().map(|id| functions(emitter, plan, *id)).collect::<String>()
}

/// Emits units that share the functions of their shape with other units of it.
fn shared(emitter: &Emitter<'_>, plan: &Plan, ids: &[InstanceId]) -> String {
    let mut shapes: BTreeMap<Shape, Vec<(InstanceId, Vec<Place>)>> = BTreeMap::new();
    for id in ids {
        let (shape, places) = Shape::of(emitter, *id, &unit(emitter, plan, *id));
        shapes.entry(shape).or_default().push((*id, places));
    }
    let (several, single): (Vec<_>, Vec<_>) =
        shapes.into_iter().partition(|(_, units)| units.len() > 1);
    let mut single: Vec<InstanceId> = single.into_iter().map(|(_, units)| units[0].0).collect();
    single.sort_unstable();
    let mut text = RUNTIME.to_owned() + &alone(emitter, plan, &single);
    let mut units = BTreeMap::new();
    for id in single.iter().map(|id| id.0) {
        text += &format!(
            "static bool step_{id}_alone(struct graph *const graph, places_of_unit) {{\n\
             \x20   return step_{id}(graph);\n}}\n\n"
        );
        units.insert(id, format!("step_{id}_alone, NULL"));
    }
    for (at, (shape, alike)) in several.iter().enumerate() {
        text += &shape.definition(at);
        for (id, places) in alike {
            text += &table(*id, places);
            units.insert(id.0, format!("step_0_of_{at}, places_of_{}", id.0));
        }
    }
    let units = plan.order.iter().map(|id| format!("    {{{}}},\n", units[&id.0]));
    text + &format!("static const struct unit units[] = {{\n{}}};\n\n", units.collect::<String>())
}

/// Emits everything that the step of an instance needs.
fn unit(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> String {
    let rings = rings(emitter, plan, id).into_iter().map(|id| ring(emitter, plan, id));
    rings.collect::<String>() + &functions(emitter, plan, id)
}

/// Returns the rings that the step of an instance touches.
fn rings(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> Vec<ChannelId> {
    let channels = &emitter.program.graph.channels;
    let mut touched = plan.channels(id);
    touched.retain(|id| has_ring(&channels[id.index()]));
    touched
}

/// Emits the step of an instance with its turn and the paths of its staged items: into its members,
/// if it is a root; a member that is stepped itself fills rings.
fn functions(emitter: &Emitter<'_>, plan: &Plan, id: InstanceId) -> String {
    let is_root = plan.is_root[id.index()];
    let members = plan.members(id);
    let mut text = turn(plan, id);
    for member in &members {
        text += &format!("{};\n", commit_declaration(emitter, plan, *member, is_root));
    }
    for channel in members.iter().flat_map(|member| &plan.outputs[member.index()]) {
        text += &send(emitter, plan, *channel, is_root);
    }
    for member in &members {
        text += &commit(emitter, plan, *member, is_root);
    }
    if is_root {
        text += &body::emit(emitter, plan, id);
    }
    text + &step(emitter, plan, id)
}

/// Emits the table of a unit.
fn table(id: InstanceId, places: &[Place]) -> String {
    let offsets = places.iter().map(|it| format!("    offsetof(struct graph, {}),\n", it.field));
    let offsets = offsets.collect::<String>();
    format!("static const uint64_t places_of_{}[] = {{\n{offsets}}};\n\n", id.0)
}

/// A location in the graph that functions of a shape find by a table.
struct Place {
    /// Field name in the graph.
    field: String,
    /// The same name with the numbers of the shape.
    name: String,
}

/// Kind of a numbered object in the text of a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Instance,
    Channel,
    Endpoint,
}

/// Text of a unit without its own numbers: instances, channels and endpoints are numbered in order
/// of occurrence, and names of functions end with `_of_@`, where `@` stands for the shape's number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shape(String);

impl Shape {
    fn of(emitter: &Emitter<'_>, stepped: InstanceId, unit: &str) -> (Self, Vec<Place>) {
        let mut renaming = Renaming { emitter, numbers: BTreeMap::new(), places: vec![] };
        renaming.number(Kind::Instance, stepped.index());
        let lines = unit.lines().filter(|line| !line.trim_start().starts_with("//"));
        let functions = lines.map(|line| renaming.line(line) + "\n").collect();
        (Self(functions), renaming.places)
    }

    fn definition(&self, at: usize) -> String {
        format!("// Shape {at}.\n\n{}\n", self.0.replace('@', &at.to_string()))
    }
}

/// Rewrites the text of a unit to that of its shape.
struct Renaming<'e, 'p> {
    emitter: &'e Emitter<'p>,
    /// Numbers in the shape, by kind and number in the graph.
    numbers: BTreeMap<(Kind, usize), usize>,
    places: Vec<Place>,
}

impl Renaming<'_, '_> {
    fn line(&mut self, line: &str) -> String {
        let mut text = String::new();
        let mut left = line;
        while let Some(start) = left.find(is_of_name) {
            let (between, rest) = left.split_at(start);
            let (name, rest) = rest.split_at(rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()));
            text += between;
            left = rest;
            if name == "graph" {
                left = self.graph(&mut text, rest);
            } else {
                text += &self.name(name);
            }
        }
        text + left
    }

    /// Appends the replacement for an access to the graph at the start of `rest`; returns the text
    /// after it.
    fn graph<'t>(&mut self, text: &mut String, rest: &'t str) -> &'t str {
        if let Some(member) = rest.strip_prefix("->") {
            let end = member.find(|c| !is_of_name(c)).unwrap_or(member.len());
            let (name, rest) = member.split_at(end);
            *text += &self.place(name).unwrap_or_else(|| format!("graph->{name}"));
            return rest;
        }
        *text += if text.ends_with("struct ") {
            "graph"
        } else if text.ends_with("const ") {
            "graph, places_of_unit places"
        } else {
            "graph, places"
        };
        rest
    }

    /// Replaces a member of the graph, if it has a number.
    fn place(&mut self, field: &str) -> Option<String> {
        let (head, number, _) = parts(field)?;
        let kind = match head {
            "instance" | "state" | "frame" => Kind::Instance,
            "channel" | "items" | "asked" => Kind::Channel,
            "endpoint" => Kind::Endpoint,
            _ => return None,
        };
        let ty = self.type_of(head, number)?;
        let name = format!("{head}_{}", self.number(kind, number));
        let known = self.places.iter().position(|place| place.name == name);
        let at = known.unwrap_or_else(|| {
            self.places.push(Place { field: field.to_owned(), name });
            self.places.len() - 1
        });
        // A ring is an array.
        let (before, after) = if head == "items" { ("(&", ")") } else { ("", "") };
        Some(format!("{before}PLACE({ty}, {at}){after}"))
    }

    fn type_of(&self, head: &str, number: usize) -> Option<String> {
        let program = self.emitter.program;
        let graph = &program.graph;
        let element = || Some(graph.instances.get(number)?.element);
        Some(match head {
            "state" => format!("struct state_{}", element()?.0),
            "frame" => {
                let handler = program.element(element()?).handler;
                suspends(self.emitter.function(handler))
                    .then(|| format!("struct frame_{}", handler.0))?
            }
            "items" => item_storage(graph.channels.get(number)?.item),
            "asked" => "uint32_t".to_owned(),
            "endpoint" => {
                let endpoint = graph.endpoints.get(number)?;
                format!("struct {}", endpoint_type(endpoint.item, endpoint.direction))
            }
            _ => format!("struct {head}"),
        })
    }

    /// Replaces a name that is not a graph access: that of a function or structure of the unit, or
    /// of a member or variable of those.
    fn name(&mut self, name: &str) -> String {
        let Some((head, number, tail)) = parts(name) else { return name.to_owned() };
        let (kind, is_global) = match head {
            "step" | "turn" | "commit" | "passes" | "pass" | "pass_from" => (Kind::Instance, true),
            "push" | "pop" | "place" | "send" | "passes_into" | "pass_into" => {
                (Kind::Channel, true)
            }
            "firings" => (Kind::Instance, false),
            "channel" | "was_full" => (Kind::Channel, false),
            _ => return name.to_owned(),
        };
        let of_shape = if is_global { "_of_@" } else { "" };
        format!("{head}_{}{tail}{of_shape}", self.number(kind, number))
    }

    fn number(&mut self, kind: Kind, number: usize) -> usize {
        let next = self.numbers.keys().filter(|(other, _)| *other == kind).count();
        *self.numbers.entry((kind, number)).or_insert(next)
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Splits a name at the first number between underscores: the part before it, the number, and the
/// part after it.
fn parts(name: &str) -> Option<(&str, usize, &str)> {
    let starts = name.match_indices('_').map(|(at, _)| at);
    starts.into_iter().find_map(|at| {
        let rest = &name[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let ends = rest[end..].is_empty() || rest[end..].starts_with('_');
        let number = rest[..end].parse().ok().filter(|_| ends)?;
        Some((&name[..at], number, &rest[end..]))
    })
}
