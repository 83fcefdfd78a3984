// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Named counters: as a table, as JSON, and in Prometheus' text exposition format.

use crate::device::DeviceCounters;
use freeport_ir::oracle::{ChannelCounters, Occupancy};
use freeport_ir::{Channel, Direction, InstanceId, Program, Sink, Source, TrapCode};
use serde_json::{Value, json};

/// Counters of a device, by the names of the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Instances in the order of the graph.
    pub instances: Vec<InstanceRow>,
    /// Channels in the order of the graph.
    pub channels: Vec<ChannelRow>,
    /// Endpoints in the order of the graph.
    pub endpoints: Vec<EndpointRow>,
    /// Description of what waits for what; see [`Statistics::with_waits`].
    pub waits: Option<String>,
}

/// Traffic of one or several channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Packets; each record counts as one.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

impl Traffic {
    /// Sums the traffic of the channels of `program` for which `is_at` holds.
    fn of(program: &Program, counters: &DeviceCounters, is_at: impl Fn(&Channel) -> bool) -> Self {
        let channels = program.graph.channels.iter().zip(&counters.channels);
        let mut all = Self::default();
        for (_, counted) in channels.filter(|(channel, _)| is_at(channel)) {
            all.packets += counted.packets;
            all.bytes += counted.bytes;
        }
        all
    }
}

/// The counters of an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceRow {
    /// Name of the instance.
    pub instance: String,
    /// Name of its element type.
    pub element: String,
    /// Firings that did something.
    pub firings: u64,
    /// Traffic of the channels to its inputs, records included.
    pub received: Traffic,
    /// Traffic of the channels from its outputs, records included.
    pub sent: Traffic,
    /// Accesses out of range.
    pub out_of_range: u64,
    /// Reads of an empty port.
    pub empty_reads: u64,
    /// Traps by kind, with their counts.
    pub traps: Vec<(String, u64)>,
}

/// The counters of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelRow {
    /// Ends of the channel, as `a.out -> b.in`.
    pub channel: String,
    /// Traffic counters of the channel.
    pub counted: ChannelCounters,
    /// Occupancy of the channel.
    pub fill: Occupancy,
}

/// The counters of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointRow {
    /// Name of the endpoint.
    pub endpoint: String,
    /// `in` or `out`.
    pub direction: &'static str,
    /// Frames that passed the endpoint.
    pub frames: u64,
    /// Bytes of these frames, without the frame check sequence.
    pub bytes: u64,
    /// Frames that no port took.
    pub dropped: u64,
    /// Frames that the port itself lost; see [`Statistics::with_lost`].
    pub lost: u64,
}

impl Statistics {
    /// Combines counters with their names.
    pub fn new(program: &Program, counters: &DeviceCounters) -> Self {
        let graph = &program.graph;
        let ids = (0..graph.instances.len()).map(InstanceId::new);
        let instances = ids.zip(&graph.instances).zip(&counters.instances);
        let channels = graph.channels.iter().zip(&counters.channels).zip(&counters.fills);
        let endpoints = graph.endpoints.iter().zip(&counters.endpoints);
        Self {
            instances: instances
                .map(|((id, instance), counted)| InstanceRow {
                    instance: instance.name.clone(),
                    element: program.element(instance.element).name.clone(),
                    firings: counted.firings,
                    received: Traffic::of(
                        program,
                        counters,
                        |channel| matches!(channel.sink, Sink::Port(reader, _) if reader == id),
                    ),
                    sent: Traffic::of(
                        program,
                        counters,
                        |channel| matches!(channel.source, Source::Port(writer, _) if writer == id),
                    ),
                    out_of_range: counted.out_of_range,
                    empty_reads: counted.empty_reads,
                    traps: counted.traps.iter().map(|(at, n)| (trap_name(*at), *n)).collect(),
                })
                .collect(),
            channels: channels
                .map(|((channel, counted), fill)| ChannelRow {
                    channel: program.channel_name(channel),
                    counted: *counted,
                    fill: *fill,
                })
                .collect(),
            endpoints: endpoints
                .map(|(endpoint, counted)| EndpointRow {
                    endpoint: endpoint.name.clone(),
                    direction: match endpoint.direction {
                        Direction::Into => "in",
                        Direction::OutOf => "out",
                    },
                    frames: counted.frames,
                    bytes: counted.bytes,
                    dropped: counted.dropped,
                    lost: 0,
                })
                .collect(),
            waits: None,
        }
    }

    /// Adds a description of what waits for what, for a graph in which nothing could run when it
    /// was inspected.
    pub fn with_waits(self, waits: Option<String>) -> Self {
        Self { waits, ..self }
    }

    /// Adds the frames that the ports of endpoints have lost: a receiver before it could lend them,
    /// a transmitter after it accepted them. A device does not know about them.
    pub fn with_lost<'e>(mut self, lost: impl IntoIterator<Item = (&'e str, u64)>) -> Self {
        for (endpoint, lost) in lost {
            let rows = self.endpoints.iter_mut();
            rows.filter(|row| row.endpoint == endpoint).for_each(|row| row.lost += lost);
        }
        self
    }

    /// Formats a table for people.
    pub fn text(&self) -> String {
        let number = |value: u64| value.to_string();
        let traps = |row: &InstanceRow| match row.traps.is_empty() {
            true => "-".to_owned(),
            false => {
                let each = row.traps.iter().map(|(name, count)| format!("{name}: {count}"));
                each.collect::<Vec<_>>().join(", ")
            }
        };
        let instance = |row: &InstanceRow| {
            let InstanceRow { received, sent, .. } = row;
            let moved = [received.packets, received.bytes, sent.packets, sent.bytes].map(number);
            let counts = [row.out_of_range, row.empty_reads].map(number);
            let names = [row.instance.clone(), row.element.clone(), number(row.firings)];
            [&names[..], &moved[..], &counts[..], &[traps(row)]].concat()
        };
        let channel = |row: &ChannelRow| {
            let ChannelCounters { items, packets, bytes, stalls, dropped } = row.counted;
            let Occupancy { waiting, peak, room } = row.fill;
            let counts = [items, packets, bytes, stalls, dropped, waiting, peak, room].map(number);
            [&[row.channel.clone()][..], &counts[..]].concat()
        };
        let endpoint = |row: &EndpointRow| {
            let names = [row.endpoint.clone(), row.direction.to_owned()];
            [&names[..], &[row.frames, row.bytes, row.dropped, row.lost].map(number)].concat()
        };
        let titles = [
            "instance",
            "element",
            "firings",
            "packets in",
            "bytes in",
            "packets out",
            "bytes out",
            "out of range",
            "empty reads",
            "traps",
        ];
        table(&titles, self.instances.iter().map(instance))
            + "\n"
            + &table(
                &[
                    "channel", "items", "packets", "bytes", "stalls", "dropped", "waiting", "peak",
                    "room",
                ],
                self.channels.iter().map(channel),
            )
            + "\n"
            + &table(
                &["endpoint", "direction", "frames", "bytes", "dropped", "lost"],
                self.endpoints.iter().map(endpoint),
            )
            + &self.waits.iter().map(|waits| format!("\n{waits}\n")).collect::<String>()
    }

    /// Returns one object with a list for each kind of row.
    pub fn json(&self) -> Value {
        let instance = |row: &InstanceRow| {
            let traps = row.traps.iter().map(|(name, count)| (name.clone(), json!(count)));
            json!({
                "instance": row.instance, "element": row.element, "firings": row.firings,
                "packets_in": row.received.packets, "bytes_in": row.received.bytes,
                "packets_out": row.sent.packets, "bytes_out": row.sent.bytes,
                "out_of_range": row.out_of_range, "empty_reads": row.empty_reads,
                "traps": traps.collect::<serde_json::Map<_, _>>(),
            })
        };
        let channel = |row: &ChannelRow| {
            let ChannelCounters { items, packets, bytes, stalls, dropped } = row.counted;
            json!({
                "channel": row.channel, "items": items, "packets": packets, "bytes": bytes,
                "stalls": stalls, "dropped": dropped, "waiting": row.fill.waiting,
                "peak": row.fill.peak, "room": row.fill.room,
            })
        };
        let endpoint = |row: &EndpointRow| {
            json!({
                "endpoint": row.endpoint, "direction": row.direction, "frames": row.frames,
                "bytes": row.bytes, "dropped": row.dropped, "lost": row.lost,
            })
        };
        json!({
            "instances": self.instances.iter().map(instance).collect::<Vec<_>>(),
            "channels": self.channels.iter().map(channel).collect::<Vec<_>>(),
            "endpoints": self.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
            "waits": self.waits,
        })
    }

    /// Formats the counters in Prometheus' text exposition format.
    pub fn prometheus(&self) -> String {
        let mut out = String::new();
        let instance =
            |row: &InstanceRow| labels(&[("instance", &row.instance), ("element", &row.element)]);
        let firings = self.instances.iter().map(|row| (instance(row), row.firings));
        family(&mut out, "firings", "Firings that did something.", firings);
        let moved = self.instances.iter().flat_map(|row| {
            [("in", row.received), ("out", row.sent)].map(|(direction, moved)| {
                (labels(&[("instance", &row.instance), ("direction", direction)]), moved)
            })
        });
        let packets = moved.clone().map(|(labels, moved)| (labels, moved.packets));
        family(&mut out, "instance_packets", "Packets and records at an instance.", packets);
        let bytes = moved.map(|(labels, moved)| (labels, moved.bytes));
        family(&mut out, "instance_bytes", "Bytes of packets and records at an instance.", bytes);
        let ranges = self.instances.iter().map(|row| (instance(row), row.out_of_range));
        family(&mut out, "out_of_range", "Accesses out of range.", ranges);
        let reads = self.instances.iter().map(|row| (instance(row), row.empty_reads));
        family(&mut out, "empty_reads", "Reads of an empty port.", reads);
        let traps = self.instances.iter().flat_map(|row| {
            let each = row.traps.iter();
            each.map(|(code, count)| {
                (labels(&[("instance", &row.instance), ("code", code)]), *count)
            })
        });
        family(&mut out, "traps", "Firings that ended in a trap.", traps);
        let channel = |row: &ChannelRow| labels(&[("channel", &row.channel)]);
        let items = self.channels.iter().map(|row| (channel(row), row.counted.items));
        family(&mut out, "channel_items", "Items that entered a channel.", items);
        let packets = self.channels.iter().map(|row| (channel(row), row.counted.packets));
        family(&mut out, "channel_packets", "Packets that entered a channel.", packets);
        let bytes = self.channels.iter().map(|row| (channel(row), row.counted.bytes));
        family(&mut out, "channel_bytes", "Bytes that entered a channel.", bytes);
        let stalls = self.channels.iter().map(|row| (channel(row), row.counted.stalls));
        family(&mut out, "channel_stalls", "Firings delayed by a full channel.", stalls);
        let drops = self.channels.iter().map(|row| (channel(row), row.counted.dropped));
        family(&mut out, "channel_drops", "Items dropped at a full channel.", drops);
        let waiting = self.channels.iter().map(|row| (channel(row), row.fill.waiting));
        gauge(&mut out, "channel_waiting", "Items that wait in a channel.", waiting);
        let peaks = self.channels.iter().map(|row| (channel(row), row.fill.peak));
        gauge(&mut out, "channel_peak", "Maximum number of items that waited in a channel.", peaks);
        let rooms = self.channels.iter().map(|row| (channel(row), row.fill.room));
        gauge(&mut out, "channel_room", "Items that a channel has room for.", rooms);
        let endpoint = |row: &EndpointRow| {
            labels(&[("endpoint", &row.endpoint), ("direction", row.direction)])
        };
        let frames = self.endpoints.iter().map(|row| (endpoint(row), row.frames));
        family(&mut out, "frames", "Frames that passed an endpoint.", frames);
        let bytes = self.endpoints.iter().map(|row| (endpoint(row), row.bytes));
        family(&mut out, "bytes", "Bytes that passed an endpoint.", bytes);
        let drops = self.endpoints.iter().map(|row| (endpoint(row), row.dropped));
        family(&mut out, "frame_drops", "Frames that no port took.", drops);
        let lost = self.endpoints.iter().map(|row| (endpoint(row), row.lost));
        family(&mut out, "frames_lost", "Frames that a port has lost.", lost);
        let waits = [(String::new(), u64::from(self.waits.is_some()))].into_iter();
        gauge(&mut out, "waits", "Whether items wait and nothing in the graph can run.", waits);
        out
    }
}

fn trap_name(code: TrapCode) -> String {
    match code {
        TrapCode::LoopBound => "loop bound".into(),
        TrapCode::Watchdog => "watchdog".into(),
        TrapCode::User(number) => format!("user {number}"),
    }
}

/// Formats columns as wide as their widest cell; columns that hold only numbers are flush right.
fn table(titles: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    let is_number = |cell: &str| cell.bytes().all(|byte| byte.is_ascii_digit());
    let column = |at: usize| rows.iter().map(move |row| row[at].as_str());
    let columns: Vec<(usize, bool)> = (0..titles.len())
        .map(|at| {
            let widest = column(at).map(|cell| cell.chars().count()).max().unwrap_or(0);
            let holds_numbers = !rows.is_empty() && column(at).all(is_number);
            (widest.max(titles[at].len()), holds_numbers)
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().zip(&columns).map(|(cell, (width, is_right))| match is_right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let body = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    line(titles.to_vec()) + &body.collect::<String>()
}

/// Writes a metric that only grows.
fn family(out: &mut String, name: &str, help: &str, samples: impl Iterator<Item = (String, u64)>) {
    metric(out, &format!("freeport_{name}_total"), "counter", help, samples);
}

/// Writes a metric that may fall.
fn gauge(out: &mut String, name: &str, help: &str, samples: impl Iterator<Item = (String, u64)>) {
    metric(out, &format!("freeport_{name}"), "gauge", help, samples);
}

fn metric(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    samples: impl Iterator<Item = (String, u64)>,
) {
    *out += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
    for (labels, value) in samples {
        match labels.is_empty() {
            true => *out += &format!("{name} {value}\n"),
            false => *out += &format!("{name}{{{labels}}} {value}\n"),
        }
    }
}

fn labels(pairs: &[(&str, &str)]) -> String {
    let escape = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value)));
    pairs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::EndpointCounters;
    use crate::programs::mac_swap;
    use freeport_ir::oracle::InstanceCounters;

    fn sample() -> Statistics {
        let traps = [(TrapCode::LoopBound, 2), (TrapCode::User(7), 1)].into();
        let counters = DeviceCounters {
            instances: vec![InstanceCounters {
                firings: 51,
                out_of_range: 3,
                empty_reads: 0,
                traps,
            }],
            channels: vec![
                ChannelCounters { items: 51, packets: 3, bytes: 1_624, ..Default::default() },
                ChannelCounters { items: 40, packets: 2, bytes: 124, stalls: 5, dropped: 11 },
            ],
            fills: vec![
                Occupancy { waiting: 0, peak: 1, room: 16 },
                Occupancy { waiting: 7, peak: 16, room: 16 },
            ],
            endpoints: vec![
                EndpointCounters { frames: 3, bytes: 1_624, dropped: 0 },
                EndpointCounters { frames: 2, bytes: 124, dropped: 1 },
            ],
        };
        let mut program = mac_swap();
        program.graph.instances[0].name = "a \"b\"\\c".into();
        Statistics::new(&program, &counters).with_lost([("to_tor", 4)])
    }

    #[test]
    fn the_table_has_a_row_for_each() {
        let expected = "\
instance element firings packets in bytes in packets out bytes out out of range empty reads traps
a \"b\"\\c MacSwap 51 3 1624 2 124 3 0 loop bound: 2, user 7: 1

channel items packets bytes stalls dropped waiting peak room
from_tor -> a \"b\"\\c.in 51 3 1624 0 0 0 1 16
a \"b\"\\c.out -> to_tor 40 2 124 5 11 7 16 16

endpoint  direction  frames  bytes  dropped  lost
from_tor  in              3   1624        0     0
to_tor    out             2    124        1     4
";
        let squeeze = |text: &str| {
            let lines = text.lines();
            lines.map(|it| it.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let text = sample().text();
        assert_eq!(squeeze(&text), squeeze(expected));
        for block in text.split("\n\n") {
            let ends: Vec<_> = block.lines().take(2).map(|line| line.find("  ")).collect();
            assert!(ends[0].is_some() && ends[1].is_some(), "columns stand apart");
        }
    }

    #[test]
    fn what_waits_is_told_in_every_form() {
        let waits = "nothing can move, though data waits\n  a waits for room";
        let statistics = sample().with_waits(Some(waits.into()));
        assert!(statistics.text().ends_with(&format!("\n\n{waits}\n")), "{}", statistics.text());
        assert_eq!(statistics.json()["waits"], json!(waits));
        assert!(statistics.prometheus().lines().any(|line| line == "freeport_waits 1"));
    }

    #[test]
    fn json_has_every_counter() {
        let json = sample().json();
        assert_eq!(json["waits"], json!(null));
        let row = &json["instances"][0];
        assert_eq!((&row["firings"], &row["traps"]["loop bound"]), (&json!(51), &json!(2)));
        assert_eq!((&row["packets_in"], &row["bytes_out"]), (&json!(3), &json!(124)));
        let row = &json["channels"][1];
        let counts = ["items", "packets", "bytes", "stalls", "dropped"].map(|name| &row[name]);
        assert_eq!(counts, [40, 2, 124, 5, 11].map(|count| json!(count)).each_ref());
        let fill = ["waiting", "peak", "room"].map(|name| &row[name]);
        assert_eq!(fill, [7, 16, 16].map(|count| json!(count)).each_ref());
        assert_eq!(json["endpoints"][1]["bytes"], json!(124));
        assert_eq!(json["endpoints"][1]["lost"], json!(4));
    }

    #[test]
    fn prometheus_lines_follow_the_format() {
        let text = sample().prometheus();
        let expected = [
            "# TYPE freeport_firings_total counter",
            r#"freeport_firings_total{instance="a \"b\"\\c",element="MacSwap"} 51"#,
            r#"freeport_traps_total{instance="a \"b\"\\c",code="user 7"} 1"#,
            r#"freeport_instance_bytes_total{instance="a \"b\"\\c",direction="out"} 124"#,
            r#"freeport_channel_bytes_total{channel="a \"b\"\\c.out -> to_tor"} 124"#,
            r#"freeport_channel_stalls_total{channel="a \"b\"\\c.out -> to_tor"} 5"#,
            r#"freeport_channel_drops_total{channel="a \"b\"\\c.out -> to_tor"} 11"#,
            "# TYPE freeport_channel_waiting gauge",
            "freeport_waits 0",
            r#"freeport_channel_waiting{channel="a \"b\"\\c.out -> to_tor"} 7"#,
            r#"freeport_channel_peak{channel="a \"b\"\\c.out -> to_tor"} 16"#,
            r#"freeport_bytes_total{endpoint="from_tor",direction="in"} 1624"#,
            r#"freeport_frames_lost_total{endpoint="to_tor",direction="out"} 4"#,
        ];
        for line in expected {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        for line in text.lines() {
            let is_comment = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
            let value = line.rsplit(' ').next().and_then(|it| it.parse::<u64>().ok());
            assert!(is_comment || value.is_some(), "{line}");
        }
    }
}
