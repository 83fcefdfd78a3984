// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traces on the simulated card: the rows in the stages at each cycle, and the causes of stalls.

use super::{Reported, Traced, Tracer};
use anyhow::anyhow;
use freeport_card::{Moment, Sim, event};
use freeport_xdp::{Arrival, Target};
use serde_json::json;
use std::path::PathBuf;

/// Events of a cycle, with their texts.
const HAPPENS: [(u32, &str); 11] = [
    (event::WAITS_MEMORY, "waits for memory"),
    (event::WAITS_HELPER, "execute waits for a helper"),
    (event::WAITS_LONG, "execute waits for long arithmetic"),
    (event::DECODE_CONFLICTS, "decode waits for the row in execute"),
    (event::DECODE_JUMPS, "decode jumps"),
    (event::EXECUTE_JUMPS, "execute jumps"),
    (event::EXECUTE_ENDS, "execute ends the program"),
    (event::DECODE_ENDS, "decode ends the program"),
    (event::FETCH_ENDS, "fetch ends the program"),
    (event::PACKET_BEGINS, "the packet begins"),
    (event::PACKET_ENDS, "the packet is done"),
];

/// An object on the card.
pub struct OnCard {
    pub sim: Sim,
    /// File for the signals, until it is opened.
    pub wave: Option<PathBuf>,
}

impl Tracer for OnCard {
    fn target(&mut self) -> &mut dyn Target {
        &mut self.sim
    }

    /// Does nothing: the card has its own clock.
    fn set_time(&mut self, _: u64) {}

    fn takes(&self, length: usize) -> bool {
        Sim::LENGTHS.contains(&length)
    }

    fn trace(
        &mut self,
        program: &str,
        arrival: &Arrival<'_>,
        limit: usize,
    ) -> anyhow::Result<Traced> {
        if let Some(wave) = self.wave.take() {
            self.sim.nic_mut().open_waveform(&wave).map_err(|reason| anyhow!(reason))?;
        }
        let (mut traced, mut moments) = (Traced::default(), vec![]);
        let mut has_begun = false;
        self.sim.run_watched(program, arrival, &mut traced.departure, &mut |moment| {
            has_begun |= moment.has(event::PACKET_BEGINS);
            if !has_begun || moment.events == 0 {
                return;
            }
            match moments.len() < limit {
                true => moments.push(*moment),
                false => traced.left_out += 1,
            }
        })?;
        let first = moments.first().map_or(0, |moment| moment.cycle);
        let mut commit = None;
        for moment in &moments {
            traced.steps.push(self.reported(moment, first, commit));
            let leaves = moment.has(event::EXECUTE_FINISHES);
            commit = moment.in_execute().filter(|_| leaves);
        }
        Ok(traced)
    }
}

impl OnCard {
    /// The step of a cycle.
    fn reported(&self, moment: &Moment, first: u64, commit: Option<u16>) -> Reported {
        // Row numbers of the program, as in `freeport xdp compile --rows`.
        let row = |row: u16| self.sim.place_of_row(row.into()).map_or(row.into(), |(_, row)| row);
        let stages = [moment.in_fetch(), moment.in_decode(), moment.in_execute(), commit];
        let stages = stages.map(|stage| stage.map(row));
        let happens: Vec<&str> = HAPPENS
            .iter()
            .filter(|(events, _)| moment.has(*events))
            .map(|(_, text)| *text)
            .collect();
        let cell = |stage: Option<usize>| stage.map_or("-".into(), |row| row.to_string());
        let [fetch, decode, execute, commit] = stages.map(cell);
        let cycle = moment.cycle - first;
        let text = format!(
            "cycle {cycle:>5}: fetch {fetch:>4}  decode {decode:>4}  execute {execute:>4}  commit \
             {commit:>4}  {}",
            happens.join(", ")
        );
        let text = format!("{}\n", text.trim_end());
        let [fetch, decode, execute, commit] = stages;
        let json = json!({
            "target": "sim",
            "cycle": cycle,
            "fetch": fetch,
            "decode": decode,
            "execute": execute,
            "commit": commit,
            "happens": happens,
        });
        Reported { text, json }
    }
}
