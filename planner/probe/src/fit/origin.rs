// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the values of a machine's parameters come from.

use super::Evidence;
use crate::host::Host;
use freeport_plan_model::parameters::Origin;

/// Returns the origin of a parameter, such as `read.post`. `evidence` is what a fitted value
/// follows from, `is_measured` is whether there are samples at all, and `value` is the value with
/// its unit.
pub fn origin(
    name: &str,
    host: &Host,
    evidence: Option<Evidence>,
    is_measured: bool,
    value: &str,
) -> Origin {
    let stated = |source: &str| Origin { source: source.into(), fitted: false };
    let assumed = || stated(&format!("not measured: assumed {value}"));
    let (section, key) = name.split_once('.').unwrap_or((name, ""));
    match (section, key, evidence) {
        ("measured", "cores", _) => stated("the cores this process may use"),
        ("measured", ..) if is_measured => stated("limits of the measurement"),
        ("cache", _, None) if host.reports_caches => {
            stated("the system: /sys/devices/system/cpu/cpu0/cache")
        }
        (.., Some(Evidence { points, is_converged })) if points > 0 => {
            let system = format!("; the system says {} KiB", host.last >> 10);
            let system = if section == "cache" && host.reports_caches { &system } else { "" };
            let note = if is_converged { "" } else { "; the fit did not converge" };
            let what = points_of(section);
            let plural = if points == 1 { "" } else { "s" };
            let source =
                format!("measured: fitted to {points} point{plural} of {what}{system}{note}");
            Origin { source, fitted: true }
        }
        _ => assumed(),
    }
}

/// Returns the name of points that a section's parameters are fitted to.
fn points_of(section: &str) -> &'static str {
    match section {
        "cache" => "one-sided requests over shared memory",
        "read" => "reads over shared memory",
        "write" => "writes over shared memory",
        "wait" => "reads over shared memory that wait for each other",
        "atomic" => "fetch_add over shared memory",
        "message" => "messages with answers over shared memory",
        _ => "several threads over shared memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_say_what_was_not_measured_and_what_did_not_converge() {
        let host = Host {
            name: "a machine".into(),
            cores: vec![0],
            near: 1 << 15,
            middle: 1 << 20,
            last: 1 << 25,
            reports_caches: true,
            memory: 1 << 30,
        };
        let of = |name: &str, points, is_converged| {
            let evidence = Some(Evidence { points, is_converged });
            let Origin { source, fitted } = origin(name, &host, evidence, true, "3 ns");
            (source, fitted)
        };
        let fitted = "measured: fitted to 7 points of reads over shared memory";
        assert_eq!(of("read.post", 7, true), (fitted.into(), true));
        assert!(of("read.post", 1, true).0.contains("fitted to 1 point of reads"));
        let unsure = format!("{fitted}; the fit did not converge");
        assert_eq!(of("read.post", 7, false), (unsure, true));
        assert_eq!(of("read.post", 0, true), ("not measured: assumed 3 ns".into(), false));
        assert!(of("cache.last", 7, true).0.ends_with("the system says 32768 KiB"));
        // Sizes of caches that the system does not report are those of common processors.
        let unknown = Host { reports_caches: false, ..host };
        let near = origin("cache.near", &unknown, None, true, "32 KiB");
        assert_eq!(near.source, "not measured: assumed 32 KiB");
    }
}
