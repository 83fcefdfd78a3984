// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fits of points that were not measured, but made with known parameters.

use freeport_plan_model::local::{Machine, Operation, SECTIONS};
use freeport_plan_probe::{Check, Group, Host, Mode, Point, Sample, check, fit, points};

fn host() -> Host {
    Host {
        name: "a machine".into(),
        cores: vec![0, 1, 2, 3],
        near: 32 << 10,
        middle: 1 << 20,
        last: 64 << 20,
        reports_caches: true,
        memory: 64 << 30,
    }
}

/// A machine with a value for each parameter.
pub fn machine() -> Machine {
    let mut machine = Machine { name: "a machine".into(), ..Machine::default() };
    for (name, value) in [
        ("measured.cores", 4.0),
        ("measured.payload", 1_048_576.0),
        ("measured.range", 524_288.0),
        ("measured.message", 16_384.0),
        ("measured.batch", 64.0),
        ("measured.threads", 4.0),
        ("cache.near", 32.0),
        ("cache.middle", 1024.0),
        ("cache.last", 16_384.0),
        ("wait.last", 90.0),
        ("wait.memory", 300.0),
        ("atomic.post", 11.0),
        ("atomic.alone", 3.5),
        ("atomic.last", 9.0),
        ("atomic.last_alone", 2.5),
        ("atomic.memory", 60.0),
        ("atomic.memory_alone", 30.0),
        ("message.trip", 430.0),
        ("message.trip_byte", 190.0),
        ("message.next", 85.0),
        ("message.next_first_byte", 220.0),
        ("message.next_byte", 40.0),
        ("message.turn", 3000.0),
        ("together.near", 4.0),
        ("together.last", 3.5),
        ("together.memory", 2.5),
    ] {
        assert!(machine.set_value(name, value), "{name}");
    }
    for (section, factor) in [("read", 1.0), ("write", 1.25)] {
        for (key, value) in [
            ("post", 8.5),
            ("alone", 1.5),
            ("last", 6.0),
            ("last_alone", 12.0),
            ("memory", 55.0),
            ("memory_alone", 40.0),
            ("near_byte", 5.0),
            ("middle_byte", 8.0),
            ("last_byte", 32.0),
            ("memory_byte", 80.0),
            ("own_middle_byte", 10.0),
            ("own_far_byte", 6.0),
            ("own_last_byte", 20.0),
        ] {
            assert!(machine.set_value(&format!("{section}.{key}"), factor * value), "{key}");
        }
    }
    (machine.read.ahead, machine.write.ahead) = (3072.0, 2048.0);
    machine
}

/// A point as the machine would measure it.
fn sample(machine: &Machine, point: &Point) -> Sample {
    let estimate = machine.estimate(point.request()).expect("a point that is covered");
    let median = match point.mode {
        Mode::Latency => estimate.latency,
        Mode::Rate => f64::from(point.threads) * 1e3 / estimate.rate,
    };
    let between = 1e3 / estimate.rate;
    Sample { point: *point, quiet_median: median, group_p99: median, group: 1, between }
}

pub fn samples(machine: &Machine, points: &[Point]) -> Vec<Sample> {
    points.iter().map(|point| sample(machine, point)).collect()
}

#[test]
fn known_parameters_are_found() {
    let truth = machine();
    let points = points(&host(), None).expect("points");
    let found = fit(&host(), &samples(&truth, &points.fitted));
    for (section, keys) in SECTIONS {
        for key in *keys {
            let name = format!("{section}.{}", key.name);
            let (expected, value) = (truth.value(&name), found.value(&name));
            let (expected, value) = expected.zip(value).expect("a parameter");
            let is_found = (expected - value).abs() <= 2e-3 * expected;
            assert!(is_found, "{name} is {expected}, and {value} was found");
        }
    }
    let check = check(&found, &samples(&truth, &points.checked)).expect("points");
    assert!(check.points.iter().all(|point| point.deviation().abs() < 2e-3));
    assert!(check.is_passed() && check.within() == check.points.len());
}

#[test]
fn disturbed_points_change_a_fit_little() {
    let truth = machine();
    let points = points(&host(), None).expect("points");
    let mut disturbed = samples(&truth, &points.fitted);
    for sample in disturbed.iter_mut().step_by(13) {
        (sample.quiet_median, sample.between) = (3.0 * sample.quiet_median, 3.0 * sample.between);
    }
    let found = fit(&host(), &disturbed);
    let check = check(&found, &samples(&truth, &points.checked)).expect("points");
    let share = check.within() as f64 / check.points.len() as f64;
    assert!(check.is_passed() && share > 0.8, "{share}: {:?}", check.groups());
}

#[test]
fn a_wrong_profile_does_not_pass() {
    let truth = machine();
    let points = points(&host(), None).expect("points");
    let mut wrong = truth.clone();
    (wrong.atomic.post, wrong.atomic.memory) = (22.0, 120.0);
    let samples = samples(&truth, &points.checked);
    let found = check(&wrong, &samples).expect("points");
    assert!(!found.is_passed() && found.within() < found.points.len());
    let of = |operation| found.groups().into_iter().filter(move |it| it.operation == operation);
    assert!(of(Operation::Atomic).all(|group| group.median > 0.15 && group.within < group.points));
    let is_right = |group: Group| group.median < 1e-9 && group.within == group.points;
    assert!(of(Operation::Read).all(is_right));
    // The sign says that the estimate is too long.
    let atomic = found.points.iter().filter(|it| it.point.kind.operation() == Operation::Atomic);
    assert!(atomic.into_iter().all(|it| it.deviation() > 0.0));
    let nothing = check(&truth, &[]).expect("no points");
    assert!(nothing.is_passed() && nothing.groups().is_empty());
}

#[test]
fn a_few_wrong_points_are_not_hidden_by_others_of_the_operation() {
    let truth = machine();
    let points = points(&host(), None).expect("points");
    let of = |change: fn(&mut Machine)| {
        let mut wrong = truth.clone();
        change(&mut wrong);
        check(&wrong, &samples(&truth, &points.checked)).expect("points")
    };
    let failed = |check: &Check| -> Vec<(Operation, Mode, bool)> {
        let failed = check.groups().into_iter().filter(|group| group.median > 0.15);
        failed.map(|group| (group.operation, group.mode, group.has_threads)).collect()
    };
    let waits = of(|machine| (machine.wait.last, machine.wait.memory) = (400.0, 1500.0));
    assert_eq!(failed(&waits), [(Operation::Read, Mode::Latency, false)]);
    let turns = of(|machine| machine.message.turn *= 3.0);
    assert_eq!(failed(&turns), [(Operation::Send, Mode::Rate, true)]);
    assert!(!waits.is_passed() && !turns.is_passed());
    let all: usize = turns.groups().iter().map(|group| group.points).sum();
    assert_eq!(all, points.checked.len());
}

#[test]
fn a_fit_without_points_is_a_valid_profile_of_assumptions() {
    let found = fit(&host(), &[]);
    assert!(found.read.post == 0.01 && found.cache.near == 32.0);
    let parsed = Machine::parse("machine.toml", &found.text(&[])).expect("a profile");
    for (name, origin) in &parsed.origins {
        assert!(!origin.fitted, "{name}: {origin:?}");
        let is_known = name == "measured.cores" || name.starts_with("cache.");
        assert!(is_known || origin.source.starts_with("not measured: assumed "), "{origin:?}");
    }
}

#[test]
fn what_no_point_depends_on_is_not_called_measured() {
    let few = points(&host(), Some(4 << 20)).expect("points");
    let found = fit(&host(), &samples(&machine(), &few.fitted));
    // No range is beyond the last-level cache, so nothing says what memory takes.
    assert_eq!(found.measured.range, 4096.0);
    Machine::parse("machine.toml", &found.text(&[])).expect("a profile");
    let origin = |name: &str| &found.origins[name];
    for name in ["read.memory", "write.memory_byte", "atomic.memory_alone", "together.memory"] {
        assert_eq!(origin(name).source.split_once(" assumed").expect(name).0, "not measured:");
        assert!(!origin(name).fitted);
    }
    for name in ["read.last", "write.last_byte", "wait.last", "message.turn", "together.near"] {
        assert!(origin(name).source.starts_with("measured: fitted to "), "{:?}", origin(name));
        assert!(origin(name).fitted && !origin(name).source.contains("converge"));
    }
}

#[test]
fn profiles_are_valid_for_small_caches_and_small_ranges() {
    let (near, truth) = (32 << 10, machine());
    for middle in [256 << 10, 512 << 10, 1 << 20] {
        // With a last-level cache, and without.
        for last in [32 << 20, middle] {
            let host = Host { near, middle, last, ..host() };
            let all = points(&host, None).expect("points").fitted;
            for range in [64 << 10, 1 << 20, 4 << 20, 512 << 20] {
                let few: Vec<Point> = all.iter().filter(|it| it.range <= range).copied().collect();
                let found = fit(&host, &samples(&truth, &few));
                let case = format!("{middle} {last} {range}");
                let text = found.text(&[]);
                assert_eq!(Machine::parse("machine.toml", &text).expect(&case), found, "{case}");
                assert!(!text.contains("converge"), "{case}: {text}");
                let measured = &found.measured;
                assert!(measured.payload <= 512.0 * measured.range, "{case}");
                assert!(few.iter().all(|point| point.request().check(&found).is_ok()), "{case}");
                assert_eq!((measured.threads, measured.cores), (4.0, 4.0), "{case}");
            }
        }
    }
}
