// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a compiled program as JSON.

use super::Compiled;
use freeport_ebpf::object::Program;
use freeport_vliw::Unsupported;
use freeport_vliw::image::{Image, Row};
use freeport_vliw::report::{Effect, Effects, Report, Size};
use serde_json::{Value, json};

/// The report, with the rows if they are requested.
pub fn program(compiled: &Compiled, has_rows: bool) -> Value {
    let Report { image, instructions, size, critical_rows, rows_by_lanes, functions } =
        &compiled.report;
    let function = |(name, rows): &(String, usize)| json!({ "name": name, "rows": rows });
    json!({
        "name": image.name,
        "lanes": image.machine.lanes,
        "instructions": instructions,
        "operations": size.operations,
        "rows": size.rows,
        "operations_per_row": size.operations_per_row(),
        "critical_rows": critical_rows,
        "rows_by_lanes": rows_by_lanes,
        "functions": functions.iter().map(function).collect::<Vec<_>>(),
        "effects": compiled.effects.as_ref().map(effects),
        "schedule": has_rows.then(|| schedule(image, compiled.program)),
    })
}

/// The reason why a program is not compiled.
pub fn refusal(refusal: &Unsupported) -> Value {
    let Unsupported { program, slot, reason } = refusal;
    json!({ "program": program, "slot": slot, "reason": reason })
}

fn effects(effects: &Effects) -> Value {
    let named = |it: &Effect| json!({ "pass": it.pass, "size": size(&it.size) });
    let all = |of: &[Effect]| of.iter().map(named).collect::<Vec<_>>();
    let lanes = |(lanes, of): &(u8, Size)| json!({ "lanes": lanes, "size": size(of) });
    json!({
        "keeping_all": size(&effects.keeping_all),
        "cumulative": all(&effects.cumulative),
        "without": all(&effects.without),
        "lanes": effects.lanes.iter().map(lanes).collect::<Vec<_>>(),
    })
}

fn size(size: &Size) -> Value {
    json!({ "rows": size.rows, "operations": size.operations })
}

/// A row is an array of lanes; an empty lane is `null`.
fn schedule(image: &Image, program: &Program) -> Value {
    let row = |row: &Row| {
        let slot = |slot: &freeport_vliw::image::Slot| {
            let lines = slot.origins.iter().filter_map(|origin| program.line(*origin));
            let mut lines: Vec<String> =
                lines.map(|line| format!("{}:{}", line.file, line.line)).collect();
            lines.dedup();
            json!({
                "operation": slot.operation.to_string(),
                "slots": slot.origins,
                "lines": lines,
            })
        };
        json!(row.lanes.iter().map(|it| it.as_ref().map(slot)).collect::<Vec<_>>())
    };
    json!(image.rows.iter().map(row).collect::<Vec<_>>())
}
