// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a run as text.

use super::distribution::PerPacket;
use super::options::On;
use super::tally::{Aborts, Tally};
use super::targets::{ImageSize, Targets};
use crate::commands::xdp::place::Place;
use freeport_ebpf::interpreter::{Redirect, verdict};
use freeport_ebpf::object::{Object, Program};
pub use freeport_xdp::ended::{abort, line};
use freeport_xdp::{Contents, Dump};
use std::fmt;

/// The contents of the report.
pub struct Report<'a> {
    pub object: &'a Object,
    pub program: &'a Program,
    pub on: &'a On,
    pub tally: &'a Tally,
    /// Size of the image, if the program ran on the model of the processor.
    pub image: Option<ImageSize>,
    /// Maps to print.
    pub maps: &'a [(String, Contents)],
}

/// The kernel's name of a verdict, or its number.
pub fn verdict_name(verdict: u32) -> String {
    verdict::name(verdict).map_or_else(|| verdict.to_string(), str::to_owned)
}

/// A summary as text.
pub fn figures(each: &PerPacket) -> String {
    let PerPacket { mean, median, percentile_99, most } = each;
    format!("mean {mean:.1}, p50 {median}, p99 {percentile_99}, max {most}")
}

/// The report as text.
impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, on, tally, .. } = self;
        let places: Vec<&str> = on.places().iter().map(|place| place.place()).collect();
        let place = places.join(" and ");
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
        if let Some(instructions) = tally.instructions() {
            let instructions = figures(&instructions);
            writeln!(f, "\nexecuted eBPF instructions per packet: {instructions}")?;
        }
        self.write_model(f)?;
        if let Some(cycles) = self.tally.cycles() {
            writeln!(
                f,
                "\nsimulated cycles per packet that comes alone, from its first beat to its \
                 verdict:\n  {}",
                figures(&cycles)
            )?;
        }
        self.write_aborts(f)?;
        for (name, contents) in self.maps {
            if let Some(dump) = self.dump(name, contents) {
                write!(f, "\nmap {name}\n{dump}")?;
            }
        }
        Ok(())
    }
}

impl Report<'_> {
    fn write_refused(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, numbers) = self.tally.refused();
        let Some((who, lengths)) = Targets::lengths(self.on) else { return Ok(()) };
        if count == 0 {
            return Ok(());
        }
        let listed: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let more = if count > numbers.len() as u64 { ", ..." } else { "" };
        writeln!(
            f,
            "{count} packets were not run, since the {who} supports {} to {} bytes: {}{more}",
            lengths.start(),
            lengths.end(),
            listed.join(", ")
        )
    }

    /// Counters of the model of the processor.
    fn write_model(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ImageSize { lanes, rows, unprofiled_rows }) = self.image {
            write!(f, "\nimage for {lanes} lanes: {rows} rows")?;
            if let Some(unprofiled) = unprofiled_rows {
                write!(f, " with the profile, {unprofiled} without")?;
            }
            writeln!(f)?;
        }
        let Some(model) = self.tally.model() else { return Ok(()) };
        writeln!(
            f,
            "executed per packet, as a model of the instruction set counts; no time and no cycles:"
        )?;
        for (name, each) in model {
            writeln!(f, "  {:<13}{}", format!("{name}:"), figures(&each))?;
        }
        Ok(())
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
                    let but = if *excludes_ingress { " except the packet's own" } else { "" };
                    format!("all of map {}{but}", self.map(*map))
                }
            };
            writeln!(f, "  {packets:>23}  to {target}")?;
        }
        if all > known {
            writeln!(f, "  {:>23}  the kernel's test does not report where", all - known)?;
        }
        Ok(())
    }

    fn write_aborts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = if self.on.has(Place::Interpreter) { "interpreter" } else { "model" };
        let mut title = format!("\naborted by the {by}\n");
        for Aborts { abort: ended, first, packets } in self.tally.aborts() {
            let reason = abort(self.object, ended);
            write!(f, "{title}{packets} packets, first {first}: {reason}")?;
            if let Some(line) = line(self.object, ended) {
                write!(f, "\n    {}", line.text.trim())?;
            }
            writeln!(f)?;
            title.clear();
        }
        Ok(())
    }

    /// The dump of a map, if the map is part of the object.
    pub fn dump<'d>(&'d self, name: &str, contents: &'d Contents) -> Option<Dump<'d>> {
        let definition = self.object.maps.iter().find(|map| map.name == name)?;
        Some(Dump { definition, contents })
    }

    /// The name of a map.
    pub fn map(&self, number: usize) -> &str {
        self.object.maps.get(number).map_or("?", |map| &map.name)
    }
}
