// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The study's rows about the key-value store, 38 to 43, beside those of the model.

use super::Peaks;
use freeport_plan_model::study::{Asked, Row, around, growth, one};

/// Returns rows 38 to 43 for results of the model.
pub fn rows(peaks: &Peaks) -> Vec<Row> {
    let latency = Asked { unit: "us", how: "one client, one get at a time, all items cached" };
    let rate = Asked { unit: "M/s", how: "the store on the simulated machine, all clients get" };
    let relation = Asked { unit: "times", how: "of the rates in this table" };
    let gain = Asked { unit: "%", how: "with the same skewed keys, all items cached" };
    let lowest = peaks.host_reads_latency.min(peaks.split_reads_latency);
    let to = |other: f64| one(growth(peaks.combined, other));
    vec![
        latency.row(38, "latency of A5 by SEND", "4.6 us", around(4.6), {
            one(peaks.call_cache_latency)
        }),
        Asked { unit: "times", ..latency }.row(
            38,
            "latency of A5 by SEND, to the lower of A1 and A4",
            "the lowest",
            (0.0, 0.999),
            one(peaks.call_cache_latency / lowest),
        ),
        rate.row(39, "rate of A5 by SEND", "17.6 M/s", around(17.6), one(peaks.call_cache)),
        rate.row(40, "rate of A5 by READ", "70 M/s", around(70.0), one(peaks.cache_reads)),
        rate.row(41, "rate of A4", "58.3 M/s", around(58.3), one(peaks.split_reads)),
        Asked {
            how: "keys with a Zipf distribution, other rows with uniform keys; the first clients \
                  use A5; all items cached",
            ..rate
        }
        .row(42, "rate of A4 and A5 together", "68 M/s", around(68.0), one(peaks.combined)),
        gain.row(42, "A4 and A5, to RNIC", "+25 %", around(25.0), to(peaks.plain_nic)),
        Asked {
            how: "with the same skewed keys, all items cached. Published rates of A1 are 0.92 of \
                  RNIC's here, and 0.74 to 0.81 in row 5, which the model follows",
            ..gain
        }
        .row(42, "A4 and A5, to A1", "+36 %", around(36.0), to(peaks.host_reads_skewed)),
        Asked {
            how: "with the same skewed keys, all items cached. Published rates of A4 are 1.12 of \
                  RNIC's here; the model has 1.15, by the NIC cores fitted to rows 5, 6 and 26",
            ..gain
        }
        .row(42, "A4 and A5, to A4", "+12 %", around(12.0), to(peaks.split_reads_skewed)),
        Asked { unit: "times", ..latency }.row(
            43,
            "latency of A1, to A4",
            "higher",
            (1.001, 10.0),
            one(peaks.host_reads_latency / peaks.split_reads_latency),
        ),
        relation.row(
            43,
            "rate of A1, to A4",
            "lower",
            (0.0, 0.999),
            one(peaks.host_reads / peaks.split_reads),
        ),
    ]
}
