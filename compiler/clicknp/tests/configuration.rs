// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Graphs built from configurations. Elements are not lowered: their ports are taken as declared.

use crate::ports_only::PortsOnly;
use freeport_clicknp::config::build;
use freeport_clicknp::diagnostic::Diagnostic;
use freeport_clicknp::load::{load_file, load_text};
use freeport_ir as ir;
use std::path::Path;

const ELEMENTS: &str = ".element Count (flit in -> flit out) { }\n\
    .element Tee <uint N = 2> (flit in -> flit out[N]) { }\n\
    .element Merge <uint N = 2> (flit in[N] -> flit out) { }\n\
    .element PktLogger (flit in -> ) { }\n\
    .element Two (flit left, uint right -> uint a, flit b) { }\n\
    .element Number ( -> uint out) { }\n.element Eat (uint in -> ) { }\n";

fn build_text(text: &str) -> (ir::Graph, Vec<String>) {
    let loaded = load_text(Path::new("test.cnp"), format!("{ELEMENTS}{text}"), &[]);
    assert_eq!(loaded.diagnostics.len(), 0, "{text}");
    let mut elements = PortsOnly::of(&loaded.files);
    let mut diagnostics = vec![];
    let graph = build(&loaded.files, &loaded.sources, &[], &mut elements, &mut diagnostics);
    let describe = |one: &Diagnostic| format!("{} {}", one.code, one.message);
    (graph, diagnostics.iter().map(describe).collect())
}

/// Returns the channels of a configuration without errors, as `writer.port -> reader.port`.
fn channels(text: &str) -> Vec<String> {
    let (graph, errors) = build_text(text);
    assert_eq!(errors, [""; 0], "{text}");
    let name = |id: ir::InstanceId| graph.instances[id.index()].name.as_str();
    let endpoint = |id: ir::EndpointId| graph.endpoints[id.index()].name.clone();
    let show = |channel: &ir::Channel| {
        let source = match channel.source {
            ir::Source::Port(id, port) => format!("{}.{}", name(id), port.0),
            ir::Source::Endpoint(id) => endpoint(id),
        };
        let sink = match channel.sink {
            ir::Sink::Port(id, port) => format!("{}.{}", name(id), port.0),
            ir::Sink::Endpoint(id) => endpoint(id),
        };
        format!("{source} -> {sink}")
    };
    graph.channels.iter().map(show).collect()
}

#[test]
fn the_published_configuration() {
    let text = "Count :: cnt @\nTee :: tee\nhost PktLogger :: logger\n\n\
        from_tor -> cnt -> tee [1] -> to_tor\ntee [2] -> logger\n";
    let want = ["from_tor -> cnt.0", "cnt.0 -> tee.0", "tee.0 -> to_tor", "tee.1 -> logger.0"];
    assert_eq!(channels(text), want);
    let (graph, _) = build_text(text);
    let flags: Vec<_> = graph.instances.iter().map(|one| (one.host, one.controlled)).collect();
    assert_eq!(flags, [(false, true), (false, false), (true, false)]);
    assert!(graph.channels.iter().all(|channel| channel.depth == ir::DEFAULT_DEPTH));
    assert!(graph.endpoints.iter().all(|endpoint| endpoint.item == ir::Item::Flit));
}

#[test]
fn the_examples_find_their_elements_in_the_library() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, instances, channels) in [("capture", 3, 4), ("forward", 2, 4), ("checksum", 3, 4)] {
        let path = top.join(format!("examples/{name}.cnp"));
        let mut loaded = load_file(&path, &[top.join("elements")]);
        let mut elements = PortsOnly::of(&loaded.files);
        let graph =
            build(&loaded.files, &loaded.sources, &[], &mut elements, &mut loaded.diagnostics);
        let errors: Vec<_> =
            loaded.diagnostics.iter().map(|one| one.render(&loaded.sources)).collect();
        assert_eq!(errors, [""; 0], "{name}");
        assert_eq!((graph.instances.len(), graph.channels.len()), (instances, channels), "{name}");
    }
}

#[test]
fn arrays_fan_out_and_in() {
    let text = "Count :: w#3 Tee<3> :: split Merge<3> :: merge\n\
        from_tor -> split -> w -> merge -> to_tor";
    let want = [
        "from_tor -> split.0",
        "split.0 -> w#1.0",
        "split.1 -> w#2.0",
        "split.2 -> w#3.0",
        "w#1.0 -> merge.0",
        "w#2.0 -> merge.1",
        "w#3.0 -> merge.2",
        "merge.0 -> to_tor",
    ];
    assert_eq!(channels(text), want);
    let text = "Count :: w#2 from_tor -> w#1 -> w#2 -> to_tor";
    assert_eq!(channels(text), ["from_tor -> w#1.0", "w#1.0 -> w#2.0", "w#2.0 -> to_tor"]);
    let text = "Count :: v#2 Count :: w#2 Tee :: t Merge :: m\n\
        from_tor -> t [out] -> v -> w -> [in] m -> to_tor";
    assert_eq!(channels(text).len(), 8);
}

#[test]
fn ports_are_chosen_by_number_by_name_and_by_index() {
    let text = "Two :: two Number :: number Eat :: eat from_tor -> [left] two [2] -> to_tor\n\
        number -> [right] two [a] -> eat";
    let want = ["from_tor -> two.0", "two.1 -> to_tor", "number.0 -> two.1", "two.0 -> eat.0"];
    assert_eq!(channels(text), want);
    let text = "Tee :: t from_tor -> t [out[1]] -> to_tor t [out[0]] -> to_nic";
    assert_eq!(channels(text), ["from_tor -> t.0", "t.1 -> to_tor", "t.0 -> to_nic"]);
}

#[test]
fn endpoints_carry_what_they_are_joined_to() {
    let (graph, errors) = build_text("Number :: n n -> to_host from_tor -> to_tor");
    assert_eq!(errors, [""; 0]);
    let items: Vec<_> = graph.endpoints.iter().map(|one| (one.name.as_str(), one.item)).collect();
    let flit = ir::Item::Flit;
    assert_eq!(items, [("to_host", ir::Item::Bits(32)), ("from_tor", flit), ("to_tor", flit)]);
}

#[test]
fn groups_are_expanded_with_their_parameters() {
    let text = "group Chain<uint N = 1> (flit in -> flit out) {\n\
        Tee<N + 1> :: tee Merge<N + 1> :: merge\n\
        begin -> tee -> {depth = N + 3} mid; Count :: mid#2 mid -> merge -> end }\n\
        group Outer (flit in -> flit out) { Chain :: inner begin [1] -> inner -> [out] end }\n\
        host Outer :: o#2 from_tor -> o#1 -> {depth = 5} o#2 -> {lossy} to_tor";
    let (graph, errors) = build_text(text);
    assert_eq!(errors, [""; 0]);
    let names: Vec<_> = graph.instances.iter().map(|one| one.name.as_str()).collect();
    let first = ["o#1.inner.tee", "o#1.inner.merge", "o#1.inner.mid#1", "o#1.inner.mid#2"];
    assert_eq!(names[..4], first);
    assert_eq!(names.len(), 8);
    assert!(graph.instances.iter().all(|one| one.host));
    let into = graph.channels.iter().find(|one| matches!(one.source, ir::Source::Endpoint(_)));
    let tee = ir::Sink::Port(ir::InstanceId(0), ir::PortId(0));
    assert_eq!(into.map(|channel| channel.sink), Some(tee));
    let depths: Vec<_> = graph.channels.iter().map(|channel| channel.depth).collect();
    assert_eq!(depths.iter().filter(|depth| **depth == 4).count(), 4);
    assert_eq!(depths.iter().filter(|depth| **depth == 5).count(), 1);
    let lossy = |channel: &&ir::Channel| channel.on_full == ir::OnFull::DropCounted;
    assert_eq!(graph.channels.iter().filter(lossy).count(), 1);
    assert_eq!(graph.channels.len(), 11);
}

#[test]
fn every_mistake_has_its_own_code() {
    let cases = [
        ("E0501", "Cuont :: a"),
        ("E0502", "Count :: a from_tor -> b a -> to_tor"),
        ("E0503", "Count :: a from_tor -> [2] a -> to_tor"),
        ("E0503", "Count :: a from_tor -> [none] a -> to_tor"),
        ("E0503", "Number :: n Eat :: e n -> e -> to_tor"),
        ("E0504", "Count :: a Tee :: t from_tor -> t t -> a -> to_tor t [2] -> a"),
        ("E0504", "Number :: n Eat :: e#2 n -> e#1 n -> e#2"),
        ("E0505", "Tee :: t from_tor -> t -> to_tor"),
        ("E0506", "Count :: a a -> to_tor"),
        ("E0507", "Number :: n Count :: a n -> a -> to_tor"),
        ("E0508", "to_tor -> from_tor"),
        ("E0509", "Count :: a Tee :: a"),
        ("E0509", "Count :: from_tor"),
        ("E0509", ".element Count (->) { }"),
        ("E0510", "Count :: w#3 Tee :: t from_tor -> t -> w"),
        ("E0510", "Count :: a from_tor -> a#1 -> to_tor"),
        ("E0511", "Count :: w#0"),
        ("E0511", "from_tor -> {depth = 0} to_tor"),
        ("E0511", "Count :: w#2 from_tor -> w#3"),
        ("E0511", "group A (->) { } group B (->) { A :: a#9999 } B :: b#9999"),
        ("E0512", "group A (flit in -> flit out) { A :: a begin -> a -> end } A :: a"),
        ("E0513", "Count :: a from_tor -> a [1] -> to_tor [1]"),
        ("E0513", "from_tor [1] -> to_tor"),
        ("E0514", "Count :: a begin -> a -> to_tor"),
        ("E0515", "group A<uint N> (flit in -> flit out) { begin -> end } A :: a"),
        ("E0515", "group A (flit in -> flit out) { begin -> end } A<3> :: a"),
    ];
    for (code, text) in cases {
        let (_, errors) = build_text(text);
        assert!(errors.iter().any(|error| error.starts_with(code)), "{text}: {errors:?}");
    }
}

#[test]
fn a_group_port_must_be_used_on_both_sides() {
    let (_, errors) = build_text("group A (flit in -> flit out) { } A :: a from_tor -> a");
    let want = [
        "E0505 nothing reads from port `in` of group `a`",
        "E0506 nothing writes to port `out` of group `a`",
        "E0505 nothing reads from port `out` of group `a`",
    ];
    assert_eq!(errors, want);
    let (_, errors) =
        build_text("group A (uint in -> flit out) { begin -> end } A :: a from_tor -> a -> to_tor");
    assert_eq!(errors, ["E0507 records of 32 bits cannot go where flits are read"]);
    let (_, errors) = build_text(
        "group A (uint in -> flit out) { Count :: c begin -> c -> end }\n\
         A :: a Tee :: t from_tor -> t t -> a -> to_tor t [2] -> to_nic",
    );
    assert_eq!(errors, ["E0507 flits cannot go where records of 32 bits are read"]);
}
