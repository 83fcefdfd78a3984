// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters of one-sided requests, and of what is inside of their weights.

use super::Fit;
use super::solve::{Evidence, System};
use crate::host::Host;
use crate::point::{Kind, Mode};
use crate::sample::Sample;
use freeport_plan_model::local::{Cache, KIB, Weight, copy_weights, word_weights};

/// Candidates for the last-level cache in each doubling of its size.
const CANDIDATES: i32 = 8;
/// Candidates for the bytes that a core fetches ahead of, in bytes.
const AHEAD: [f64; 8] = [512.0, 1024.0, 1536.0, 2048.0, 2560.0, 3072.0, 3584.0, 4096.0];

/// Part of the error of a larger cache below which a smaller one is preferred. Any limit lowers the
/// error a little, since it adds unknowns.
const CLEARLY: f64 = 0.99;
/// Difference of errors that is only that of rounding.
const NOISE: f64 = 1e-9;

/// Parameters of one kind of requests, by their names, and their error.
struct Section {
    values: Vec<Weight>,
    ahead: f64,
    error: f64,
    /// The evidence for the values.
    evidence: Vec<Evidence>,
}

/// Fits the last-level cache, and the sections of copies and atomic operations.
pub fn fit(found: &mut Fit, host: &Host, samples: &[Sample]) {
    let machine = &found.machine;
    let mut best: Option<(f64, Cache, [Section; 3])> = None;
    for last in candidates(host) {
        let cache = Cache { last, ..machine.cache };
        let sections =
            [Kind::Read, Kind::Write, Kind::FetchAdd].map(|kind| section(&cache, kind, samples));
        let error = sections.iter().map(|section| section.error).sum();
        if best.as_ref().is_none_or(|(least, ..)| error < CLEARLY * least - NOISE) {
            best = Some((error, cache, sections));
        }
    }
    let Some((_, cache, sections)) = best else { return };
    found.machine.cache = cache;
    // Only ranges that the cache does not hold tell how large it is.
    let one_sided = || samples.iter().filter(|sample| sample.point.kind != Kind::Send);
    let is_beyond = one_sided().any(|sample| sample.point.range as f64 > cache.last * KIB);
    let points = if is_beyond { one_sided().count() } else { 0 };
    let is_converged = sections.iter().all(Section::is_converged);
    if host.last > host.middle {
        found.set("cache.last", cache.last, Evidence { points, is_converged });
    }
    for (name, section) in ["read", "write", "atomic"].into_iter().zip(sections) {
        let is_far = |name: &str| ["last_byte", "memory_byte"].contains(&name);
        let mut ahead = Evidence { points: 0, is_converged: section.is_converged() };
        for ((key, value), evidence) in section.values.into_iter().zip(section.evidence) {
            if is_far(key) {
                ahead.points = ahead.points.max(evidence.points);
            }
            found.set(&format!("{name}.{key}"), value, evidence);
        }
        if name != "atomic" {
            found.set(&format!("{name}.ahead"), section.ahead, ahead);
        }
    }
}

impl Section {
    fn is_converged(&self) -> bool {
        self.evidence.iter().all(|evidence| evidence.is_converged)
    }
}

/// Returns sizes of the last-level cache in KiB, the largest first: at most what the system says,
/// and more than the core's caches. Other machines may use a part of it.
fn candidates(host: &Host) -> Vec<f64> {
    let (middle, last) = (host.middle as f64 / KIB, host.last as f64 / KIB);
    let size = |step: i32| middle * f64::powf(2.0, f64::from(step) / f64::from(CANDIDATES));
    let mut sizes: Vec<f64> = (CANDIDATES..).map(size).take_while(|size| *size < last).collect();
    sizes.push(last);
    sizes.reverse();
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
            system.add(row.into_iter().map(|(_, weight)| weight), sample.quiet_median.max(1e-3));
        }
        let solution = system.robust();
        let error = system.error(&solution.values);
        let evidence = (0..names.len()).map(|at| system.evidence(at, &solution)).collect();
        let values = names.into_iter().zip(solution.values).collect();
        Section { values, ahead: *ahead, error, evidence }
    };
    let all = candidates.iter().map(solved);
    all.min_by(|one, other| one.error.total_cmp(&other.error)).expect("there are candidates")
}
