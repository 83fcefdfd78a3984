// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows about latency.

use super::{Asked, INLINE, LATENCY, Model, Row, around, growth, one, span};
use crate::path::Operation::{Read, Send, Write};
use crate::path::{Operation, Path};

pub(super) fn rows(model: &Model<'_>) -> Vec<Row> {
    let asked = Asked { unit: "%", how: "single requests of 8 to 4096 B" };
    let row = |number, metric, published, accepted, ours| {
        asked.row(number, metric, published, accepted, ours)
    };
    let (rnic, host, soc) = (Path::Rnic, Path::Host, Path::Soc);
    let of = |operation, to, from| model.grows(Model::latency, operation, [to, from], &LATENCY);
    let read_1 = |bytes| model.latency(host, Read, bytes);
    let pass = (read_1(64) - model.latency(rnic, Read, 64)) / 2.0;
    let fastest = of(Read, soc, host).0;
    vec![
        row(1, "READ latency, path 1 to RNIC", "+15 to +30 %", (15.0, 30.0), of(Read, host, rnic)),
        row(
            2,
            "WRITE latency, path 1 to RNIC",
            "+15 to +21 %",
            (15.0, 21.0),
            of(Write, host, rnic),
        ),
        row(3, "SEND latency, path 1 to RNIC", "+6 to +9 %", (6.0, 9.0), of(Send, host, rnic)),
        Row {
            unit: "ns",
            how: "half of the READ latency that the switch adds, 64 B",
            ..row(4, "pass of the switch", "300 ns", around(300.0), one(pass))
        },
        Row {
            how: "the greatest gain over 8 to 4096 B",
            ..row(9, "READ latency, path 2 to 1", "up to -14 %", around(-14.0), one(fastest))
        },
        row(10, "READ latency, path 2 to RNIC", "+4 to +15 %", (4.0, 15.0), of(Read, soc, rnic)),
        row(11, "WRITE latency, path 2 to 1", "similar", (-10.0, 10.0), of(Write, soc, host)),
        row(12, "SEND latency, path 2 to 1", "+21 to +30 %", (21.0, 30.0), of(Send, soc, host)),
        worst_inside(model),
        Row {
            how: "READ of 8 to 4096 B; WRITE and SEND to 512 B, which come with the request. \
                  Larger ones are fetched from the host, and far slower",
            ..row(
                21,
                "latency of H2S, to path 2",
                "+4 to +17 %",
                (4.0, 17.0),
                span(Operation::ALL.into_iter().flat_map(|operation| {
                    let payloads = if operation == Read { &LATENCY[..] } else { &INLINE };
                    let paths = [Path::HostToSoc, soc];
                    let (low, high) = model.grows(Model::latency, operation, paths, payloads);
                    [low, high]
                })),
            )
        },
        Row {
            unit: "us",
            how: "a READ of 64 B over a plain NIC",
            ..row(31, "typical latency of RDMA", "2 us", around(2.0), {
                one(model.latency(rnic, Read, 64) / 1000.0)
            })
        },
    ]
}

/// Row 20: the READ of the device's processor is the slowest of all one-sided requests.
fn worst_inside(model: &Model<'_>) -> Row {
    let worst = model.latency(Path::SocToHost, Read, 64);
    let others = [
        (Path::Host, Read),
        (Path::Host, Write),
        (Path::Soc, Read),
        (Path::Soc, Write),
        (Path::HostToSoc, Read),
        (Path::HostToSoc, Write),
        (Path::SocToHost, Write),
    ];
    let next = span(others.map(|(path, operation)| model.latency(path, operation, 64))).1;
    let how = "64 B, to the slowest other one-sided request";
    let asked = Asked { unit: "%", how };
    let (metric, published) = ("latency of S2H, READ to the next", "very high, READ worst");
    asked.row(20, metric, published, (10.0, 10_000.0), one(growth(worst, next)))
}
