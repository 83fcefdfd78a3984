// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows about throughput of single paths.

use super::{Asked, Model, Row, SMALL, around, growth, one, span};
use crate::path::Operation::{Read, Send, Write};
use crate::path::{Operation, Path};

/// Payloads of which the network is the limit.
const LARGE: [u64; 4] = [512, 1024, 4096, 65_536];
/// Payloads of the fall of large reads.
const HUGE: [u64; 9] = [
    1_000_000, 4_000_000, 8_000_000, 9_000_000, 10_000_000, 12_000_000, 16_000_000, 32_000_000,
    64_000_000,
];

pub(super) fn rows(model: &Model<'_>) -> Vec<Row> {
    let mut rows = of_clients(model);
    rows.extend(of_large_reads(model));
    rows.extend(inside(model));
    rows
}

fn of_clients(model: &Model<'_>) -> Vec<Row> {
    let how = "all clients, 8 to 128 B: the network is not the limit";
    let asked = Asked { unit: "%", how };
    let row = |number, metric, published, accepted, ours| {
        asked.row(number, metric, published, accepted, ours)
    };
    let (rnic, host, soc) = (Path::Rnic, Path::Host, Path::Soc);
    let of = |operation, to, from| model.grows(Model::rate, operation, [to, from], &SMALL);
    let large = span(Operation::ALL.into_iter().flat_map(|operation| {
        let payloads = if operation == Send { &LARGE[..3] } else { &LARGE };
        let (low, high) = model.grows(Model::rate, operation, [host, rnic], payloads);
        [low, high]
    }));
    let times = |(low, high): (f64, f64)| (1.0 + low / 100.0, 1.0 + high / 100.0);
    let one_sided = span([Read, Write].into_iter().flat_map(|operation| {
        let (low, high) = times(of(operation, soc, host));
        [low, high]
    }));
    vec![
        row(5, "READ rate, path 1 to RNIC", "-19 to -26 %", (-26.0, -19.0), of(Read, host, rnic)),
        row(6, "WRITE rate, path 1 to RNIC", "-15 to -22 %", (-22.0, -15.0), of(Write, host, rnic)),
        row(7, "SEND rate, path 1 to RNIC", "-3 to -36 %", (-36.0, -3.0), of(Send, host, rnic)),
        Row {
            how: "all clients, 512 B to 64 KiB; messages to 4 KiB",
            ..row(8, "large transfers, path 1 to RNIC", "similar", (-10.0, 10.0), large)
        },
        Row {
            unit: "times",
            ..row(13, "one-sided rate, path 2 to 1", "1.08 to 1.48", (1.08, 1.48), one_sided)
        },
        row(14, "READ rate, path 2 to RNIC", "higher", (0.1, 100.0), of(Read, soc, rnic)),
        row(15, "WRITE rate, path 2 to RNIC", "lower", (-100.0, -0.1), of(Write, soc, rnic)),
        Row {
            unit: "times",
            how: "8 to 128 B; so both readings hold, 0.64 times and 64 % less",
            ..row(16, "SEND rate, path 2 to 1", "up to 0.64", (0.0, 0.64), {
                times(of(Send, soc, host))
            })
        },
        Row {
            unit: "times",
            how: "the greatest over READ and WRITE of 8 to 128 B",
            ..row(19, "headline: path 2 to 1", "1.48", around(1.48), one(one_sided.1))
        },
        Row {
            unit: "M/s",
            how: "requests without payload to a plain NIC",
            ..row(29, "rate of the NIC cores", "over 195 M/s", (195.0, 10_000.0), {
                one(model.rate(rnic, Read, 0))
            })
        },
        Row {
            unit: "M/s",
            how: "messages of 8 B that 24 cores answer",
            ..row(29, "messages of a host of 24 cores", "87 M/s", around(87.0), {
                one(model.rate(rnic, Send, 8))
            })
        },
        Asked {
            unit: "times",
            how: "not modelled: the study does not say how many cores the file system itself uses",
        }
        .row(
            30,
            "cores of a file system, 25 to 100 Gbit/s",
            "2.27 times",
            around(2.27),
            one(f64::NAN),
        ),
    ]
}

fn of_large_reads(model: &Model<'_>) -> Vec<Row> {
    let read = |bytes| model.goodput(Path::Soc, Read, bytes);
    let best = span(HUGE.map(read)).1;
    // The payload up to which nothing is lost.
    let kept = HUGE.into_iter().filter(|&bytes| read(bytes) > 0.98 * best).max();
    let kept = kept.unwrap_or(0) as f64;
    let worst = span(HUGE.map(read)).0;
    vec![
        Asked {
            unit: "MB",
            how: "the largest of 1, 4, 8, 9, 10, 12, 16, 32 and 64 MB that loses less than 2 %",
        }
        .row(17, "READ of path 2 falls", "from 9 MB", around(9.0), one(kept / 1e6)),
        Asked {
            unit: "%",
            how: "READ of path 2, 64 MB to the best payload up to that; larger ones lose more",
        }
        .row(
            18,
            "worst anomaly with the device's processor",
            "up to -48 %",
            around(-48.0),
            one(growth(worst, best)),
        ),
    ]
}

fn inside(model: &Model<'_>) -> Vec<Row> {
    let rates = |path| span(SMALL.map(|bytes| model.rate(path, Read, bytes)));
    let asked = Asked { unit: "M/s", how: "READ of 8 to 128 B by all cores" };
    let data = [Path::SocToHost, Path::HostToSoc]
        .into_iter()
        .flat_map(|path| [Read, Write].map(|operation| model.goodput(path, operation, 65_536)));
    vec![
        asked.row(22, "READ rate of S2H", "29 M/s", around(29.0), rates(Path::SocToHost)),
        asked.row(23, "READ rate of H2S", "51.2 M/s", around(51.2), rates(Path::HostToSoc)),
        Row {
            unit: "Gbit/s",
            how: "READ and WRITE of 64 KiB in both directions",
            ..asked.row(24, "data rate of path 3", "half of PCIe", around(128.0), span(data))
        },
    ]
}
