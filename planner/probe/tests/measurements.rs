// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole measurements, as short as possible: each point has possible values, and the profile is
//! valid.

use crate::fits::{machine, samples};
use crate::second::command;
use freeport_plan_model::local::{Machine, Request, SECTIONS};
use freeport_plan_probe::{Host, Kind, Mode, Point, Settings, check, csv, fit, measure, points};

/// A time that ends after one round.
const SHORT: f64 = 0.01;
/// Largest range of addresses, in bytes.
const RANGE_MAX: u64 = 1 << 20;

#[test]
fn a_profile_of_this_machine_is_valid() {
    let host = Host::ask().expect("cores");
    let mut points = points(&host, Some(4 << 20)).expect("points");
    // Larger ranges take longer to warm up than all else.
    points.fitted.retain(|point| point.range <= RANGE_MAX);
    let covered = points.fitted.iter().map(|point| point.range).max();
    points.checked.retain(|point| Some(point.range) <= covered);
    let all: Vec<Point> = points.fitted.iter().chain(&points.checked).copied().collect();
    let settings = Settings { seconds: SHORT, command: &command };
    let mut shares = vec![];
    let samples = measure(&host, &all, &settings, |share, _| shares.push(share));
    let samples = samples.expect("a measurement");
    assert!(shares.is_sorted() && shares.iter().all(|share| (0.0..1.0).contains(share)));
    for (sample, point) in samples.iter().zip(&all) {
        assert_eq!(sample.point, *point);
        assert!(sample.quiet_median > 0.0 && sample.group_p99 >= sample.quiet_median, "{sample:?}");
        assert!(sample.between.is_finite() && sample.between > 0.0, "{sample:?}");
    }
    let (fitted, checked) = samples.split_at(points.fitted.len());
    let machine = fit(&host, fitted);
    let text = machine.text(&["A test."]);
    assert_eq!(Machine::parse("machine.toml", &text).expect("a profile"), machine);
    let parameters: usize = SECTIONS.iter().map(|(_, keys)| keys.len()).sum();
    assert_eq!(machine.origins.len(), parameters);
    // The check covers every point, whatever the machine did meanwhile.
    let check = check(&machine, checked).expect("points that the profile covers");
    assert_eq!(check.points.len(), checked.len());
    assert!(check.within() <= checked.len());

    let table = csv::csv("shm", &samples);
    assert_eq!(table.lines().count(), 1 + samples.len());
    let columns = |line: &str| line.split(',').count();
    assert!(table.lines().all(|line| columns(line) == 12), "{table}");
}

#[test]
fn each_operation_and_mode_is_measured_by_several_threads() {
    let host = Host::ask().expect("cores");
    let of = |kind, mode, bytes, batch, threads| {
        let range = 64 << 10;
        Point { kind, mode, bytes, batch, range, threads }
    };
    let points = [
        of(Kind::Read, Mode::Latency, 64, 1, 1),
        of(Kind::Read, Mode::Rate, 4096, 7, 2),
        of(Kind::Write, Mode::Rate, 40, 64, 3),
        of(Kind::FetchAdd, Mode::Rate, 8, 3, 2),
        of(Kind::CompareSwap, Mode::Rate, 8, 1, 1),
        of(Kind::Send, Mode::Rate, 8, 64, 1),
        of(Kind::Send, Mode::Rate, 1024, 3, 2),
    ];
    let settings = Settings { seconds: SHORT, command: &command };
    let samples = measure(&host, &points, &settings, |_, _| ()).expect("a measurement");
    for sample in samples {
        assert!(sample.quiet_median > 0.0 && sample.rate() > 0.0, "{sample:?}");
        // Groups are whole batches.
        assert_eq!(sample.group % u64::from(sample.point.batch), 0, "{sample:?}");
    }
}

#[test]
fn checked_points_are_other_ones_and_inside_of_fitted_ones() {
    let host = |near: u64, middle: u64, last: u64| Host {
        name: "a machine".into(),
        cores: vec![0, 1, 2, 3],
        near,
        middle,
        last,
        reports_caches: true,
        memory: 64 << 30,
    };
    let hosts = [
        host(48 << 10, 2 << 20, 480 << 20),
        host(32 << 10, 1 << 20, 8 << 20),
        host(32 << 10, 256 << 10, 6 << 20),
        host(64 << 10, 64 << 10, 64 << 10),
    ];
    for host in hosts {
        for largest in [None, Some(4 << 20), Some(100 << 20)] {
            let points = points(&host, largest).expect("points");
            assert!(points.checked.iter().all(|point| !points.fitted.contains(point)));
            let both = points.fitted.iter().chain(&points.checked);
            assert!(both.into_iter().all(|point| point.fault().is_none()));
            let range = |points: &[Point]| points.iter().map(|point| point.range).max();
            assert!(range(&points.checked) < range(&points.fitted));
            assert_eq!(range(&points.fitted), Some(largest.unwrap_or(512 << 20)));
            let measured = fit(&host, &samples(&machine(), &points.fitted));
            let is_covered = |request: Request| request.check(&measured).is_ok();
            let all = points.fitted.iter().chain(&points.checked);
            assert!(all.into_iter().all(|point| is_covered(point.request())));
        }
    }
}
