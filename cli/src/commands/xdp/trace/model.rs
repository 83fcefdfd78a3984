// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces on the model of the small processor: each row, and the effect of each lane.

use super::super::run::report::abort;
use super::{Reported, Traced, Tracer, number};
use freeport_ebpf::interpreter::Clock;
use freeport_ebpf::object::Object;
use freeport_vliw::image::{Image, Slot};
use freeport_vliw::model::{Step, Way};
use freeport_xdp::{Arrival, Target, Vliw};
use serde_json::json;
use std::fmt::Write;

/// An object on the model.
pub struct Modelled<'o> {
    pub object: &'o Object,
    pub vliw: Vliw,
}

impl Tracer for Modelled<'_> {
    fn target(&mut self) -> &mut dyn Target {
        &mut self.vliw
    }

    fn set_time(&mut self, time_ns: u64) {
        self.vliw.environment_mut().clock = Clock::Set(time_ns);
    }

    fn trace(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        limit: usize,
    ) -> anyhow::Result<Traced> {
        self.vliw.record(limit);
        let departure = self.vliw.run(program, arrival);
        let (steps, left_out) = self.vliw.take_steps();
        self.vliw.record(0);
        let reported = steps.iter().filter_map(|step| {
            let name = &self.object.programs.get(step.program)?.name;
            self.vliw.image(step.program).map(|image| reported(step, image, name))
        });
        let steps = reported.collect();
        let ended = self.vliw.last().and_then(|outcome| outcome.aborted.as_ref());
        let ended = ended.map(|ended| abort(self.object, ended));
        Ok(Traced { steps, left_out, departure: departure?, ended })
    }
}

/// The step of a row.
fn reported(step: &Step, image: &Image, program: &str) -> Reported {
    let mut text = format!("row {}\n", step.row);
    let mut lanes = vec![];
    let row = image.rows.get(step.row);
    for (lane, slot) in row.iter().flat_map(|row| row.slots()) {
        let is_done = lane <= step.last_lane;
        let did = if is_done { did(step, lane, slot) } else { vec!["skipped".into()] };
        let _ = writeln!(text, "    {lane}: {:<44} {}", slot.operation.to_string(), did.join(", "));
        lanes.push(json!({
            "lane": lane,
            "operation": slot.operation.to_string(),
            "slots": slot.origins,
            "is_done": is_done,
            "did": did,
        }));
    }
    let registers = step
        .registers
        .iter()
        .map(|(register, value)| (format!("r{register}"), serde_json::Value::from(*value)));
    let json = json!({
        "target": "vliw",
        "program": program,
        "row": step.row,
        "lanes": lanes,
        "registers": registers.collect::<serde_json::Map<_, _>>(),
    });
    Reported { text, json }
}

/// Changes of a lane, and the target of its jump.
fn did(step: &Step, lane: usize, slot: &Slot) -> Vec<String> {
    let mut did = vec![];
    if let Some(register) = slot.operation.written()
        && let Some((_, value)) = step.registers.iter().find(|(it, _)| *it == register)
    {
        did.push(format!("r{register} = {}", number(*value)));
    }
    for store in step.stores.iter().filter(|store| store.lane == lane) {
        let bytes = &store.value.to_le_bytes()[..store.bytes.min(8)];
        did.push(format!("[{:#x}] = {}", store.address, super::hexadecimal(bytes)));
    }
    match step.way.filter(|(of, _)| *of == lane) {
        Some((_, Way::Row(row))) => did.push(format!("to row {row}")),
        Some((_, Way::Function(row))) => did.push(format!("into the function in row {row}")),
        Some((_, Way::Verdict(verdict))) => did.push(format!("ends with verdict {verdict}")),
        Some((_, Way::Return(value))) => did.push(format!("returns {}", number(value))),
        None if slot.operation.is_control() => did.push("not taken".into()),
        None => {}
    }
    did
}
