// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sections of `INFO` on commands that were called.

use super::Lines;
use crate::statistics::{self, Calls};
use crate::worker::Core;

/// Commands and subcommands that were called or refused, by name.
fn called(core: &Core) -> Vec<(&str, Calls)> {
    let mut called: Vec<_> = core.shared.calls().collect();
    called.sort_by_key(|(name, _)| *name);
    called
}

pub(super) fn calls(core: &Core, lines: &mut Lines) {
    for (name, calls) in called(core) {
        let (count, microseconds) = (calls.count(), calls.microseconds());
        let each = calls.nanoseconds as f64 / 1_000.0 / count.max(1) as f64;
        let (rejected, failed) = (calls.rejected, calls.failed);
        let value = format!(
            "calls={count},usec={microseconds},usec_per_call={each:.2},rejected_calls={rejected},\
             failed_calls={failed}"
        );
        lines.add(&format!("cmdstat_{name}"), value);
    }
}

pub(super) fn errors(core: &Core, lines: &mut Lines) {
    for (code, count) in statistics::errors(core.shared.workers()) {
        lines.add(&format!("errorstat_{code}"), format!("count={count}"));
    }
}

pub(super) fn latencies(core: &Core, lines: &mut Lines) {
    for (name, calls) in called(core) {
        let [half, most, nearly_all] =
            [50.0, 99.0, 99.9].map(|percent| format!("{:.3}", calls.percentile(percent)));
        let value = format!("p50={half},p99={most},p99.9={nearly_all}");
        lines.add(&format!("latency_percentiles_usec_{name}"), value);
    }
}
