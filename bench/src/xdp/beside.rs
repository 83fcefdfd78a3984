// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The same packets on the simulated card, in the kernel, as compiled code in user space and in the
//! interpreter, in nanoseconds: those of the card are cycles at an assumed clock rate; the others
//! are measured in turn.

use super::CLOCK_MHZ;
use super::compiled::Compiled;
use super::interpreter::Interpreted;
use super::kernel::InKernel;
use super::work::Work;
use crate::harness::machine::Machine;
use crate::harness::plot;
use crate::harness::report::{Kind, Line, Traffic, rounded, row};
use crate::harness::{Measurement, Subject, alternate};
use anyhow::Result;
use std::fmt::Write;

/// Results of a case.
pub struct Beside {
    name: &'static str,
    /// Mean packet size in bytes.
    frame_bytes: usize,
    /// Nanoseconds per packet on the card, or why there are none.
    card: Result<f64, String>,
    /// Rates of the targets that were measured.
    measured: Vec<Measurement>,
    /// Targets that were not measured, and why.
    refusals: Vec<(&'static str, String)>,
    is_repeated: bool,
}

/// Measures a case in turn, for this number of rounds.
///
/// # Errors
/// The interpreter cannot run the program.
pub fn measure(work: &Work, rounds: usize) -> Result<Beside> {
    let card = work.cycles().map(|cycles| cycles / CLOCK_MHZ * 1e3);
    let mut subjects: Vec<Box<dyn Subject + '_>> = vec![Box::new(Interpreted::load(work)?)];
    let mut refusals = vec![];
    match Compiled::load(work) {
        Ok(compiled) => subjects.insert(0, Box::new(compiled)),
        Err(error) => refusals.push(("compiled", first_line(&error))),
    }
    match InKernel::load(work) {
        Ok(kernel) => subjects.insert(0, Box::new(kernel)),
        Err(error) => refusals.push(("kernel", first_line(&error))),
    }
    let measured = alternate(&mut subjects, rounds)?;
    let bytes: usize = work.packets.iter().map(|packet| packet.bytes.len()).sum();
    Ok(Beside {
        name: work.name,
        frame_bytes: bytes / work.packets.len().max(1),
        card: card.map_err(|error| first_line(&error)),
        measured,
        refusals,
        is_repeated: work.is_repeatable,
    })
}

fn first_line(error: &anyhow::Error) -> String {
    format!("{error:#}").lines().next().unwrap_or_default().to_owned()
}

/// Converts millions of frames per second to nanoseconds per frame.
fn nanoseconds(rate: f64) -> f64 {
    1e3 / rate.max(f64::MIN_POSITIVE)
}

impl Beside {
    /// Returns the median of a target in nanoseconds per packet.
    fn median_of(&self, name: &str) -> Option<f64> {
        let found = self.measured.iter().find(|it| it.name == name)?;
        Some(nanoseconds(found.median()))
    }

    /// Returns lines for the card beside each of the others, and for each of those by itself.
    pub fn lines(&self) -> Vec<Line> {
        let line = |metric: &str, kind, value: f64, p50: f64, p99: f64| Line {
            bench: "xdp".into(),
            case: self.name.into(),
            traffic: Traffic::Frames { frame_bytes: self.frame_bytes },
            metric: metric.into(),
            unit: "ns/packet".into(),
            kind,
            value: rounded(value),
            p50: rounded(p50),
            p99: rounded(p99),
            peer: None,
            peer_value: None,
            ratio: None,
            published: None,
            note: None,
        };
        let mut lines = vec![];
        let card = self.card.as_ref().copied().unwrap_or(f64::NAN);
        for it in &self.measured {
            let (median, worst) =
                (nanoseconds(it.median()), nanoseconds(it.reached_by_99_percent()));
            let peer = Line {
                peer: Some(it.name.clone()),
                peer_value: Some(rounded(median)),
                ratio: self.card.is_ok().then(|| rounded(median / card)),
                note: self.card.as_ref().err().cloned(),
                ..line("time", Kind::Simulated, card, card, card)
            };
            lines.push(peer);
            let metric = format!("time_{}", it.name);
            let own = line(&metric, Kind::Measured, median, median, worst);
            // Compiled code is compared with the kernel of this machine.
            let kernel = self.median_of("kernel").filter(|_| it.name == "compiled");
            let peer = kernel.map(|_| "kernel".to_owned());
            let ratio = kernel.map(|kernel| rounded(kernel / median));
            lines.push(Line { peer, peer_value: kernel.map(rounded), ratio, ..own });
        }
        for (name, refusal) in &self.refusals {
            let nothing = f64::NAN;
            let metric = format!("time_{name}");
            let line = line(&metric, Kind::Measured, nothing, nothing, nothing);
            lines.push(Line { note: Some(refusal.clone()), ..line });
        }
        lines
    }
}

/// Formats the results as a table.
pub fn table(all: &[Beside]) -> String {
    let mut out = String::from(
        "nanoseconds per packet; kernel, compiled code and interpreter measured, spread from the \
         best to the worst round\ncase            bytes   card, simulated        kernel   spread \
         \u{20}     compiled   spread   interpreter   spread\n",
    );
    for it in all {
        let card = it.card.as_ref().map_or("-".into(), |card| format!("{card:.1}"));
        let _ = write!(out, "{:<15} {:>5} {card:>17}", it.name, it.frame_bytes);
        for name in ["kernel", "compiled", "interpreter"] {
            let found = it.measured.iter().find(|measured| measured.name == name);
            let (mean, spread) = found.map_or(("-".into(), "-".into()), |found| {
                let median = nanoseconds(found.median());
                (format!("{median:.0}"), format!("{:.0} %", 100.0 * found.spread()))
            });
            let _ = write!(out, " {mean:>13} {spread:>8}");
        }
        out.push('\n');
    }
    for it in all {
        let mut note = |who: &str, why: &str| {
            let _ = writeln!(out, "{}: {who}: {why}", it.name);
        };
        if let Err(reason) = &it.card {
            note("card", reason);
        }
        it.refusals.iter().for_each(|(name, reason)| note(name, reason));
        if !it.is_repeated && it.median_of("kernel").is_some() {
            note("kernel", "a call for each packet, with its clock");
        }
    }
    out
}

/// Returns all rounds as CSV.
pub fn csv(all: &[Beside], machine: &Machine) -> String {
    let heads = "case,frame_bytes,subject,kind,round,ns_per_packet,machine,commit,date\n";
    let mut out = heads.to_owned();
    let mut add = |it: &Beside, [subject, kind]: [&str; 2], round: usize, ns: f64| {
        let (bytes, round) = (it.frame_bytes.to_string(), round.to_string());
        let fields = [it.name, &bytes, subject, kind, &round].map(str::to_owned);
        out += &row(fields.into_iter().chain([format!("{ns:.3}")]), machine);
    };
    for it in all {
        if let Ok(card) = it.card {
            add(it, ["card", "simulated"], 0, card);
        }
        for measured in &it.measured {
            for (round, rate) in measured.rates.iter().enumerate() {
                add(it, [&measured.name, "measured"], round + 1, nanoseconds(*rate));
            }
        }
    }
    out
}

/// Draws the measured targets; the card is left out, since it is simulated.
pub fn svg(all: &[Beside], machine: &Machine) -> String {
    let group = |it: &Beside| plot::Group {
        title: format!("{} {} B", it.name, it.frame_bytes),
        bars: it.measured.clone(),
    };
    let groups: Vec<plot::Group> = all.iter().map(group).collect();
    plot::bars("XDP programs, one core", "million packets a second", &groups, machine)
}
