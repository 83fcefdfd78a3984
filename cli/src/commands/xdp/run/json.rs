// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a run as JSON.

use super::distribution::PerPacket;
use super::report::{Report, line, verdict_name};
use super::tally::Aborts;
use super::targets::ImageSize;
use freeport_ebpf::interpreter::Redirect;
use freeport_xdp::{Departure, Disagreement, bytes_json};
use serde_json::{Value, json};

impl Report<'_> {
    /// The report, with the reason if the run ended early.
    pub fn as_json(&self, error: Option<&anyhow::Error>) -> Value {
        let tally = self.tally;
        let verdicts = tally.verdicts().into_iter();
        let verdicts = verdicts.map(|(verdict, packets)| (verdict_name(verdict), packets.into()));
        let (refused, numbers) = tally.refused();
        let redirects = tally.redirects().iter().map(|redirect| self.redirect_json(redirect));
        let aborts = tally.aborts().map(|aborts| self.abort_json(aborts));
        let disagreement = error.and_then(|error| error.downcast_ref());
        let maps = self.maps.iter().filter_map(|(name, contents)| {
            Some((name.clone(), self.dump(name, contents)?.as_json()))
        });
        json!({
            "program": self.program.name,
            "on": self.on.name(),
            "packets": tally.packets(),
            "bytes": tally.bytes(),
            "refused": { "packets": refused, "first": numbers },
            "verdicts": verdicts.collect::<serde_json::Map<String, Value>>(),
            "redirects": redirects.collect::<Vec<_>>(),
            "executed_instructions": tally.instructions().map(figures_json),
            "simulated_cycles": tally.cycles().map(figures_json),
            "image": self.image.map(image_json),
            "executed_on_model": tally.model().map(|model| {
                model.map(|(name, each)| (name.replace(' ', "_"), figures_json(each)))
                    .into_iter()
                    .collect::<serde_json::Map<_, _>>()
            }),
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

/// A summary as JSON.
pub fn figures_json(each: PerPacket) -> Value {
    let PerPacket { mean, median, percentile_99, most } = each;
    json!({ "mean": mean, "p50": median, "p99": percentile_99, "max": most })
}

fn image_json(image: ImageSize) -> Value {
    let ImageSize { lanes, rows, unprofiled_rows } = image;
    json!({ "lanes": lanes, "rows": rows, "rows_without_profile": unprofiled_rows })
}

fn difference_json(disagreement: &Disagreement) -> Value {
    let Disagreement::Packet { number, difference } = disagreement else {
        return json!({ "text": disagreement.to_string() });
    };
    let departure = |departure: &Departure| {
        json!({
            "verdict": verdict_name(departure.verdict),
            "bytes": bytes_json(&departure.bytes),
            "metadata": bytes_json(&departure.metadata),
        })
    };
    let mut reported = json!({
        "packet": number,
        "bytes": bytes_json(&difference.bytes),
        "text": disagreement.to_string(),
    });
    for (name, found) in difference.targets.iter().zip(&difference.departures) {
        reported[name] = departure(found);
    }
    reported
}
