// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The explanation of a program as JSON.

use super::Explained;
use super::count::Counted;
use freeport_card::SPENT_ON;
use freeport_ebpf::instruction::decode;
use freeport_vliw::fate::{Fate, Kind, Place};
use serde_json::{Map, Value, json};

impl Explained<'_> {
    /// The explanation. Cycles are totals of all packets.
    pub(super) fn as_json(&self) -> Value {
        let Self { program, schedule, image, fates, counted } = self;
        json!({
            "program": program.name,
            "lanes": image.machine.lanes,
            "profile": schedule.is_profiled(),
            "profile_left_out": schedule.left_out(),
            "instructions": fates.iter().map(|fate| self.instruction(fate)).collect::<Vec<_>>(),
            "rows": (0..image.rows.len()).map(|row| self.row(row)).collect::<Vec<_>>(),
            "card": counted.as_ref().map(card),
        })
    }

    fn instruction(&self, fate: &Fate) -> Value {
        let text = decode(&self.program.instructions, fate.slot).map(|it| it.to_string());
        let (kind, places, partners) = match &fate.kind {
            Kind::Unreached => ("unreached", &[][..], &[][..]),
            Kind::Gone => ("removed", &[][..], &[][..]),
            Kind::Placed { places, partners } => ("placed", &places[..], &partners[..]),
        };
        let place = |Place { row, lane }: &Place| json!({ "row": row, "lane": lane });
        let line = self.program.line(fate.slot);
        json!({
            "slot": fate.slot,
            "text": text.unwrap_or_else(|invalid| invalid.to_string()),
            "file": line.map(|line| &line.file),
            "line": line.map(|line| line.line),
            "source": line.map(|line| line.text.trim()),
            "fate": kind,
            "pass": fate.pass,
            "places": places.iter().map(place).collect::<Vec<_>>(),
            "one_with": partners,
        })
    }

    fn row(&self, row: usize) -> Value {
        let operations = self.image.rows[row].slots().map(|(lane, slot)| {
            let operation = slot.operation.to_string();
            json!({ "lane": lane, "operation": operation, "slots": slot.origins })
        });
        let mut reported = json!({ "row": row, "operations": operations.collect::<Vec<_>>() });
        if let Some(spent) = self.counted.as_ref().and_then(|counted| counted.rows.get(row)) {
            let by_what = SPENT_ON.iter().zip(spent.cycles);
            let by_what: Map<String, Value> =
                by_what.map(|(what, cycles)| ((*what).to_owned(), json!(cycles))).collect();
            reported["executed"] = json!(spent.executed);
            reported["jumps"] = json!(spent.jumps);
            reported["cycles"] = json!(by_what);
        }
        reported
    }
}

fn card(counted: &Counted) -> Value {
    let Counted { packets, refused, begin, idle, elsewhere, total, .. } = counted;
    let elsewhere: Map<String, Value> =
        elsewhere.iter().map(|(name, cycles)| (name.clone(), json!(cycles))).collect();
    json!({
        "kind": "simulated",
        "packets": packets,
        "refused": refused,
        "begin_cycles": begin,
        "idle_cycles": idle,
        "cycles_of_other_programs": elsewhere,
        "cycles": total,
    })
}
