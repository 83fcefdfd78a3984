// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parameters of a machine from measured points.
//!
//! Times of one-sided requests are sums of parameters with weights, so parameters follow by least
//! squares of the relative errors. Two kinds of parameters are inside of the weights: the part of
//! the last-level cache that this machine gets, and how far a core fetches ahead. Some values of
//! them are tried.

mod far;
mod solve;
mod sums;

pub use solve::System;

use crate::host::Host;
use crate::point::{BATCH_MAX, Kind, Mode};
use crate::points::PAYLOAD_MAX;
use crate::sample::Sample;
use freeport_plan_model::local::{KIB, Machine, SECTIONS};
use freeport_plan_model::parameters::Origin;

/// Fits the parameters of a machine to samples of the points that are
/// [chosen](crate::points::points) for it.
pub fn fit(host: &Host, samples: &[Sample]) -> Machine {
    let mut machine = Machine { name: host.name.clone(), ..Machine::default() };
    let largest = |of: fn(&Sample) -> u64| samples.iter().map(of).max().unwrap_or(0) as f64;
    machine.measured.cores = host.cores.len() as f64;
    machine.measured.payload = PAYLOAD_MAX as f64;
    machine.measured.range = largest(|sample| sample.point.range) / KIB;
    machine.measured.batch = f64::from(BATCH_MAX);
    machine.cache.near = host.near as f64 / KIB;
    machine.cache.middle = host.middle as f64 / KIB;
    far::fit(&mut machine, host, samples);
    sums::waits(&mut machine, samples);
    sums::messages(&mut machine, samples);
    sums::together(&mut machine, samples);
    finish(&mut machine, host, samples);
    machine
}

/// Rounds values, and states where they come from.
fn finish(machine: &mut Machine, host: &Host, samples: &[Sample]) {
    for (section, keys) in SECTIONS {
        for key in *keys {
            let name = format!("{section}.{}", key.name);
            let value = rounded(machine.value(&name).unwrap_or(0.0), key.unit);
            machine.set_value(&name, value.clamp(key.least, key.most));
            let (source, fitted) = source(section, key.name, host, samples);
            machine.origins.insert(name, Origin { source, fitted });
        }
    }
}

fn source(section: &str, key: &str, host: &Host, samples: &[Sample]) -> (String, bool) {
    let count = |is: &dyn Fn(&Sample) -> bool| samples.iter().filter(|sample| is(sample)).count();
    let of = |kind| count(&|sample| sample.point.kind == kind && sample.point.threads == 1);
    let measured = |points: usize, what: &str| {
        (format!("measured: fitted to {points} points of {what} over shared memory"), true)
    };
    match (section, key) {
        ("measured", "cores") => ("the cores this process may use".into(), false),
        ("measured", _) => ("limits of the measurement".into(), false),
        ("cache", "last") => {
            let whole = host.last >> 10;
            (format!("measured: fitted to all one-sided points; the system says {whole} KiB"), true)
        }
        ("cache", _) => ("the system: /sys/devices/system/cpu/cpu0/cache".into(), false),
        ("read", _) => measured(of(Kind::Read), "reads"),
        ("write", _) => measured(of(Kind::Write), "writes"),
        ("wait", _) => {
            let lone = count(&|sample| sample.point.mode == Mode::Latency);
            measured(lone, "reads that wait for each other")
        }
        ("atomic", _) => measured(of(Kind::FetchAdd), "fetch_add"),
        ("message", _) => measured(of(Kind::Send), "messages with answers"),
        _ => measured(count(&|sample| sample.point.threads > 1), "several threads"),
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
