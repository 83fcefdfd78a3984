// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statistics as text for people and for Prometheus.

use super::{Count, PortRow, Statistics, verdict_name};
use std::fmt;

/// Formats for people.
impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for port in &self.ports {
            writeln!(f, "{:<28} {:>12} {:>16}", title(port), "packets", "bytes")?;
            for (name, count) in &port.ways {
                write_count(f, name, *count)?;
                if *name == "received" {
                    write_verdicts(f, port)?;
                }
            }
        }
        for port in &self.ports {
            for (reason, packets) in port.drops.iter().flatten() {
                writeln!(f, "dropped, {}: {packets} {reason}", port.name)?;
            }
        }
        if self.ports.iter().any(|port| port.drops.is_none()) {
            writeln!(f, "dropped: unknown")?;
        }
        for row in &self.stopped {
            writeln!(f, "ended: {} packets, {}", row.packets, row.what)?;
            if let Some(line) = &row.line {
                writeln!(f, "    {line}")?;
            }
        }
        if self.stopped_elsewhere > 0 {
            writeln!(f, "ended: {} packets at other places", self.stopped_elsewhere)?;
        }
        for (name, value) in &self.figures {
            match value {
                Some(value) => writeln!(f, "{}, {name}: {value}", self.target)?,
                None => writeln!(f, "{}, {name}: unknown", self.target)?,
            }
        }
        Ok(())
    }
}

fn title(port: &PortRow) -> String {
    format!("{} (ifindex {})", port.name, port.ifindex)
}

fn write_count(f: &mut fmt::Formatter<'_>, name: &str, count: Option<Count>) -> fmt::Result {
    match count {
        Some(Count { packets, bytes }) => writeln!(f, "  {name:<26} {packets:>12} {bytes:>16}"),
        None => writeln!(f, "  {name:<26} {:>12}", "unknown"),
    }
}

fn write_verdicts(f: &mut fmt::Formatter<'_>, port: &PortRow) -> fmt::Result {
    let Some(verdicts) = &port.verdicts else {
        return writeln!(f, "    {:<24} {:>12}", "verdicts", "unknown");
    };
    for (at, Count { packets, bytes }) in verdicts.iter().enumerate() {
        // The row of other return values is rare: it is printed only if it has packets.
        if at + 1 < verdicts.len() || *packets > 0 {
            writeln!(f, "    {:<24} {packets:>12} {bytes:>16}", verdict_name(at))?;
        }
    }
    Ok(())
}

impl Statistics {
    /// Formats in Prometheus' text exposition format; unknown figures are left out.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        for (what, of) in
            [("packets", Count::packets as fn(&Count) -> u64), ("bytes", Count::bytes)]
        {
            text += &format!("# TYPE freeport_xdp_{what}_total counter\n");
            for port in &self.ports {
                let ways = port.ways.iter().filter_map(|(name, count)| Some((*name, (*count)?)));
                for (name, count) in ways {
                    let labels = labels(&[("port", &port.name), ("way", name)]);
                    text += &format!("freeport_xdp_{what}_total{labels} {}\n", of(&count));
                }
            }
            text += &format!("# TYPE freeport_xdp_verdict_{what}_total counter\n");
            for port in &self.ports {
                for (at, count) in port.verdicts.iter().flatten().enumerate() {
                    let labels = labels(&[("port", &port.name), ("verdict", verdict_name(at))]);
                    text += &format!("freeport_xdp_verdict_{what}_total{labels} {}\n", of(count));
                }
            }
        }
        text += "# TYPE freeport_xdp_dropped_packets_total counter\n";
        for port in &self.ports {
            for (reason, packets) in port.drops.iter().flatten() {
                let labels = labels(&[("port", &port.name), ("reason", reason)]);
                text += &format!("freeport_xdp_dropped_packets_total{labels} {packets}\n");
            }
        }
        text += "# TYPE freeport_xdp_target_total counter\n";
        for (name, value) in &self.figures {
            if let Some(value) = value {
                let labels = labels(&[("of", self.target), ("figure", name)]);
                text += &format!("freeport_xdp_target_total{labels} {value}\n");
            }
        }
        text
    }
}

impl Count {
    fn packets(&self) -> u64 {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Formats `{name="value",...}` and escapes the values.
fn labels(labels: &[(&str, &str)]) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    format!("{{{}}}", labels.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Counters, Drop};

    #[test]
    fn what_is_not_known_is_not_told_as_nothing() {
        let mut counters = Counters::new(1);
        counters.ports[0].received.add(60);
        counters.verdict(0, 2, 60);
        counters.drop(0, Drop::NoHost);
        let known = PortRow::of_counters("xdp:a", 7, &counters.ports[0], 2);
        let unknown = PortRow {
            name: "b".into(),
            ifindex: 8,
            ways: vec![("received", None)],
            verdicts: None,
            drops: None,
        };
        let figures = vec![("runs", None), ("cycles", Some(9))];
        let statistics = Statistics::new(vec![known, unknown], "card", figures);
        let text = statistics.to_string();
        for line in [
            "xdp:a (ifindex 7)                 packets            bytes",
            "    XDP_PASS                            1               60",
            "    verdicts                      unknown",
            "dropped, xdp:a: 1 passed, and the port has no host side",
            "dropped, xdp:a: 2 lost in the interface or its rings",
            "dropped: unknown",
            "card, runs: unknown",
            "card, cycles: 9",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        let json = statistics.as_json();
        assert_eq!(json["ports"][0]["verdicts"]["XDP_PASS"]["bytes"], 60);
        assert!(json["ports"][1]["received"].is_null() && json["ports"][1]["verdicts"].is_null());
        assert!(json["target"]["runs"].is_null());
        let text = statistics.prometheus();
        assert!(text.contains("_verdict_packets_total{port=\"xdp:a\",verdict=\"XDP_PASS\"} 1\n"));
        assert!(!text.contains("port=\"b\"") && !text.contains("runs"), "{text}");
    }
}
