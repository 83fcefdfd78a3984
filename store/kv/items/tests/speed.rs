// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rates of serving pipelines of small requests on one core, in processor time.

use freeport_kv_items::{Connection, Items, Next, Now, Options};
use std::fmt::Write;
use std::time::Duration;

const NOW: Now = Now(1_700_000_000);
/// Requests of one call: about what a server receives at once.
const PIPELINE: usize = 100;
/// Requests that are measured.
const REQUESTS: usize = 5_000_000;

/// Time that this thread has run: other programs do not count.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let ns = text.split(' ').next().expect("the first field is the time in ns");
    Duration::from_nanos(ns.parse().expect("it is a number"))
}

/// Pipelines of random keys, made before they are measured.
fn pipelines(keys: u32, make: impl Fn(&mut String, u32)) -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(3);
    let pipeline = |_| {
        let mut text = String::new();
        (0..PIPELINE).for_each(|_| make(&mut text, random.u32(0..keys)));
        text
    };
    (0..1_000).map(pipeline).collect()
}

fn serve(items: &mut Items, pipelines: &[String], requests: usize) -> Duration {
    let mut connection = Connection::new(items.options().limits);
    let mut output = Vec::with_capacity(1 << 20);
    let begin = processor_time();
    for pipeline in pipelines.iter().cycle().take(requests / PIPELINE) {
        output.clear();
        let served = items.serve(&mut connection, pipeline.as_bytes(), NOW, &mut output);
        assert!(served.taken == pipeline.len() && matches!(served.next, Next::Receive { .. }));
    }
    processor_time() - begin
}

#[test]
#[ignore = "long: measures, and asserts nothing about it; run with --release and --nocapture"]
fn pipelines_of_small_requests() {
    type Make = fn(&mut String, u32);
    let cases: [(&str, Make); 6] = [
        ("get", |text, key| writeln!(text, "get k{key:09}\r").expect("a text")),
        ("gets", |text, key| writeln!(text, "gets k{key:09}\r").expect("a text")),
        ("set", |text, key| {
            writeln!(text, "set k{key:09} 0 0 10\r\n0123456789\r").expect("a text")
        }),
        ("mg v", |text, key| writeln!(text, "mg k{key:09} v\r").expect("a text")),
        ("ms", |text, key| writeln!(text, "ms k{key:09} 10\r\n0123456789\r").expect("a text")),
        ("incr", |text, key| writeln!(text, "incr k{key:09} 1\r").expect("a text")),
    ];
    for keys in [10_000, 4_000_000] {
        let options = Options { memory_bytes: 1 << 30, ..Options::default() };
        let mut items = Items::new(options).expect("options are sound");
        let fill: Vec<String> =
            (0..keys).map(|key| format!("set k{key:09} 0 0 10\r\n0123456789\r\n")).collect();
        let fill: Vec<String> = fill.chunks(PIPELINE).map(|chunk| chunk.concat()).collect();
        serve(&mut items, &fill, keys as usize);
        println!("{keys} keys, {} bytes of memory for each", items.used_bytes() / items.len());
        for (name, make) in cases {
            let pipelines = pipelines(keys, make);
            let ns = serve(&mut items, &pipelines, REQUESTS).as_nanos() as f64 / REQUESTS as f64;
            println!("{name:8} {ns:6.1} ns, {:6.1} M/s", 1e3 / ns);
        }
    }
}

#[test]
#[ignore = "long: measures, and asserts nothing about it; run with --release and --nocapture"]
fn sets_in_a_full_memory() {
    let options = Options { memory_bytes: 64 << 20, ..Options::default() };
    let mut items = Items::new(options).expect("options are sound");
    let value = "v".repeat(100);
    let pipelines = pipelines(u32::MAX, |text, key| {
        writeln!(text, "set k{key} 0 0 100\r\n{value}\r").expect("a text");
    });
    // More keys than fit: each pass stores those that the one before has lost.
    let mut fill = pipelines.clone();
    for pass in 0..10 {
        serve(&mut items, &fill, fill.len() * PIPELINE);
        fill =
            pipelines.iter().map(|text| text.replace("set k", &format!("set {pass}k"))).collect();
    }
    let before = items.counters().evictions;
    let ns = serve(&mut items, &fill, fill.len() * PIPELINE).as_nanos() as f64;
    let requests = (fill.len() * PIPELINE) as f64;
    let evictions = items.counters().evictions - before;
    println!(
        "set of 100 bytes, {:.2} evictions each {:.0} ns",
        evictions as f64 / requests,
        ns / requests
    );
}
