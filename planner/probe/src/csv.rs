// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results as CSV.

use crate::point::Point;
use crate::sample::Sample;

/// Names of the columns.
const HEAD: &str = "transport,operation,mode,bytes,batch,range_bytes,threads,quiet_median_ns,\
                    group_p99_ns,group,millions_per_second,gbps\n";

/// Returns samples over a transport as CSV, with the names of the columns.
pub fn csv(transport: &str, samples: &[Sample]) -> String {
    let line = |sample: &Sample| {
        let Point { kind, mode, bytes, batch, range, threads } = sample.point;
        let gbps = sample.rate() * bytes as f64 * 8.0 / 1e3;
        format!(
            "{transport},{},{},{bytes},{batch},{range},{threads},{:.2},{:.2},{},{:.6},{gbps:.3}\n",
            kind.name(),
            mode.name(),
            sample.quiet_median,
            sample.group_p99,
            sample.group,
            sample.rate(),
        )
    };
    HEAD.to_owned() + &samples.iter().map(line).collect::<String>()
}
