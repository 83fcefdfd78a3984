// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a run tells at its end, for people and for scripts.

use super::options::On;
use super::tally::{Aborts, Instructions, Tally};
use super::targets::Targets;
use freeport_ebpf::interpreter::{Abort, Redirect, verdict};
use freeport_ebpf::object::{Line, Object, Program};
use freeport_xdp::{Contents, Departure, Disagreement};
use serde_json::{Value, json};
use std::fmt;

/// What there is to tell.
pub struct Report<'a> {
    pub object: &'a Object,
    pub program: &'a Program,
    pub on: On,
    pub tally: &'a Tally,
    /// Maps that are asked for.
    pub maps: &'a [(String, Contents)],
}

/// Where and why the interpreter ended a program.
pub fn abort(object: &Object, abort: &Abort) -> String {
    let Abort { program, slot, reason } = abort;
    let name = object.programs.get(*program).map_or("?", |program| &program.name);
    match line(object, abort) {
        Some(Line { file, line, .. }) => {
            format!("program `{name}`, instruction {slot} ({file}:{line}): {reason}")
        }
        None => format!("program `{name}`, instruction {slot}: {reason}"),
    }
}

/// The source line of it, if the object has lines.
fn line<'o>(object: &'o Object, abort: &Abort) -> Option<&'o Line> {
    object.programs.get(abort.program)?.line(abort.slot)
}

fn verdict_name(verdict: u32) -> String {
    verdict::name(verdict).map_or_else(|| verdict.to_string(), str::to_owned)
}

/// For people.
impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, on, tally, .. } = self;
        let place = match on {
            On::Interpreter => "in the interpreter",
            On::Kernel => "in the kernel",
            On::Both => "in the kernel and in the interpreter",
        };
        let (packets, bytes) = (tally.packets(), tally.bytes());
        writeln!(f, "program `{}` {place}: {packets} packets, {bytes} bytes", program.name)?;
        self.write_refused(f)?;
        writeln!(f, "\n{:<12} {:>12}", "verdict", "packets")?;
        for (verdict, packets) in tally.verdicts() {
            let what = if verdict::name(verdict).is_some() { "" } else { "  no verdict" };
            writeln!(f, "{:<12} {packets:>12}{what}", verdict_name(verdict))?;
            if verdict == verdict::REDIRECT {
                self.write_redirects(f, packets)?;
            }
        }
        if let Some(Instructions { mean, median, percentile_99, most }) = tally.instructions() {
            writeln!(
                f,
                "\nexecuted eBPF instructions per packet: mean {mean:.1}, p50 {median}, \
                 p99 {percentile_99}, max {most}"
            )?;
        }
        self.write_aborts(f)?;
        for (name, contents) in self.maps {
            write!(f, "\nmap {name}\n{contents}")?;
        }
        Ok(())
    }
}

impl Report<'_> {
    fn write_refused(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((count, numbers), Some(lengths)) = (self.tally.refused(), Targets::lengths(self.on))
        else {
            return Ok(());
        };
        if count == 0 {
            return Ok(());
        }
        let listed: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let more = if count > numbers.len() as u64 { ", ..." } else { "" };
        writeln!(
            f,
            "{count} packets were not run, since the kernel takes {} to {} bytes: {}{more}",
            lengths.start(),
            lengths.end(),
            listed.join(", ")
        )
    }

    fn write_redirects(&self, f: &mut fmt::Formatter<'_>, all: u64) -> fmt::Result {
        let known: u64 = self.tally.redirects().values().sum();
        for (redirect, packets) in self.tally.redirects() {
            let target = match redirect {
                Redirect::Device { ifindex } => format!("device {ifindex}"),
                Redirect::Map { map, key, target } => {
                    format!("map {}[{key}]: {target}", self.map(*map))
                }
                Redirect::Broadcast { map, excludes_ingress } => {
                    let but = if *excludes_ingress { " but the packet's own" } else { "" };
                    format!("all of map {}{but}", self.map(*map))
                }
            };
            writeln!(f, "  {packets:>23}  to {target}")?;
        }
        if all > known {
            writeln!(f, "  {:>23}  the kernel's test does not say where", all - known)?;
        }
        Ok(())
    }

    fn write_aborts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut title = "\nended by the interpreter\n";
        for Aborts { abort: ended, first, packets } in self.tally.aborts() {
            let reason = abort(self.object, ended);
            write!(f, "{title}{packets} packets, the first is {first}: {reason}")?;
            if let Some(line) = line(self.object, ended) {
                write!(f, "\n    {}", line.text.trim())?;
            }
            writeln!(f)?;
            title = "";
        }
        Ok(())
    }

    fn map(&self, number: usize) -> &str {
        self.object.maps.get(number).map_or("?", |map| &map.name)
    }

    /// For scripts, with why the run ended early, if it did.
    pub fn as_json(&self, error: Option<&anyhow::Error>) -> Value {
        let tally = self.tally;
        let verdicts = tally.verdicts().into_iter();
        let verdicts = verdicts.map(|(verdict, packets)| (verdict_name(verdict), packets.into()));
        let (refused, numbers) = tally.refused();
        let redirects = tally.redirects().iter().map(|redirect| self.redirect_json(redirect));
        let aborts = tally.aborts().map(|aborts| self.abort_json(aborts));
        let disagreement = error.and_then(|error| error.downcast_ref());
        let maps = self.maps.iter().map(|(name, contents)| (name.clone(), contents_json(contents)));
        json!({
            "program": self.program.name,
            "on": self.on.name(),
            "packets": tally.packets(),
            "bytes": tally.bytes(),
            "refused": { "packets": refused, "first": numbers },
            "verdicts": verdicts.collect::<serde_json::Map<String, Value>>(),
            "redirects": redirects.collect::<Vec<_>>(),
            "executed_instructions": tally.instructions().map(|instructions| json!({
                "mean": instructions.mean,
                "p50": instructions.median,
                "p99": instructions.percentile_99,
                "max": instructions.most,
            })),
            "aborts": aborts.collect::<Vec<_>>(),
            "maps": maps.collect::<serde_json::Map<String, Value>>(),
            "error": error.map(|error| format!("{error:#}")),
            "difference": disagreement.map(difference_json),
        })
    }

    fn redirect_json(&self, (redirect, packets): (&Redirect, &u64)) -> Value {
        match redirect {
            Redirect::Device { ifindex } => json!({ "device": ifindex, "packets": packets }),
            Redirect::Map { map, key, target } => {
                let map = self.map(*map);
                json!({ "map": map, "key": key, "target": target, "packets": packets })
            }
            Redirect::Broadcast { map, excludes_ingress } => json!({
                "map": self.map(*map),
                "broadcast": true,
                "excludes_ingress": excludes_ingress,
                "packets": packets,
            }),
        }
    }

    fn abort_json(&self, aborts: &Aborts) -> Value {
        let Aborts { abort, first, packets } = aborts;
        let line = line(self.object, abort);
        json!({
            "program": self.object.programs.get(abort.program).map(|program| &program.name),
            "instruction": abort.slot,
            "file": line.map(|line| &line.file),
            "line": line.map(|line| line.line),
            "text": line.map(|line| line.text.trim()),
            "reason": abort.reason.to_string(),
            "packets": packets,
            "first": first,
        })
    }
}

/// Bytes as bpftool's JSON has them.
fn bytes_json(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:#04x}")).collect()
}

fn contents_json(contents: &Contents) -> Value {
    match contents {
        Contents::Entries(entries) => entries.iter().map(entry_json).collect(),
        Contents::Items(items) => {
            items.iter().map(|item| json!({ "value": bytes_json(item) })).collect()
        }
        Contents::Opaque => Value::Null,
    }
}

fn entry_json((key, value): (&Vec<u8>, &Vec<u8>)) -> Value {
    json!({ "key": bytes_json(key), "value": bytes_json(value) })
}

fn difference_json(disagreement: &Disagreement) -> Value {
    let Disagreement::Packet { number, difference } = disagreement else {
        return json!({ "text": disagreement.to_string() });
    };
    let [kernel, interpreter] = &difference.departures;
    let departure = |departure: &Departure| {
        json!({
            "verdict": verdict_name(departure.verdict),
            "bytes": bytes_json(&departure.bytes),
            "metadata": bytes_json(&departure.metadata),
        })
    };
    json!({
        "packet": number,
        "bytes": bytes_json(&difference.bytes),
        "kernel": departure(kernel),
        "interpreter": departure(interpreter),
        "text": disagreement.to_string(),
    })
}
