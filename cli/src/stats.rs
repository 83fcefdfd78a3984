// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a device counted, for people (`text`), programs (`json`) and Prometheus.

use clap::ValueEnum;
use freeport_ir::{EndpointId, InstanceId, PortId, Program, Sink, Source};
use freeport_nic::device::DeviceCounters;
use serde_json::{Value, json};
use std::fmt::Write;

/// How counters are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Tables
    Text,
    /// One JSON object
    Json,
    /// The Prometheus text exposition
    Prometheus,
}

/// A number with its name and the names of what it is of.
struct Sample {
    metric: &'static str,
    help: &'static str,
    labels: Vec<(&'static str, String)>,
    value: u64,
}

/// The counters of `program` in `format`, with a line break at the end.
pub fn render(program: &Program, counters: &DeviceCounters, format: Format) -> String {
    match format {
        Format::Text => as_text(program, counters),
        Format::Json => format!("{}\n", as_json(program, counters)),
        Format::Prometheus => as_prometheus(&samples(program, counters)),
    }
}

fn as_text(program: &Program, counters: &DeviceCounters) -> String {
    let graph = &program.graph;
    let mut out = format!("{:<28}{:>14}{:>16}{:>12}\n", "endpoint", "frames", "bytes", "dropped");
    for (endpoint, it) in graph.endpoints.iter().zip(&counters.endpoints) {
        let _ = writeln!(
            out,
            "{:<28}{:>14}{:>16}{:>12}",
            endpoint.name, it.frames, it.bytes, it.dropped
        );
    }
    let _ = writeln!(
        out,
        "\n{:<28}{:>14}{:>16}{:>12}{:>8}",
        "instance", "firings", "out of range", "empty reads", "traps"
    );
    for (instance, it) in graph.instances.iter().zip(&counters.instances) {
        let traps: u64 = it.traps.values().sum();
        let _ = writeln!(
            out,
            "{:<28}{:>14}{:>16}{:>12}{traps:>8}",
            instance.name, it.firings, it.out_of_range, it.empty_reads
        );
    }
    let _ = writeln!(out, "\n{:<42}{:>16}{:>12}", "channel", "items", "dropped");
    for (at, it) in counters.channels.iter().enumerate() {
        let _ =
            writeln!(out, "{:<42}{:>16}{:>12}", channel_name(program, at), it.items, it.dropped);
    }
    out
}

fn as_json(program: &Program, counters: &DeviceCounters) -> Value {
    let graph = &program.graph;
    let endpoints = graph.endpoints.iter().zip(&counters.endpoints).map(|(endpoint, it)| {
        json!({
            "name": endpoint.name,
            "frames": it.frames,
            "bytes": it.bytes,
            "dropped": it.dropped,
        })
    });
    let instances = graph.instances.iter().zip(&counters.instances).map(|(instance, it)| {
        let traps = it.traps.iter().map(|(code, count)| (format!("{code:?}"), json!(count)));
        json!({
            "name": instance.name,
            "firings": it.firings,
            "out_of_range": it.out_of_range,
            "empty_reads": it.empty_reads,
            "traps": traps.collect::<serde_json::Map<_, _>>(),
        })
    });
    let channels = counters.channels.iter().enumerate().map(|(at, it)| {
        json!({ "name": channel_name(program, at), "items": it.items, "dropped": it.dropped })
    });
    json!({
        "program": program.name,
        "endpoints": endpoints.collect::<Vec<_>>(),
        "instances": instances.collect::<Vec<_>>(),
        "channels": channels.collect::<Vec<_>>(),
    })
}

fn samples(program: &Program, counters: &DeviceCounters) -> Vec<Sample> {
    let graph = &program.graph;
    let mut samples = vec![];
    let mut add = |metric, help, labels: &[(&'static str, &str)], value| {
        let labels = labels.iter().map(|(key, name)| (*key, name.to_string())).collect();
        samples.push(Sample { metric, help, labels, value });
    };
    for (endpoint, it) in graph.endpoints.iter().zip(&counters.endpoints) {
        let labels = [("endpoint", endpoint.name.as_str())];
        add("endpoint_frames_total", "Frames that passed an outer end.", &labels, it.frames);
        add("endpoint_bytes_total", "Bytes that passed an outer end.", &labels, it.bytes);
        add("endpoint_dropped_total", "Frames no port carried.", &labels, it.dropped);
    }
    for (instance, it) in graph.instances.iter().zip(&counters.instances) {
        let labels = [("instance", instance.name.as_str())];
        add("firings_total", "Firings that did something.", &labels, it.firings);
        add("out_of_range_total", "Accesses out of range.", &labels, it.out_of_range);
        add("empty_reads_total", "Reads of a port without an item.", &labels, it.empty_reads);
        for (code, count) in &it.traps {
            let code = format!("{code:?}");
            add("traps_total", "Traps.", &[labels[0], ("code", &code)], *count);
        }
    }
    for (at, it) in counters.channels.iter().enumerate() {
        let name = channel_name(program, at);
        let labels = [("channel", name.as_str())];
        add("channel_items_total", "Items that entered a channel.", &labels, it.items);
        add("channel_dropped_total", "Items dropped by a full channel.", &labels, it.dropped);
    }
    samples
}

/// Samples of a metric stand together, below its description.
fn as_prometheus(samples: &[Sample]) -> String {
    let mut out = String::new();
    let mut described: Vec<&str> = vec![];
    for first in samples {
        if described.contains(&first.metric) {
            continue;
        }
        described.push(first.metric);
        let _ = writeln!(out, "# HELP freeport_{} {}", first.metric, first.help);
        let _ = writeln!(out, "# TYPE freeport_{} counter", first.metric);
        for sample in samples.iter().filter(|sample| sample.metric == first.metric) {
            let quoted = |(key, name): &(&str, String)| {
                let name = name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                format!("{key}=\"{name}\"")
            };
            let labels: Vec<String> = sample.labels.iter().map(quoted).collect();
            let (metric, value) = (sample.metric, sample.value);
            let _ = writeln!(out, "freeport_{metric}{{{}}} {value}", labels.join(","));
        }
    }
    out
}

/// A channel by its ends: `a.out -> b.in`.
fn channel_name(program: &Program, at: usize) -> String {
    let channel = &program.graph.channels[at];
    let endpoint = |id: EndpointId| program.graph.endpoints[id.index()].name.clone();
    let end = |id: InstanceId, ports: &[freeport_ir::Port], port: PortId| {
        format!("{}.{}", program.instance(id).name, ports[port.index()].name)
    };
    let source = match channel.source {
        Source::Endpoint(id) => endpoint(id),
        Source::Port(id, port) => end(id, &program.element_of(id).outputs, port),
    };
    let sink = match channel.sink {
        Sink::Endpoint(id) => endpoint(id),
        Sink::Port(id, port) => end(id, &program.element_of(id).inputs, port),
    };
    format!("{source} -> {sink}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_metric_stand_together_and_labels_are_quoted() {
        let sample = |metric, name: &str, value| Sample {
            metric,
            help: "Help.",
            labels: vec![("instance", name.to_owned())],
            value,
        };
        let samples =
            [sample("a_total", "x", 1), sample("b_total", "x", 2), sample("a_total", "\"", 3)];
        let wanted = "# HELP freeport_a_total Help.\n# TYPE freeport_a_total counter\n\
            freeport_a_total{instance=\"x\"} 1\nfreeport_a_total{instance=\"\\\"\"} 3\n\
            # HELP freeport_b_total Help.\n# TYPE freeport_b_total counter\n\
            freeport_b_total{instance=\"x\"} 2\n";
        assert_eq!(as_prometheus(&samples), wanted);
    }
}
