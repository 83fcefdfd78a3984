// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Estimates: advice of the study that holds in the model, bottlenecks, refusals.

use crate::bounds::bluefield2;
use freeport_plan_model::Operation::{Read, Send, Write};
use freeport_plan_model::profile::{Profile, built_in};
use freeport_plan_model::{Load, Operation, Path, Request, estimate, estimate_mix};

fn rate(profile: &Profile, request: Request) -> f64 {
    estimate(profile, request, 1).expect("a request").full.flows[0].rate
}

#[test]
fn bottlenecks_are_those_computed_by_hand() {
    let profile = bluefield2();
    let cases = [
        // 26 cores of 133 ns: 195 M/s.
        (Path::Rnic, Read, 0, "NIC cores"),
        // 24 cores of 276 ns: 87 M/s.
        (Path::Rnic, Send, 8, "cores of the host"),
        // 8 cores of 222 ns: 36 M/s.
        (Path::Soc, Send, 64, "cores of the SoC"),
        // 157 reads of 1.5 us: 104 M/s; the NIC cores allow 140 M/s.
        (Path::Host, Read, 8, "reads in flight to the host"),
        (Path::Host, Write, 8, "writes in flight to the host"),
        (Path::Host, Read, 4096, "network to clients"),
        (Path::Host, Write, 4096, "network to the device"),
        // 8 cores of 276 ns: 29 M/s.
        (Path::SocToHost, Read, 8, "cores of the SoC"),
        // 24 cores of 469 ns, which only post: 51 M/s.
        (Path::HostToSoc, Read, 8, "posting by the requester"),
        (Path::SocToHost, Read, 65_536, "loopback in the NIC cores"),
        (Path::DmaToHost, Read, 64, "DMA engines"),
        (Path::DmaToHost, Read, 65_536, "data rate of DMA"),
    ];
    for (path, operation, bytes, expected) in cases {
        let found = estimate(&profile, Request::new(path, operation, bytes), 1).expect("a request");
        assert_eq!(found.full.bottleneck(), expected, "{path} {operation} {bytes}");
        assert_eq!(found.limit.name, expected, "{path} {operation} {bytes}: {:?}", found.limit);
    }
}

/// Advice 1: a small range of addresses uses few banks of the processor's memory.
#[test]
fn skewed_access_slows_the_processors_memory_more_than_the_hosts() {
    let profile = bluefield2();
    let rates = |path| {
        let ranges = [1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 10_000_000_000];
        ranges.map(|range| rate(&profile, Request { range, ..Request::new(path, Read, 64) }))
    };
    let soc = rates(Path::Soc);
    assert!(soc.is_sorted_by(|one, next| *next > 0.99 * one), "{soc:?}");
    let host = rates(Path::Host);
    assert!(soc[0] < 0.5 * soc[5] && host[0] > 0.9 * host[5], "{soc:?} {host:?}");
}

/// Advice 4: batches under one doorbell always help the device's processor, but not always the
/// host.
#[test]
fn doorbell_batches_help_the_processor_and_not_always_the_host() {
    let profile = bluefield2();
    let rates = |path| {
        let batches = [1, 2, 4, 8, 16, 32, 80];
        batches.map(|batch| rate(&profile, Request { batch, ..Request::new(path, Read, 64) }))
    };
    let soc = rates(Path::SocToHost);
    assert!(soc[1..].iter().all(|rate| *rate > 1.2 * soc[0]), "{soc:?}");
    assert!(soc.is_sorted_by(|one, next| *next > 0.99 * one), "{soc:?}");
    // Two fetched requests are slower than two that come with their doorbells; many are not.
    let host = rates(Path::HostToSoc);
    assert!(host[1] < host[0] && host[6] > 1.2 * host[0], "{host:?}");
}

/// Rule R6: data between the ends of the machine leave the network its share of PCIe.
#[test]
fn path_3_disturbs_clients_above_its_budget() {
    let profile = bluefield2();
    let bytes = 65_536;
    let clients = |gbps: f64| {
        let clients = Load::full(&profile, Request::new(Path::Host, Read, bytes));
        let inside = Load::full(&profile, Request::new(Path::SocToHost, Read, bytes));
        // Gigabits per second are kilobits per microsecond.
        let offered = gbps * 1000.0 / (bytes as f64 * 8.0);
        let loads = [clients, inside.offering(offered)];
        let outcome = estimate_mix(&profile, &loads, 1).expect("loads");
        outcome.flows[0].goodput
    };
    let alone = rate(&profile, Request::new(Path::Host, Read, bytes)) * bytes as f64 * 8.0 / 1000.0;
    let [below, at, above] = [40.0, 56.0, 80.0].map(clients);
    assert!(below > 0.99 * alone, "{below} of {alone}");
    assert!(at > 0.95 * alone, "{at} of {alone}");
    assert!(above < 0.93 * alone, "{above} of {alone}");
}

/// Paths 1 and 2 together use more NIC cores than each alone, but do not reach the sum.
#[test]
fn paths_together_reach_more_than_each_and_less_than_the_sum() {
    let profile = bluefield2();
    for operation in Operation::ALL {
        for bytes in [0, 64] {
            let load = |path| Load::full(&profile, Request::new(path, operation, bytes));
            let (host, soc) = (load(Path::Host), load(Path::Soc));
            let [one, two] = [host, soc].map(|load| rate(&profile, load.request));
            let flows = estimate_mix(&profile, &[host, soc], 1).expect("loads").flows;
            let both = flows[0].rate + flows[1].rate;
            assert!(both > one.max(two) && both < 1.01 * (one + two), "{both} {one} {two}");
        }
    }
}

/// Rule R7: a core that posts does not answer at the same time, unless others post.
#[test]
fn cores_of_the_processor_are_shared_by_answers_and_requests() {
    let profile = bluefield2();
    let loads = [(Path::Soc, Send), (Path::SocToHost, Read)]
        .map(|(path, operation)| Load::full(&profile, Request::new(path, operation, 64)));
    let flows = estimate_mix(&profile, &loads, 1).expect("loads").flows;
    let shares: f64 =
        loads.iter().zip(&flows).map(|(load, flow)| flow.rate / rate(&profile, load.request)).sum();
    assert!((0.9..1.05).contains(&shares), "all cores are used once: {shares}");
}

/// Requests in flight are rate times latency, whatever the batch.
#[test]
fn latency_agrees_with_the_requests_in_flight() {
    let profile = bluefield2();
    for (path, batch) in
        [(Path::Host, 1), (Path::Host, 64), (Path::Soc, 256), (Path::HostToSoc, 80)]
    {
        let request = Request { batch, ..Request::new(path, Read, 64) };
        let flow = estimate(&profile, request, 1).expect("a request").full.flows[0];
        let in_flight = Load::full(&profile, request).in_flight() as f64;
        let found = flow.rate * flow.mean / 1000.0;
        assert!(found <= 1.02 * in_flight, "{path} {batch}: {found} of {in_flight}");
        // A thread waits until a whole batch fits.
        assert!(found > 0.4 * in_flight, "{path} {batch}: {found} of {in_flight}");
    }
}

/// A small load beside a large one is measured as far as events allow, and says so.
#[test]
fn too_few_requests_are_reported() {
    let profile = bluefield2();
    let load = |path| Load::full(&profile, Request::new(path, Read, 64));
    let loads = [load(Path::Host), load(Path::Soc).offering(0.000_001)];
    let outcome = estimate_mix(&profile, &loads, 1).expect("loads");
    assert!(!outcome.is_steady && outcome.flows[0].rate > 90.0, "{:?}", outcome.flows);
}

#[test]
fn another_device_needs_no_other_code() {
    let (old, new) =
        (bluefield2(), built_in("bluefield3").expect("it is there").expect("a profile"));
    for path in [Path::Host, Path::Soc] {
        for bytes in [64, 65_536] {
            let request = Request::new(path, Read, bytes);
            assert!(rate(&new, request) > 1.2 * rate(&old, request), "{path} {bytes}");
        }
    }
}

#[test]
fn impossible_requests_are_refused_with_the_reason() {
    let profile = bluefield2();
    let refused =
        |request: Request| estimate(&profile, request, 1).expect_err("refused").to_string();
    let error = refused(Request::new(Path::DmaToHost, Send, 8));
    assert!(
        error.starts_with("path dma-s2h has no send: a DMA engine reads and writes"),
        "{error}"
    );
    let error = refused(Request::new(Path::SocToPeer, Read, 8));
    assert!(error.starts_with("path soc-peer has no read"), "{error}");
    let error = refused(Request::new(Path::Host, Send, 5000));
    assert!(error.contains("at most 4096 B (network.mtu), and not 5000"), "{error}");
    let error = refused(Request { batch: 0, ..Request::new(Path::Host, Read, 8) });
    assert!(error.contains("the batch has to be between 1 and 256, and not 0"), "{error}");
    assert!(estimate_mix(&profile, &[], 1).is_err());
    let idle = Load::full(&profile, Request::new(Path::Host, Read, 8)).offering(0.0);
    assert!(estimate_mix(&profile, &[idle], 1).is_err());
    for offered in [1e-11, 1e300, f64::NAN] {
        let error = estimate_mix(&profile, &[idle.offering(offered)], 1).expect_err("refused");
        assert!(error.to_string().contains("from 0.000001 to 1000000 million"), "{error}");
    }
    let many = Load { threads: 4096, window: 4096, ..Load::full(&profile, idle.request) };
    assert!(
        estimate_mix(&profile, &[many], 1).expect_err("refused").to_string().contains("flight")
    );
    let both =
        [Path::Rnic, Path::Host].map(|path| Load::full(&profile, Request::new(path, Read, 8)));
    let error = estimate_mix(&profile, &both, 1).expect_err("refused").to_string();
    assert!(error.contains("path rnic belongs to another device"), "{error}");
}
