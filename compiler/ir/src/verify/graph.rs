// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Verification of the graph: each port and each endpoint is connected once, to a peer with the
//! same kind of item.

use super::elements::check_item;
use super::{Report, repeated};
use crate::{Direction, EndpointId, InstanceId, Item, PortId, Program, Sink, Source};

pub(super) fn check(program: &Program, report: &mut Report) {
    let graph = &program.graph;
    report.enter("graph", Default::default());
    for endpoint in &graph.endpoints {
        check_item(endpoint.item, &endpoint.name, report);
    }
    let twice = repeated(graph.instances.iter().map(|instance| &instance.name));
    report.require(twice.is_none(), || format!("two instances are named {}", text(twice)));
    let twice = repeated(graph.endpoints.iter().map(|endpoint| &endpoint.name));
    report.require(twice.is_none(), || format!("two endpoints are named {}", text(twice)));
    for (at, instance) in graph.instances.iter().enumerate() {
        report.loc = instance.loc;
        let (id, element) = (InstanceId::new(at), program.element(instance.element));
        for (port, declared) in element.outputs.iter().enumerate() {
            let name = format!("{}.{}", instance.name, declared.name);
            let source = Source::Port(id, PortId::new(port));
            check_source(program, source, declared.item, &name, report);
        }
        for (port, declared) in element.inputs.iter().enumerate() {
            let name = format!("{}.{}", instance.name, declared.name);
            check_sink(program, Sink::Port(id, PortId::new(port)), declared.item, &name, report);
        }
    }
    for (at, endpoint) in graph.endpoints.iter().enumerate() {
        report.loc = Default::default();
        let (id, item, name) = (EndpointId::new(at), endpoint.item, &endpoint.name);
        let (sources, sinks) = (sources(program, id), sinks(program, id));
        match endpoint.direction {
            Direction::Into => {
                check_source(program, Source::Endpoint(id), item, name, report);
                report.require(sinks == 0, || format!("{name} leads into the graph, not out"));
            }
            Direction::OutOf => {
                check_sink(program, Sink::Endpoint(id), item, name, report);
                report.require(sources == 0, || format!("{name} leads out of the graph, not in"));
            }
        }
    }
    for channel in &graph.channels {
        report.loc = channel.loc;
        report.require(channel.depth > 0, || "a channel has no room".to_owned());
    }
}

fn check_source(program: &Program, end: Source, item: Item, name: &str, report: &mut Report) {
    let channels = program.graph.channels.iter().filter(|channel| channel.source == end);
    check_end(channels.map(|channel| channel.item).collect(), item, name, report);
}

fn check_sink(program: &Program, end: Sink, item: Item, name: &str, report: &mut Report) {
    let channels = program.graph.channels.iter().filter(|channel| channel.sink == end);
    check_end(channels.map(|channel| channel.item).collect(), item, name, report);
}

fn check_end(channels: Vec<Item>, item: Item, name: &str, report: &mut Report) {
    let count = channels.len();
    report.require(count == 1, || format!("{name} is connected to {count} channels, not to one"));
    for carried in channels {
        report.require(carried == item, || {
            format!("{name} has items {item:?}, and its channel carries {carried:?}")
        });
    }
}

fn sources(program: &Program, id: EndpointId) -> usize {
    let channels = program.graph.channels.iter();
    channels.filter(|channel| channel.source == Source::Endpoint(id)).count()
}

fn sinks(program: &Program, id: EndpointId) -> usize {
    let channels = program.graph.channels.iter();
    channels.filter(|channel| channel.sink == Sink::Endpoint(id)).count()
}

fn text(name: Option<&String>) -> &str {
    name.map_or("", |name| name)
}
