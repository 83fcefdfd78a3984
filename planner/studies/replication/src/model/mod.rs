// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The published results about file replication (off-path SmartNIC study, rows 32 to 37), beside
//! those of this file system on the simulated machine.

pub mod machine;

use crate::codec::Compression;
use crate::options::{Alternative, Policy};
use freeport_plan_model::Profile;
use freeport_plan_model::study::{Asked, Row, around, growth, one, span};
use machine::{Measured, Run};
use std::thread;

use Alternative::{A1, A2, A3};

/// Largest number of clients.
const CLIENTS: u32 = 8;
/// Share of noise in the data of row 37, which LZ4 cannot compress.
const NOISE: f64 = 0.5;

/// Goodput of clients with a policy in Gbit/s, for 1 to [`CLIENTS`] clients.
fn goodputs(profile: &Profile, policy: Policy, is_busy: bool) -> Vec<f64> {
    let run = |clients| Run { is_busy, ..Run::new(clients, policy) };
    (1..=CLIENTS).map(|clients| measured(&run(clients), profile).goodput).collect()
}

fn measured(run: &Run, profile: &Profile) -> Measured {
    run.measure(profile).expect("a run of few chunks fits, and ends")
}

/// Returns rows 32 to 37 for a profile.
pub fn rows(profile: &Profile) -> Vec<Row> {
    thread::scope(|scope| {
        let curve = |policy, is_busy| scope.spawn(move || goodputs(profile, policy, is_busy));
        let a1 = curve(Policy::Always(A1), false);
        let a2 = curve(Policy::Always(A2), false);
        let both = curve(Policy::Auto, false);
        let busy = [curve(Policy::Always(A1), true), curve(Policy::Auto, true)];
        let waits = scope.spawn(|| waits(profile));
        let savings = scope.spawn(|| savings(profile));
        let done = "it does not panic";
        let (a1, a2, both) =
            (a1.join().expect(done), a2.join().expect(done), both.join().expect(done));
        let [busy_a1, busy_both] = busy.map(|curve| curve.join().expect(done));
        let mut rows = throughput([&a1, &a2, &both], [&busy_a1, &busy_both]);
        rows.insert(2, waits.join().expect(done));
        rows.extend(savings.join().expect(done));
        rows
    })
}

/// Rows 32, 33, 35 and 36: A1, A2 and A2 with A3, and A1 and A2 with A3 on a busy host.
fn throughput([a1, a2, both]: [&[f64]; 3], [busy_a1, busy_both]: [&[f64]; 2]) -> Vec<Row> {
    let largest = *a1.last().expect("there are clients");
    let published = 117.0;
    let to = |ours: &[f64], base: &[f64]| {
        span(ours.iter().zip(base).map(|(ours, base)| growth(*ours, *base)))
    };
    let (least, most) = to(a2, a1);
    let asked = |unit, how| Asked { unit, how };
    vec![
        asked("Gbit/s", "the file system runs: 8 clients, 2 chunks of 256 KiB each in flight").row(
            32,
            "A1: writes, no compression, host idle",
            "117 Gbit/s",
            (0.95 * published, 1.05 * published),
            one(largest),
        ),
        asked("times", "the file system runs: 1 to 8 clients, no compression").row(
            33,
            "A2: writes, to A1",
            "1.01 to 1.13",
            (1.01, 1.13),
            (1.0 + least / 100.0, 1.0 + most / 100.0),
        ),
        asked("%", "the file system runs: 1 to 8 clients, no compression").row(
            35,
            "A2 and A3: writes, to A1, host idle",
            "+7 to +30 %",
            (7.0, 30.0),
            to(both, a1),
        ),
        asked("%", "the same while other work waits for all cores of the host").row(
            36,
            "A2 and A3: writes, to A1, host busy",
            "+4 to +21 %",
            (4.0, 21.0),
            to(busy_both, busy_a1),
        ),
    ]
}

/// Row 34: one client with one chunk in flight.
fn waits(profile: &Profile) -> Row {
    let wait = |alternative| {
        let run = Run::new(1, Policy::Always(alternative));
        measured(&Run { window: 1, chunks: [5, 40], ..run }, profile).wait
    };
    let (with_processor, without) = ([wait(A1), wait(A2)], wait(A3));
    let how = "the file system runs: one chunk of 256 KiB in flight, to A1 and to A2";
    Asked { unit: "%", how }.row(
        34,
        "A3: wait for the acknowledgement",
        "-40 %",
        around(-40.0),
        span(with_processor.map(|wait| growth(without, wait))),
    )
}

/// Row 37: a number of the clients use A3, and the others A2.
fn savings(profile: &Profile) -> Vec<Row> {
    let curve = [0, 2, 4, 6, 8].map(|of_a3| {
        let mut run = Run::new(CLIENTS, Policy::Always(A2));
        run.clients[..of_a3].fill(Policy::Always(A3));
        run.options.compression = Compression::Lz4;
        run.noise = NOISE;
        let counters = measured(&run, profile).counters;
        let share = counters.of(A3).raw_bytes as f64 / counters.all().raw_bytes as f64;
        (share, 100.0 * counters.saving())
    });
    let expected = |share: f64| 100.0 * (1.0 - share) * (1.0 - NOISE);
    let differences = span(curve.map(|(share, saving)| saving - expected(share)));
    let how = "the file system runs: 8 clients of A2, LZ4, data that are half noise";
    let saving = Asked { unit: "%", how };
    let how = "0, 2, 4, 6 and 8 of 8 clients use A3: difference to (1 - x) 50 %, x = A3's share of \
               bytes";
    let difference = Asked { unit: "points", how };
    vec![
        saving.row(37, "saving of network, no A3", "50 %", around(50.0), one(curve[0].1)),
        difference.row(37, "saving by A3's share", "50 to 0 %", (-1.0, 1.0), differences),
    ]
}
