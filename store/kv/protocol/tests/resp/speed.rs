// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measurements, for a release build:
//! `cargo test --release -p freeport-kv-protocol -- --ignored --nocapture resp::speed`.

use freeport_kv_protocol::resp::{
    Read, RequestLimits, RequestReader, ValueLimits, ValueProgress, ValueReader, Version, Writer,
};
use std::hint::black_box;
use std::time::Instant;

/// Measurements of which the fastest counts.
const ROUNDS: usize = 20;
/// Requests or replies in a round.
const COUNT: usize = 100_000;
/// Times that a buffer of requests is read in a round.
const REPEATS: usize = 1_000;

fn report(name: &str, mut round: impl FnMut() -> usize) {
    let mut best = f64::INFINITY;
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        bytes = round();
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!(
        "{name:32} {:6.1} ns each, {:6.1} million/s, {:5.2} GB/s",
        best / COUNT as f64 * 1e9,
        COUNT as f64 / best / 1e6,
        bytes as f64 / best / 1e9,
    );
}

/// Requests that fit the buffer of a connection.
fn pipeline(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![];
    for _ in 0..COUNT / REPEATS {
        let mut writer = Writer::new(&mut bytes, Version::Two);
        writer.array(arguments.len());
        arguments.iter().for_each(|argument| writer.bulk(argument));
    }
    bytes
}

fn read_requests(bytes: &[u8]) -> usize {
    let mut reader = RequestReader::new(RequestLimits::default());
    let mut count = 0;
    for _ in 0..REPEATS {
        let mut start = 0;
        while let Ok(Read::Complete(request)) = reader.read(black_box(&bytes[start..])) {
            black_box(&request[request.len() - 1]);
            start += request.bytes();
            count += 1;
        }
    }
    assert_eq!(count, COUNT);
    bytes.len() * REPEATS
}

#[test]
#[ignore = "long: needs a release build"]
fn requests() {
    for (name, arguments) in [
        ("PING", &[&b"PING"[..]][..]),
        ("GET, key of 16 bytes", &[b"GET", b"key:000000012345"]),
        ("SET, value of 8 bytes", &[b"SET", b"key:000000012345", b"01234567"]),
        ("SET, value of 256 bytes", &[b"SET", b"key:000000012345", &[b'x'; 256]]),
        ("MSET, 20 arguments", &[&b"key:0"[..]; 20]),
    ] {
        let bytes = pipeline(arguments);
        report(name, || read_requests(&bytes));
    }
    let bytes = b"GET key:000000012345\r\n".repeat(COUNT / REPEATS);
    report("inline GET", || read_requests(&bytes));
}

#[test]
#[ignore = "long: needs a release build"]
fn replies() {
    let mut output = Vec::new();
    let mut write = |name: &str, one: fn(&mut Writer, usize)| {
        report(name, || {
            output.clear();
            let mut writer = Writer::new(&mut output, Version::Three);
            (0..COUNT).for_each(|number| one(&mut writer, black_box(number)));
            black_box(&output).len()
        });
    };
    write("write bulk of 8 bytes", |writer, _| writer.bulk(b"01234567"));
    write("write integer", |writer, number| writer.integer(number as i64 * 7_919));
    write("write double of 2 decimals", |writer, number| writer.double(number as f64 / 100.0));
    write("write double of 17 digits", |writer, number| writer.double(1.0 / (number + 3) as f64));

    for (name, one) in [
        ("read bulk of 8 bytes", &b"$8\r\n01234567\r\n"[..]),
        ("read integer", b":12345\r\n"),
        ("read array of 4 integers", b"*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n"),
    ] {
        let bytes = one.repeat(COUNT / REPEATS);
        report(name, || {
            let mut reader = ValueReader::new(ValueLimits::default());
            for _ in 0..REPEATS {
                let mut start = 0;
                while let Ok(ValueProgress::Complete { value, bytes }) =
                    reader.read(black_box(&bytes[start..]))
                {
                    black_box(&value);
                    start += bytes;
                }
            }
            bytes.len() * REPEATS
        });
    }
}
