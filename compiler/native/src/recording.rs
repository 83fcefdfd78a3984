// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recordings of a graph, in the form that the interpreter replays.

use crate::library::take;
use crate::manifest::Manifest;
use crate::{Counters, Graph, abi};
use freeport_ir::Bits;
use freeport_ir::interp::packet_bits;
use freeport_ir::oracle::{ChannelCounters, ChannelOracle, Execution, InstanceOracle, Oracles};

impl Graph {
    /// Returns the choices and histories since the last call, with the current state and counters.
    /// The history of a channel into the graph is what was seen there, so that feeding exactly that
    /// to a replay gives the same [`Execution`]. Without [`Options::record`](crate::Options) there
    /// are no choices and no histories.
    pub fn take_recording(&mut self) -> (Oracles, Execution) {
        let manifest = self.manifest().clone();
        let mut oracles = Oracles::default();
        let Counters { instances, channels, .. } = self.counters();
        let mut execution = Execution {
            state: self.state(&manifest),
            tables: self.tables(&manifest),
            counters: instances,
            channels: channels.into_iter().map(ChannelCounters::without_stalls).collect(),
            answers: std::mem::take(&mut self.answers),
            ..Execution::default()
        };
        self.answers = vec![vec![]; manifest.instances.len()];
        let mut host = std::mem::take(&mut self.host_events);
        self.host_events = vec![vec![]; manifest.instances.len()];
        let count = manifest.instances.len();
        let mut calls = std::mem::replace(&mut self.method_calls, vec![vec![]; count]);
        for (at, (events, calls)) in host.iter_mut().zip(&mut calls).enumerate() {
            let instance = self.code.instance_mut(at);
            oracles.instances.push(InstanceOracle {
                ready: words(&mut instance.ready),
                now: words(&mut instance.now),
                random: words(&mut instance.random_values),
                host: std::mem::take(events),
                calls: std::mem::take(calls),
            });
        }
        for (at, channel) in manifest.channels.iter().enumerate() {
            let recorded = self.code.channel_mut(at);
            let history = take(&mut recorded.history);
            execution.histories.push(match channel.item.bits() {
                Some(width) => {
                    let items = history.chunks_exact(width.div_ceil(8) as usize);
                    items.map(|it| Bits::from_le_bytes(width, it)).collect()
                }
                None => packets(&history),
            });
            let keep = take(&mut recorded.keep).into_iter().map(|kept| kept != 0).collect();
            oracles.channels.push(ChannelOracle { keep });
        }
        self.code.runtime().recorded_bytes = 0;
        (oracles, execution)
    }

    /// Makes a run end with [`RunStatus::RecordFull`](crate::RunStatus::RecordFull) once that many
    /// bytes are recorded. The limit is checked before a firing, so it may be exceeded slightly.
    pub fn set_recording_limit(&mut self, bytes: u64) {
        self.code.runtime().recorded_bytes_limit = bytes;
    }

    fn state(&self, manifest: &Manifest) -> Vec<Vec<Vec<Bits>>> {
        let instances = manifest.instances.iter().enumerate();
        instances
            .map(|(instance, info)| {
                let variables = manifest.elements[info.element].variables.iter().enumerate();
                variables
                    .map(|(object, variable)| {
                        (0..variable.depth)
                            .map(|index| self.element(instance, object, index, variable.width))
                            .collect()
                    })
                    .collect()
            })
            .collect()
    }
}

/// Splits a history into packets, each preceded by its length in 8 bytes.
fn packets(mut history: &[u8]) -> Vec<Bits> {
    let mut found = vec![];
    while let Some((length, rest)) = history.split_at_checked(8) {
        let length = Bits::from_le_bytes(64, length).to_u64() as usize;
        let Some((packet, rest)) = rest.split_at_checked(length) else { break };
        found.push(packet_bits(packet));
        history = rest;
    }
    found
}

fn words(stream: &mut abi::Stream) -> Vec<u64> {
    let bytes = take(stream);
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    bytes.chunks_exact(8).map(word).collect()
}
