// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Impossible settings, and second processes that are none.

use freeport_plan_probe::{Error, Host, Kind, Mode, Point, Settings, measure, points};
use std::process::Command;

const POINT: Point =
    Point { kind: Kind::Read, mode: Mode::Rate, bytes: 8, batch: 1, range: 4096, threads: 1 };

fn failure(seconds: f64, program: &str) -> Error {
    let command = || Command::new(program);
    let host = Host::ask().expect("cores");
    let settings = Settings { seconds, command: &command };
    measure(&host, &[POINT], &settings, |_, _| ()).expect_err("no measurement")
}

#[test]
fn impossible_settings_are_refused() {
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        let error = failure(seconds, "true");
        assert!(matches!(error, Error::Seconds { .. }), "{error}");
        assert!(error.to_string().contains("above 0 and at most 3600 seconds"), "{error}");
    }
    let host = Host::ask().expect("cores");
    for range in [0, 4096, (4 << 20) - 1, 1 << 40] {
        let error = points(&host, Some(range)).expect_err("a range").to_string();
        assert!(error.contains("the largest range has to be between 4194304 and"), "{error}");
        assert!(error.contains(&range.to_string()), "{error}");
    }
    // Each thread has a range of its own.
    let small = Host { cores: vec![0, 1, 2, 3], memory: 31 << 20, ..host };
    let error = points(&small, Some(8 << 20)).expect_err("too much memory").to_string();
    let expected = "4 threads with ranges of 8388608 bytes each need more memory than the 32505856";
    assert!(error.contains(expected), "{error}");
    assert!(points(&Host { memory: 32 << 20, ..small }, Some(8 << 20)).is_ok());
}

#[test]
fn impossible_points_are_refused() {
    let send = Point { kind: Kind::Send, ..POINT };
    for (point, reason) in [
        (Point { bytes: 0, ..POINT }, "its payload is no multiple of 8 bytes"),
        (Point { bytes: 12, ..POINT }, "its payload is no multiple of 8 bytes"),
        (Point { bytes: 8192, ..POINT }, "its range is too small"),
        (Point { threads: 0, ..POINT }, "it has no requests"),
        (Point { batch: 0, ..POINT }, "it has no requests"),
        (Point { batch: 65, ..send }, "at most 64 messages"),
        (Point { batch: 64, bytes: 128, ..send }, "longer than its range"),
        (Point { batch: 2, mode: Mode::Latency, ..POINT }, "single requests have no batches"),
    ] {
        let host = Host::ask().expect("cores");
        let settings = Settings { seconds: 1.0, command: &|| Command::new("true") };
        let error = measure(&host, &[POINT, point], &settings, |_, _| ()).expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_second_process_that_is_none_ends_the_measurement() {
    let error = failure(1.0, "/nowhere/freeport");
    assert!(matches!(error, Error::Start(_)), "{error}");
    // It ends at once, and says nothing.
    let error = failure(1.0, "true");
    assert!(matches!(error, Error::Fabric(_) | Error::Socket(_)), "{error}");
}
