// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows about paths that are used at the same time.

use super::{Asked, Model, Row, around, growth, one, span};
use crate::path::Operation::{Read, Send, Write};
use crate::path::{Operation, Path};
use crate::route::Request;
use crate::simulator::Load;

/// Payload of small requests in these rows.
const BYTES: u64 = 64;

/// Rate of paths 1 and 2 together, with as many clients on each as are given.
fn clients_on_both(model: &Model<'_>, operation: Operation, bytes: u64, machines: u32) -> f64 {
    let load = |path| {
        let request = Request::new(path, operation, bytes);
        Load::full(model.profile, request).on_machines(machines)
    };
    let outcome = model.run(&[load(Path::Host), load(Path::Soc)]);
    outcome.flows.iter().map(|flow| flow.rate).sum()
}

/// Growth of the rate of path 1 while another path is used at its full rate.
fn disturbed(model: &Model<'_>, operation: Operation, other: Path) -> f64 {
    let loads = [(Path::Host, operation), (other, read_or(operation))]
        .map(|(path, operation)| Load::full(model.profile, Request::new(path, operation, BYTES)));
    let together = model.run(&loads).flows[0].rate;
    growth(together, model.rate(Path::Host, operation, BYTES))
}

/// The operation of the path inside the machine: the same, or a READ instead of a message.
fn read_or(operation: Operation) -> Operation {
    if operation == Send { Read } else { operation }
}

pub(super) fn rows(model: &Model<'_>) -> Vec<Row> {
    let machines = model.profile.client.machines as u32;
    let slower = |operation| {
        let rates = [Path::Host, Path::Soc].map(|path| model.rate(path, operation, BYTES));
        span(rates).0
    };
    // An odd machine is left out.
    let gain =
        |operation| one(clients_on_both(model, operation, BYTES, machines / 2) / slower(operation));
    let halves = Asked {
        unit: "times",
        how: "half of the clients on each, 64 B, to the slower path with all of them",
    };
    let idle = [Read, Write].map(|operation| clients_on_both(model, operation, 0, machines));
    let over = |path| {
        span(
            [Read, Write]
                .into_iter()
                .zip(idle)
                .map(|(operation, both)| growth(both, model.rate(path, operation, 0))),
        )
    };
    let nothing = Asked { unit: "%", how: "as many clients on each, no payload, READ and WRITE" };
    let h2s = [Read, Write, Send].map(|operation| disturbed(model, operation, Path::HostToSoc));
    let dma = [Read, Write, Send].map(|operation| disturbed(model, operation, Path::DmaToHost));
    let while_used = Asked {
        unit: "%",
        how: "64 B, while 24 cores of the host use H2S: the same operation, or READ beside SEND",
    };
    let copying = Asked {
        unit: "points",
        how: "64 B, while all cores of the SoC copy by DMA; how slightly is not judged",
    };
    let less = span(h2s.into_iter().zip(dma).map(|(h2s, dma)| dma - h2s));
    vec![
        halves.row(25, "paths 1 and 2, READ", "1.45 times", around(1.45), gain(Read)),
        halves.row(25, "paths 1 and 2, WRITE", "1.5 times", around(1.5), gain(Write)),
        halves.row(25, "paths 1 and 2, SEND", "3.3 times", around(3.3), gain(Send)),
        nothing.row(26, "paths 1 and 2, to path 1", "+4 to +13 %", (4.0, 13.0), over(Path::Host)),
        nothing.row(26, "paths 1 and 2, to path 2", "+5 to +10 %", (5.0, 10.0), over(Path::Soc)),
        while_used.row(27, "path 1 with H2S, READ", "-7 to -15 %", (-15.0, -7.0), one(h2s[0])),
        while_used.row(27, "path 1 with H2S, WRITE", "-4 to -27 %", (-27.0, -4.0), one(h2s[1])),
        while_used.row(27, "path 1 with H2S, SEND", "-9 to -14 %", (-14.0, -9.0), one(h2s[2])),
        copying.row(28, "path 1 with 3*, to row 27", "slightly less", (0.1, 15.0), less),
    ]
}
