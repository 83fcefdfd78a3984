// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures with their units, as texts.

/// Returns a time with its unit.
pub fn time(ns: f64) -> String {
    match ns {
        1e6.. => format!("{:.2} ms", ns / 1e6),
        1e3.. => format!("{:.2} us", ns / 1e3),
        _ => format!("{ns:.0} ns"),
    }
}

/// Returns a rate with its unit; `millions` per second.
pub fn rate(millions: f64) -> String {
    match millions {
        1.0.. => format!("{millions:.1} M/s"),
        0.001.. => format!("{:.1} K/s", millions * 1e3),
        _ => format!("{:.1} /s", millions * 1e6),
    }
}

/// Returns payload per second in Gbit/s; `millions` per second of `bytes`.
pub fn gbps(millions: f64, bytes: f64) -> f64 {
    millions * bytes * 8.0 / 1000.0
}
