// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters that build on those of one-sided requests: waiting, messages, and several threads.

use super::Fit;
use super::solve::{Evidence, System};
use crate::point::{Kind, Mode, Point};
use crate::sample::Sample;
use freeport_plan_model::local::{Parts, message_weights, shares};

/// Fits how long lone reads wait for their first bytes.
pub fn waits(found: &mut Fit, samples: &[Sample]) {
    let machine = &found.machine;
    let mut system = System::new(2);
    for sample in samples.iter().filter(|sample| sample.point.mode == Mode::Latency) {
        let request = sample.point.request();
        let without = machine.lone_read(&request, 0.0);
        let shares = shares(&machine.cache, sample.point.range);
        // Elsewhere, a read does not wait, or another part of the time counts.
        if sample.quiet_median > without && shares.last + shares.memory > 0.0 {
            let rest = sample.quiet_median - without;
            system.add([shares.last, shares.memory], rest);
        }
    }
    found.set_all(&["wait.last", "wait.memory"], &system);
}

/// Fits the times of messages, and of turns where two sides share a core.
pub fn messages(found: &mut Fit, samples: &[Sample]) {
    let mut system = System::new(5);
    let of_messages = || samples.iter().filter(|sample| sample.point.kind == Kind::Send);
    for sample in of_messages().filter(|sample| sample.point.threads == 1) {
        let weights = message_weights(sample.point.bytes, sample.point.batch);
        system.add(weights.map(|(_, weight)| weight), sample.quiet_median.max(1e-3));
    }
    let names = message_weights(8, 1).map(|(name, _)| format!("message.{name}"));
    found.set_all(&names.each_ref().map(String::as_str), &system);
    let machine = &found.machine;
    let cores = machine.measured.cores;
    let shared = of_messages().filter(|sample| 2.0 * f64::from(sample.point.threads) > cores);
    if let Some(sample) = shared.max_by_key(|sample| sample.point.batch) {
        let turn = sample.between * cores / 2.0 - machine.next_message(sample.point.bytes);
        let turn = (turn * f64::from(sample.point.batch)).max(0.0);
        found.set("message.turn", turn, Evidence { points: 1, is_converged: true });
    }
}

/// Fits how many single cores all cores are worth: a part of the time of one thread, divided by its
/// worth, is the same part of the time between requests of all.
pub fn together(found: &mut Fit, samples: &[Sample]) {
    let machine = &found.machine;
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
    let solution = system.robust();
    // A part that takes no time together, or that no point has, is worth as many cores as possible.
    let worth = |share: f64| if share > 0.0 { (1.0 / share).clamp(0.5, most) } else { most };
    for (at, name) in ["near", "last", "memory"].into_iter().enumerate() {
        let evidence = system.evidence(at, &solution);
        found.set(&format!("together.{name}"), worth(solution.values[at]), evidence);
    }
}
