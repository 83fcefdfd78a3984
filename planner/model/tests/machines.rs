// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of machines: files, errors, and estimates beside sums made by hand.

use freeport_plan_model::local::{Machine, Operation, Request, RequestError, SECTIONS};
use freeport_plan_model::parameters::{Origin, kind_of};
use freeport_plan_model::profile::{BUILT_IN, Profile};

/// A machine whose times are easy to add up: ranges of 32 KiB are in the nearest cache, half of
/// 2 MiB is in the last-level cache, and half of 64 MiB in memory.
fn machine() -> Machine {
    let mut machine = Machine { name: "a \"machine\"".into(), ..Machine::default() };
    for (name, value) in [
        ("measured.cores", 2.0),
        ("measured.payload", 1_048_576.0),
        ("measured.range", 524_288.0),
        ("measured.message", 16_384.0),
        ("measured.batch", 64.0),
        ("measured.threads", 2.0),
        ("cache.near", 32.0),
        ("cache.middle", 1024.0),
        ("cache.last", 32_768.0),
        ("read.post", 8.0),
        ("read.alone", 2.0),
        ("read.last", 6.0),
        ("read.last_alone", 10.0),
        ("read.memory", 50.0),
        ("read.memory_alone", 30.0),
        ("read.near_byte", 5.0),
        ("read.middle_byte", 10.0),
        ("read.last_byte", 40.0),
        ("read.memory_byte", 80.0),
        ("read.own_middle_byte", 15.0),
        ("read.own_far_byte", 5.0),
        ("read.own_last_byte", 20.0),
        ("read.ahead", 2112.0),
        ("write.ahead", 2112.0),
        ("wait.last", 60.0),
        ("wait.memory", 240.0),
        ("write.post", 9.0),
        ("atomic.post", 10.0),
        ("atomic.alone", 4.0),
        ("message.trip", 400.0),
        ("message.trip_byte", 200.0),
        ("message.next", 100.0),
        ("message.next_first_byte", 100.0),
        ("message.next_byte", 50.0),
        ("message.turn", 2000.0),
        ("together.near", 2.0),
        ("together.last", 1.5),
        ("together.memory", 1.25),
    ] {
        assert!(machine.set_value(name, value), "{name}");
    }
    for (section, keys) in SECTIONS {
        for key in *keys {
            let (source, fitted) = (format!("by hand, {}", key.name), key.unit == "ps");
            machine.origins.insert(format!("{section}.{}", key.name), Origin { source, fitted });
        }
    }
    machine
}

fn request(operation: Operation, bytes: u64, batch: u32, range: u64, threads: u32) -> Request {
    Request { operation, bytes, batch, range, threads }
}

fn is_close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-6 * expected
}

#[test]
fn a_profile_survives_its_file() {
    let machine = machine();
    let text = machine.text(&["Two lines", "of comment."]);
    assert!(text.starts_with("# Two lines\n# of comment.\n\nkind = \"machine\"\n"), "{text}");
    assert_eq!(Machine::parse("machine.toml", &text).expect("a profile"), machine);
    assert_eq!(kind_of("machine.toml", &text).expect("a kind"), "machine");
    assert_eq!(kind_of("device.toml", BUILT_IN[0].1).expect("a kind"), "device");
}

#[test]
fn errors_name_file_line_and_field() {
    let text = machine().text(&[]);
    let line_of =
        |text: &str, part: &str| 1 + text.lines().position(|line| line.contains(part)).unwrap();
    for (from, to, expected) in [
        ("trip = { value = 400", "trip = { value = -1", "message.trip: -1 ns is not between 0.01"),
        (
            "near = { value = 32",
            "near = { value = 2000",
            "cache.middle: it is less than cache.near",
        ),
        ("last = { value = 32768", "last = { value = 512", "cache.last: it is less than cache.mid"),
        (
            "last = { value = 1.5,",
            "last = { value = 3,",
            "together.last: it is more than measured.c",
        ),
        ("trip = {", "trips = {", "message.trips: there is no such parameter"),
        ("[wait]", "[waits]", "waits: there is no such section"),
        ("cores = { value = 2", "cores = { value = 2.5", "measured.cores: it has to be a whole n"),
        ("kind = \"machine\"", "kind = 3", "kind: it has to be a text in quotation marks"),
        ("kind = \"machine\"", "kind = \"card\"", "kind: it is a profile of a card, and a machine"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let changed = text.replace(from, to);
        let error = Machine::parse("some.toml", &changed).expect_err(to).to_string();
        // A contradiction has the line of the field that it names.
        let at = if to.starts_with("near") { "middle = { value = 1024" } else { to };
        let start = format!("some.toml:{}: ", line_of(&changed, at));
        assert!(error.starts_with(&start) && error.contains(expected), "{error}");
    }
    let missing = text.replace("turn = {", "# turn = {");
    let error = Machine::parse("some.toml", &missing).expect_err("a missing line").to_string();
    assert!(error.contains("message.turn: it is missing; `freeport plan probe --out FILE`"));
    // A profile of one kind is none of the other.
    let error = Profile::parse("some.toml", &text).expect_err("a machine").to_string();
    assert!(error.contains("it is a profile of a machine, and a device is needed here"), "{error}");
    let error = Machine::parse("some.toml", BUILT_IN[0].1).expect_err("a device").to_string();
    assert!(error.contains("some.toml: kind: it is a profile of a device"), "{error}");
}

#[test]
fn copies_are_sums() {
    let machine = machine();
    let of = |bytes, batch, range, threads| {
        let request = request(Operation::Read, bytes, batch, range, threads);
        machine.estimate(request).expect("a request")
    };
    // 8 + 2 for posting, and 1000 bytes of 5 ps.
    let near = of(1000, 1, 32 << 10, 1);
    assert!(is_close(near.latency, 15.0) && is_close(near.rate, 1e3 / 15.0), "{near:?}");
    assert!(is_close(near.goodput, 8.0 * 1000.0 / 15.0), "{near:?}");
    assert_eq!(near.limit, "core of the requester");
    // In batches of 9, half of the additional time of single requests is felt.
    assert!(is_close(of(1000, 9, 32 << 10, 1).rate, 1e3 / 14.0));
    // Half of 2 MiB: the last-level cache; 1/64: the nearest cache. A line has no further bytes.
    let middle = 0.5 * 64.0 * 0.010 - 64.0 * (0.010 - 0.005) / 64.0;
    let last = 8.0 + 2.0 + 0.5 * (6.0 + 10.0) + middle;
    let far = of(64, 1, 2 << 20, 1);
    assert!(is_close(far.rate, 1e3 / last), "{far:?} and {last}");
    // A lone read waits for half of 60 ns; half of its bytes move meanwhile.
    assert!(is_close(far.latency, 10.0 + 30.0 + middle / 2.0), "{far:?}");
    // Two threads are worth two cores, apart from the last-level cache, where they are worth 1.5.
    let both = of(64, 1, 2 << 20, 2);
    assert!(is_close(both.rate, 1e3 / ((last - 8.0) / 2.0 + 8.0 / 1.5)), "{both:?}");
    assert_eq!(of(64, 1, 512 << 20, 1).limit, "memory");
}

#[test]
fn messages_need_cores_on_both_sides() {
    let machine = machine();
    let of = |bytes, batch, threads| {
        let request = request(Operation::Send, bytes, batch, 1, threads);
        machine.estimate(request).expect("a request")
    };
    let one = of(1000, 1, 1);
    assert!(is_close(one.latency, 600.0) && is_close(one.rate, 1e3 / 600.0), "{one:?}");
    assert_eq!(one.limit, "cores of both sides");
    // A round trip, and three further messages.
    assert!(is_close(of(1000, 4, 1).rate, 4e3 / (600.0 + 3.0 * 250.0)));
    // Only the first 1024 bytes of a further message have another price.
    let trip = 400.0 + 0.2 * 4096.0;
    let next = 100.0 + 0.1 * 1024.0 + 0.05 * 4096.0;
    assert!(is_close(of(4096, 4, 1).rate, 4e3 / (trip + 3.0 * next)));
    // Four processes on two cores take turns: each batch of 16 costs both sides a turn.
    let turns = of(1000, 16, 2);
    assert!(is_close(turns.rate, 1e3 / (250.0 + 2000.0 / 16.0)), "{turns:?}");
    assert!(is_close(turns.latency, 600.0));
}

#[test]
fn requests_outside_of_the_measurement_are_refused() {
    let machine = machine();
    let refused = |request: Request| machine.estimate(request).expect_err("no estimate");
    let read = request(Operation::Read, 64, 1, 1 << 20, 1);
    let send = Request { operation: Operation::Send, ..read };
    for (request, name, least, most) in [
        (Request { bytes: 4, ..read }, "the payload in bytes", 8, 1 << 20),
        (Request { bytes: 2 << 20, ..read }, "the payload in bytes", 8, 1 << 20),
        (Request { batch: 0, ..read }, "the batch", 1, 64),
        (Request { batch: 65, ..read }, "the batch", 1, 64),
        (Request { range: 32, ..read }, "the range in bytes", 64, 512 << 20),
        (Request { range: 1 << 40, ..read }, "the range in bytes", 64, 512 << 20),
        (Request { threads: 0, ..read }, "the number of threads", 1, 2),
        (Request { threads: 3, ..read }, "the number of threads", 1, 2),
        (Request { bytes: 16_392, ..send }, "the payload in bytes", 8, 16_384),
        (Request { threads: 3, bytes: 8, ..send }, "the number of threads", 1, 2),
    ] {
        let RequestError::Range { name: found, least: low, most: high, .. } = refused(request)
        else {
            panic!("{request:?}")
        };
        assert_eq!((found, low, high), (name, least, most));
    }
    let atomic = Request { operation: Operation::Atomic, bytes: 16, ..read };
    assert_eq!(refused(atomic).to_string(), "an atomic operation has 8 bytes, and not 16");
    assert!("look".parse::<Operation>().is_err_and(|error| error.contains("send or atomic")));
}
