// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters that build on those of one-sided requests: waiting, messages, and several threads.

use super::solve::System;
use crate::point::{Kind, Mode, Point};
use crate::sample::Sample;
use freeport_plan_model::local::{Machine, Parts, message_weights, shares};

/// Fits how long lone reads wait for their first bytes.
pub fn waits(machine: &mut Machine, samples: &[Sample]) {
    let mut system = System::new(2);
    for sample in samples.iter().filter(|sample| sample.point.mode == Mode::Latency) {
        let request = sample.point.request();
        let without = machine.lone_read(&request, 0.0);
        let shares = shares(&machine.cache, sample.point.range);
        // Elsewhere, a read does not wait, or another part of the time counts.
        if sample.median > without && shares.last + shares.memory > 0.0 {
            let rest = sample.median - without;
            system.add([shares.last, shares.memory], rest);
        }
    }
    let values = system.robust();
    (machine.wait.last, machine.wait.memory) = (values[0], values[1]);
}

/// Fits the times of messages, and of turns where two sides share a core.
pub fn messages(machine: &mut Machine, samples: &[Sample]) {
    let mut system = System::new(5);
    let of_messages = || samples.iter().filter(|sample| sample.point.kind == Kind::Send);
    for sample in of_messages().filter(|sample| sample.point.threads == 1) {
        let weights = message_weights(sample.point.bytes, sample.point.batch);
        system.add(weights.map(|(_, weight)| weight), sample.median.max(1e-3));
    }
    for ((name, _), value) in message_weights(8, 1).into_iter().zip(system.robust()) {
        machine.set_value(&format!("message.{name}"), value);
    }
    let cores = machine.measured.cores;
    let shared = of_messages().filter(|sample| 2.0 * f64::from(sample.point.threads) > cores);
    if let Some(sample) = shared.max_by_key(|sample| sample.point.batch) {
        let turn = sample.between * cores / 2.0 - machine.next_message(sample.point.bytes);
        machine.message.turn = (turn * f64::from(sample.point.batch)).max(0.0);
    }
}

/// Fits how many single cores all cores are worth: a part of the time of one thread, divided by its
/// worth, is the same part of the time between requests of all.
pub fn together(machine: &mut Machine, samples: &[Sample]) {
    let threads = samples.iter().map(|sample| sample.point.threads).max().unwrap_or(1);
    let most = f64::from(threads).max(1.0);
    let mut system = System::new(3);
    let of_many = samples.iter().filter(|sample| sample.point.threads > 1);
    for many in of_many.filter(|sample| sample.point.kind != Kind::Send) {
        let alone = Point { threads: 1, ..many.point };
        let Some(one) = samples.iter().find(|sample| sample.point == alone) else { continue };
        let Parts { core, last, memory } = machine.parts(&alone.request());
        let modelled = core + last + memory;
        if modelled > 0.0 && one.between > 0.0 {
            system.add([core, last, memory], many.between * modelled / one.between);
        }
    }
    let shares = system.robust();
    let worth =
        |at: usize| if shares[at] > 0.0 { (1.0 / shares[at]).clamp(0.5, most) } else { most };
    let together = &mut machine.together;
    (together.near, together.last, together.memory) = (worth(0), worth(1), worth(2));
}
