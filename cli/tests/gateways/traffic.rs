// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tester of `examples/generator.cnp` and the recorder of `examples/recorder.cnp` on
//! interfaces: frames return through another program, are measured, and are recorded on the way.

use super::network::{Kind, launch, lead, make_tap, wait_until_up};
use crate::hosts::may_make_hosts;
use freeport_bench::network::{Freeport, Host, until};

/// Frames per second: a ring holds those of a second, since a program may have to wait for a
/// processor.
const SENT: u64 = 5_000;

#[test]
fn on_taps_all_that_is_sent_is_recorded() {
    if !may_make_hosts() {
        return;
    }
    // The kernel bridges two TAP interfaces: the recorder receives from one what the tester sends
    // to the other.
    let host = Host::new("bridge").expect("permitted");
    let [sender, receiver] = [("t0", "02:00:00:00:01:01"), ("t1", "02:00:00:00:01:02")]
        .map(|(name, mac)| make_tap(&host, name, mac, 1_500));
    host.ip("link add b0 type bridge mcast_snooping 0\nlink set b0 up\n\
         link set t0 master b0\nlink set t1 master b0\n")
        .expect("the kernel has bridges");
    let recorder = Freeport::start(
        &launch(),
        &host,
        "recorder",
        &format!("examples/recorder.cnp --in from_tor={receiver} --place logger=1"),
    )
    .expect("it runs");
    let tester = Freeport::start(
        &launch(),
        &host,
        "tester",
        &format!("examples/generator.cnp --out to_tor={sender} --in from_tor={sender}"),
    )
    .expect("it runs");
    wait_until_up(&host, "t0");
    wait_until_up(&host, "t1");
    tester.call("generator.pace.packets_per_second(5000)").expect("a rate");
    tester.call("generator.flows.send(3000)").expect("so many");
    let records = || -> u64 {
        let of = |at: u32| recorder.number(&format!("logger#{at}.records")).expect("it runs");
        (1..=4).map(of).sum()
    };
    // The kernel may send packets of its own; those of the tester have a tuple.
    let with_tuple = || {
        recorder.number("extract.packets").expect("it runs")
            - recorder.number("extract.others").expect("it runs")
    };
    until("all are seen", || (with_tuple() >= 3_000).then_some(())).expect("none is lost");
    until("a tick sends the last ones", || {
        (records() >= 3_000 + recorder.number("extract.others").ok()?).then_some(())
    })
    .expect("none is lost");
}

#[test]
fn on_af_xdp_all_that_is_sent_comes_back_and_is_measured() {
    if !may_make_hosts() {
        return;
    }
    let [tester, middle] = ["tester", "middle"].map(|name| Host::new(name).expect("permitted"));
    let there = lead(Kind::Xdp, (&tester, "t0", "02:00:00:00:01:01"), (&middle, "m0"), 1_500);
    let back = lead(Kind::Xdp, (&tester, "t1", "02:00:00:00:01:02"), (&middle, "m1"), 1_500);
    let wire = Freeport::start(
        &launch(),
        &middle,
        "wire",
        &format!("examples/wire.cnp --in from_tor={there} --out to_tor={back}"),
    )
    .expect("it runs");
    let measured = Freeport::start(
        &launch(),
        &tester,
        "tester",
        "examples/generator.cnp --out to_tor=xdp:t0 --in from_tor=xdp:t1",
    )
    .expect("it runs");
    let number = |path: &str| measured.number(path).expect("it runs");
    let call = |call: &str| measured.call(call).expect("there is such a method");
    call("generator.pace.packets_per_second(5000)");
    call("generator.flows.internet_mix()");
    call(&format!("generator.flows.send({SENT})"));
    let has_all = || (number("latency.received") >= SENT).then_some(());
    until("all come back", has_all).unwrap_or_else(|error| {
        let lost = number("latency.lost");
        panic!("{error}: {lost} lost on the way; {}", wire.said())
    });
    let counts = ["received", "lost", "reordered", "duplicated", "late", "early"]
        .map(|name| number(&format!("latency.{name}")));
    assert_eq!(counts, [SENT, 0, 0, 0, 0, 0]);
    let percentile =
        |permille: u32| call(&format!("latency.percentile({permille})")).as_u64().expect("a time");
    let [half, most] = [500, 1_000].map(percentile);
    assert!(0 < half && half <= most, "{half} and {most}");
    assert!(number("latency.least") <= half && number("latency.most") <= most);
}
