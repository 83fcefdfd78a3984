// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fits of points that were not measured, but made with known parameters.

use freeport_plan_model::local::{Machine, Operation, SECTIONS};
use freeport_plan_probe::{Host, Mode, Point, Sample, check, fit, points};

fn host() -> Host {
    Host {
        name: "a machine".into(),
        cores: vec![0, 1, 2, 3],
        near: 32 << 10,
        middle: 1 << 20,
        last: 64 << 20,
        memory: 64 << 30,
    }
}

/// A machine with a value for each parameter.
fn machine() -> Machine {
    let mut machine = Machine { name: "a machine".into(), ..Machine::default() };
    for (name, value) in [
        ("measured.cores", 4.0),
        ("measured.payload", 1_048_576.0),
        ("measured.range", 524_288.0),
        ("measured.batch", 64.0),
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
    Sample { point: *point, median, p99: median, group: 1, between }
}

fn samples(machine: &Machine, points: &[Point]) -> Vec<Sample> {
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
        (sample.median, sample.between) = (3.0 * sample.median, 3.0 * sample.between);
    }
    let found = fit(&host(), &disturbed);
    let check = check(&found, &samples(&truth, &points.checked)).expect("points");
    let share = check.within() as f64 / check.points.len() as f64;
    assert!(check.is_passed() && share > 0.8, "{share}");
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
    let median = |operation| found.median(operation).expect("points");
    assert!(median(Operation::Atomic) > 0.15, "{}", median(Operation::Atomic));
    assert!(median(Operation::Read) < 1e-9);
    // The sign says that the estimate is too long.
    let atomic = found.points.iter().filter(|it| it.point.kind.operation() == Operation::Atomic);
    assert!(atomic.into_iter().all(|it| it.deviation() > 0.0));
    let nothing = check(&truth, &[]).expect("no points");
    assert!(nothing.is_passed() && nothing.median(Operation::Read).is_none());
}

#[test]
fn a_fit_without_points_is_a_valid_profile() {
    let found = fit(&host(), &[]);
    assert!(found.read.post == 0.01 && found.cache.near == 32.0);
    let few = points(&host(), Some(4 << 20)).expect("points");
    let found = fit(&host(), &samples(&machine(), &few.fitted));
    // No range is beyond the last-level cache, so nothing says what memory takes.
    assert_eq!(found.measured.range, 4096.0);
    Machine::parse("machine.toml", &found.text(&[])).expect("a profile");
}
