// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parameters of a machine from measured points.
//!
//! Times of one-sided requests are sums of parameters with weights, so parameters follow by least
//! squares of the relative errors. Two kinds of parameters are inside of the weights: the part of
//! the last-level cache that this machine gets, and how far a core fetches ahead. Some values of
//! them are tried.

mod far;
mod origin;
mod solve;
mod sums;

pub use solve::{Evidence, Solution, System};

use crate::host::Host;
use crate::point::Kind;
use crate::sample::Sample;
use freeport_plan_model::local::{KIB, Machine, SECTIONS};
use std::collections::BTreeMap;

/// A machine whose parameters are being fitted.
struct Fit {
    machine: Machine,
    /// The evidence for fitted values, by the names of their parameters.
    evidence: BTreeMap<String, Evidence>,
}

/// Fits the parameters of a machine to samples of the points that are
/// [chosen](crate::points::points) for it. The origin of a parameter that no sample depends on
/// says that its value is assumed.
pub fn fit(host: &Host, samples: &[Sample]) -> Machine {
    let machine = Machine { name: host.name.clone(), ..Machine::default() };
    let mut found = Fit { machine, evidence: BTreeMap::new() };
    extent(&mut found.machine, host, samples);
    found.machine.cache.near = host.near as f64 / KIB;
    found.machine.cache.middle = host.middle as f64 / KIB;
    far::fit(&mut found, host, samples);
    sums::waits(&mut found, samples);
    sums::messages(&mut found, samples);
    sums::together(&mut found, samples);
    found.finish(host, samples)
}

/// Sets what the samples cover. A batch is covered if messages and other requests were measured
/// with it.
fn extent(machine: &mut Machine, host: &Host, samples: &[Sample]) {
    let largest = |is_message: bool, of: fn(&Sample) -> u64| {
        let of_kind =
            samples.iter().filter(|sample| (sample.point.kind == Kind::Send) == is_message);
        of_kind.map(of).max()
    };
    let batch = |is_message| largest(is_message, |sample| sample.point.batch.into());
    let threads = |is_message| largest(is_message, |sample| sample.point.threads.into());
    let both = |of: [Option<u64>; 2]| of.into_iter().flatten().min().unwrap_or(0) as f64;
    let measured = &mut machine.measured;
    measured.cores = host.cores.len() as f64;
    measured.payload = largest(false, |sample| sample.point.bytes).unwrap_or(0) as f64;
    measured.message = largest(true, |sample| sample.point.bytes).unwrap_or(0) as f64;
    measured.range = largest(false, |sample| sample.point.range).unwrap_or(0) as f64 / KIB;
    measured.batch = both([false, true].map(batch));
    measured.threads = both([false, true].map(threads));
}

impl Fit {
    /// Sets a parameter that was fitted.
    fn set(&mut self, name: &str, value: f64, evidence: Evidence) {
        self.machine.set_value(name, value);
        self.evidence.insert(name.to_owned(), evidence);
    }

    /// Sets parameters to the solution of a system whose unknowns they are.
    fn set_all(&mut self, names: &[&str], system: &System) {
        let solution = system.robust();
        for (at, name) in names.iter().enumerate() {
            self.set(name, solution.values[at], system.evidence(at, &solution));
        }
    }

    /// Rounds values, and states where they come from.
    fn finish(mut self, host: &Host, samples: &[Sample]) -> Machine {
        for (section, keys) in SECTIONS {
            for key in *keys {
                let name = format!("{section}.{}", key.name);
                let value = rounded(self.machine.value(&name).unwrap_or(0.0), key.unit);
                let value = value.clamp(key.least, key.most);
                self.machine.set_value(&name, value);
                let measured = !samples.is_empty();
                let assumed = format!("{value} {}", key.unit);
                let evidence = self.evidence.get(&name).copied();
                let origin = origin::origin(&name, host, evidence, measured, &assumed);
                self.machine.origins.insert(name, origin);
            }
        }
        self.machine
    }
}

/// Rounds to four digits; what is counted, to whole numbers.
fn rounded(value: f64, unit: &str) -> f64 {
    if ["count", "B", "KiB"].contains(&unit) {
        return value.round();
    }
    // The text of a number is exact, and short for few digits.
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn values_have_four_digits() {
        assert_eq!(rounded(12.345_678, "ns"), 12.35);
        assert_eq!(rounded(0.0, "ns"), 0.0);
        assert_eq!(rounded(49_151.7, "KiB"), 49_152.0);
    }
}
