// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rates of reading and writing pipelines of small requests on one core, in processor time.

use freeport_kv_protocol::memcached::{KEY_BYTES_MAX, Limits, Reader, Request, Step, reply};
use std::hint::black_box;
use std::time::Duration;

/// Reads requests from a buffer of a server, and returns their number.
fn read_all(reader: &mut Reader, mut bytes: &[u8], mut serve: impl FnMut(&Request)) -> usize {
    let mut count = 0;
    loop {
        let read = reader.read(bytes);
        bytes = &bytes[read.taken..];
        match &read.step {
            Step::Request(request) => serve(request),
            Step::Wait { .. } => return count,
            step => panic!("{step:?}"),
        }
        count += 1;
    }
}

/// Time that this thread has run: other programs do not count.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let ns = text.split(' ').next().expect("the first field is the time in ns");
    Duration::from_nanos(ns.parse().expect("it is a number"))
}

#[test]
#[ignore = "long: measures, and asserts nothing about it; run with --release and --nocapture"]
fn pipelines_of_small_requests() {
    for (name, request) in [
        ("get, 10 bytes of key", "get key:123456\r\n"),
        ("get, 30 bytes of key", "get key:12345678901234567890123456\r\n"),
        ("get, 10 keys", &format!("get{}\r\n", " k:123456".repeat(10))),
        ("set, 10 bytes of value", "set key:123456 0 0 10\r\nabcdefghij\r\n"),
        ("set, 100 bytes of value", &format!("set key:123456 0 0 100\r\n{}\r\n", "v".repeat(100))),
        ("mg, 3 flags", "mg key:123456 v O123 q\r\n"),
        ("mg, binary key", "mg AAECAwQFBgcICQ== b v k q\r\n"),
        ("ms, 3 flags", "ms key:123456 10 T0 O123 q\r\nabcdefghij\r\n"),
        ("incr", "incr key:123456 1\r\n"),
        ("delete, noreply", "delete key:123456 noreply\r\n"),
    ] {
        // As much as a server reads at once.
        let buffer = request.repeat(16_384 / request.len());
        let (mut reader, mut count) = (Reader::new(Limits::default()), 0);
        let (begin, mut scratch) = (processor_time(), [0; KEY_BYTES_MAX]);
        while count < 5_000_000 {
            count += read_all(&mut reader, black_box(buffer.as_bytes()), |request| match request {
                Request::Get(get) => get.keys.for_each(|key| _ = black_box(key)),
                Request::MetaGet(meta) => _ = black_box(meta.key.bytes(&mut scratch)),
                other => _ = black_box(other),
            });
        }
        let ns = (processor_time() - begin).as_secs_f64() * 1e9 / count as f64;
        println!("read {name:28} {ns:6.1} ns, {:6.1} M/s", 1e3 / ns);
    }
    let (mut out, begin) = (Vec::with_capacity(1 << 16), processor_time());
    for number in 0..5_000_000_u64 {
        if number % 256 == 0 {
            black_box(&out);
            out.clear();
        }
        reply::value(&mut out, b"key:123456", 0, b"abcdefghij", None);
        reply::line(&mut out, reply::Line::End);
    }
    let ns = (processor_time() - begin).as_secs_f64() * 1e9 / 5e6;
    println!("write a value                     {ns:6.1} ns, {:6.1} M/s", 1e3 / ns);
}
