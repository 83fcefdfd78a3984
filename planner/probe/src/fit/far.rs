// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters of one-sided requests, and of what is inside of their weights.

use super::solve::System;
use crate::host::Host;
use crate::point::{Kind, Mode};
use crate::sample::Sample;
use freeport_plan_model::local::{Cache, KIB, Machine, Weight, copy_weights, word_weights};

/// Candidates for the last-level cache in each doubling of its size.
const CANDIDATES: i32 = 8;
/// Candidates for the bytes that a core fetches ahead of, in bytes.
const AHEAD: [f64; 8] = [512.0, 1024.0, 1536.0, 2048.0, 2560.0, 3072.0, 3584.0, 4096.0];

/// Parameters of one kind of requests, by their names, and their error.
struct Section {
    values: Vec<Weight>,
    ahead: f64,
    error: f64,
}

/// Fits the last-level cache, and the sections of copies and atomic operations.
pub fn fit(machine: &mut Machine, host: &Host, samples: &[Sample]) {
    let mut best: Option<(f64, Cache, [Section; 3])> = None;
    for last in candidates(host) {
        let cache = Cache { last, ..machine.cache };
        let sections =
            [Kind::Read, Kind::Write, Kind::FetchAdd].map(|kind| section(&cache, kind, samples));
        let error = sections.iter().map(|section| section.error).sum();
        if best.as_ref().is_none_or(|(least, ..)| error < *least) {
            best = Some((error, cache, sections));
        }
    }
    let Some((_, cache, sections)) = best else { return };
    machine.cache = cache;
    for (name, section) in ["read", "write", "atomic"].into_iter().zip(sections) {
        for (key, value) in section.values {
            machine.set_value(&format!("{name}.{key}"), value);
        }
        machine.set_value(&format!("{name}.ahead"), section.ahead);
    }
}

/// Returns sizes of the last-level cache in KiB: at most what the system says, and more than the
/// core's caches. Other machines may use a part of it.
fn candidates(host: &Host) -> Vec<f64> {
    let (middle, last) = (host.middle as f64 / KIB, host.last as f64 / KIB);
    let size = |step: i32| middle * f64::powf(2.0, f64::from(step) / f64::from(CANDIDATES));
    let mut sizes: Vec<f64> = (CANDIDATES..).map(size).take_while(|size| *size < last).collect();
    sizes.push(last);
    sizes
}

/// Fits the parameters of a kind, given the caches.
fn section(cache: &Cache, kind: Kind, samples: &[Sample]) -> Section {
    let is_copy = kind != Kind::FetchAdd;
    let candidates = if is_copy { &AHEAD[..] } else { &AHEAD[..1] };
    let of_kind = || {
        samples.iter().filter(|sample| {
            let point = sample.point;
            point.kind == kind && point.mode == Mode::Rate && point.threads == 1
        })
    };
    let weights = |sample: &Sample, ahead: f64| {
        let point = sample.point;
        match is_copy {
            true => copy_weights(cache, ahead, point.bytes, point.batch, point.range).to_vec(),
            false => word_weights(cache, point.batch, point.range).to_vec(),
        }
    };
    let solved = |ahead: &f64| {
        let names: Vec<&str> = of_kind()
            .next()
            .map(|sample| weights(sample, *ahead).iter().map(|(name, _)| *name).collect())
            .unwrap_or_default();
        let mut system = System::new(names.len());
        for sample in of_kind() {
            let row = weights(sample, *ahead);
            system.add(row.into_iter().map(|(_, weight)| weight), sample.median.max(1e-3));
        }
        let values = system.robust();
        let error = system.error(&values);
        Section { values: names.into_iter().zip(values).collect(), ahead: *ahead, error }
    };
    let all = candidates.iter().map(solved);
    all.min_by(|one, other| one.error.total_cmp(&other.error)).expect("there are candidates")
}
