// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a run tells at its end, for scripts.

use super::distribution::PerPacket;
use super::report::{Report, line, verdict_name};
use super::tally::Aborts;
use super::targets::ImageSize;
use freeport_ebpf::interpreter::Redirect;
use freeport_ebpf::object::Datum;
use freeport_xdp::{Contents, Departure, Disagreement, Dump};
use serde_json::{Value, json};

impl Report<'_> {
    /// For scripts, with why the run ended early, if it did.
    pub fn as_json(&self, error: Option<&anyhow::Error>) -> Value {
        let tally = self.tally;
        let verdicts = tally.verdicts().into_iter();
        let verdicts = verdicts.map(|(verdict, packets)| (verdict_name(verdict), packets.into()));
        let (refused, numbers) = tally.refused();
        let redirects = tally.redirects().iter().map(|redirect| self.redirect_json(redirect));
        let aborts = tally.aborts().map(|aborts| self.abort_json(aborts));
        let disagreement = error.and_then(|error| error.downcast_ref());
        let maps = self.maps.iter().filter_map(|(name, contents)| {
            Some((name.clone(), contents_json(self.dump(name, contents)?)))
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

/// Four numbers of what each packet took.
pub fn figures_json(each: PerPacket) -> Value {
    let PerPacket { mean, median, percentile_99, most } = each;
    json!({ "mean": mean, "p50": median, "p99": percentile_99, "max": most })
}

fn image_json(image: ImageSize) -> Value {
    let ImageSize { lanes, rows, unprofiled_rows } = image;
    json!({ "lanes": lanes, "rows": rows, "rows_without_profile": unprofiled_rows })
}

/// Bytes as bpftool's JSON has them.
fn bytes_json(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:#04x}")).collect()
}

fn contents_json(dump: Dump<'_>) -> Value {
    match dump.contents {
        Contents::Entries(entries) => entries.iter().map(|entry| entry_json(dump, entry)).collect(),
        Contents::Items(items) => items.iter().map(|item| item_json(dump, item)).collect(),
        Contents::Opaque => Value::Null,
    }
}

/// An entry as in bpftool's JSON: its bytes, and what they mean where the object has types.
fn entry_json(dump: Dump<'_>, (key, value): (&Vec<u8>, &Vec<u8>)) -> Value {
    let mut entry = json!({ "key": bytes_json(key), "value": bytes_json(value) });
    if let (Some(key), Some(value)) = (dump.key(key), dump.value(value)) {
        entry["formatted"] = json!({ "key": datum_json(&key), "value": datum_json(&value) });
    }
    entry
}

fn item_json(dump: Dump<'_>, item: &[u8]) -> Value {
    let mut value = json!({ "value": bytes_json(item) });
    if let Some(datum) = dump.value(item) {
        value["formatted"] = json!({ "value": datum_json(&datum) });
    }
    value
}

fn datum_json(datum: &Datum) -> Value {
    match datum {
        // What does not fit JSON's usual numbers is a text.
        Datum::Unsigned(number) => {
            u64::try_from(*number).map_or_else(|_| number.to_string().into(), Value::from)
        }
        Datum::Signed(number) => {
            i64::try_from(*number).map_or_else(|_| number.to_string().into(), Value::from)
        }
        Datum::Name(name) => name.as_str().into(),
        Datum::Struct(members) => {
            members.iter().map(|(name, datum)| (name.clone(), datum_json(datum))).collect()
        }
        Datum::Array(elements) => elements.iter().map(datum_json).collect(),
        Datum::Bytes(bytes) => bytes_json(bytes),
    }
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
    let mut told = json!({
        "packet": number,
        "bytes": bytes_json(&difference.bytes),
        "text": disagreement.to_string(),
    });
    for (name, found) in difference.targets.iter().zip(&difference.departures) {
        told[name] = departure(found);
    }
    told
}
