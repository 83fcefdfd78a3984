// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Native code of every library element accesses no byte beyond a packet's memory: it is compiled
//! with AddressSanitizer and run on packets in allocations of exactly their size, truncated at
//! every byte and with bytes of their headers changed.
//!
//! The sanitizer's runtime must be in a process from its start. So each test runs itself once more
//! with gcc's runtime preloaded, which clang's code can use.

use fastrand::Rng;
use freeport_clicknp::compile_text;
use freeport_golden::{Action, Golden, run};
use freeport_ir::text::parse;
use freeport_ir::{Direction, Item, Program};
use freeport_native::{Buffer, EndpointIo, Frame, Graph, Options, RunStatus, build};
use freeport_testbed::cache::Cache;
use freeport_testbed::is_long;
use freeport_testbed::skip;
use freeport_tests::oracle::seed;
use freeport_tests::{repository, side_by_side};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Set in the process that has the runtime.
const INSIDE: &str = "FREEPORT_TEST_IS_SANITIZED";
/// Size of one buffer at an output.
const BUFFER_BYTES: usize = 9_216 + 256;
/// Number of ways to connect an element in a usual run; a long one tries all.
const WAYS: usize = 1;
/// Frames per run.
const BATCH: usize = 64;

/// Runs the test of that name in a process with the runtime; `None` inside it, or if there is no
/// runtime.
fn sanitized(test: &str) -> Option<Output> {
    if std::env::var_os(INSIDE).is_some() {
        return None;
    }
    let asked = Command::new("gcc").arg("-print-file-name=libasan.so").output();
    let found = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let runtime = found.map(|path| PathBuf::from(path.trim()));
    let Some(runtime) = runtime.filter(|path| path.is_absolute() && path.exists()) else {
        skip("gcc has no libasan.so; Debian has it in libgcc-12-dev");
        return None;
    };
    let this = std::env::current_exe().expect("a test is a program");
    let mut command = Command::new(this);
    command.args(["--exact", test, "--nocapture"]);
    // Rust's test harness frees less than it allocates.
    command.env("ASAN_OPTIONS", "detect_leaks=0").env("LD_PRELOAD", runtime).env(INSIDE, "1");
    Some(command.output().expect("this program can be run"))
}

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

#[test]
fn library_elements_read_and_write_nothing_but_the_packet() {
    if let Some(output) = sanitized("library_elements_read_and_write_nothing_but_the_packet") {
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{reported}");
    }
    if !is_inside() {
        return;
    }
    // The compiler must not run under the sanitizer.
    // SAFETY: this process runs one test, on the only thread that reads variables so far.
    unsafe { std::env::remove_var("LD_PRELOAD") };
    let first = seed(11);
    let checked = side_by_side(&ways(), |at, (path, configuration, packets)| {
        let options = freeport_clicknp::Options { library: vec![repository().join("elements")] };
        let compiled = compile_text("alone.cnp", configuration, &options);
        let program = compiled.unwrap_or_else(|it| panic!("{}", it.render())).program;
        let is_packets = |item| !matches!(item, Item::Bits(_));
        let takes_part = program.graph.endpoints.iter().any(|it| is_packets(it.item));
        if takes_part {
            eprintln!("{}", path.display());
            let mut random = Rng::with_seed(first.wrapping_add(at as u64));
            run_on(&program, &frames(&mut random, packets), &mut random);
        }
        takes_part
    });
    let checked = checked.into_iter().filter(|it| *it).count();
    assert!(checked > 10, "{checked}");
}

/// Returns each way in which a golden connects its element to outer ends, with the packets fed
/// there.
fn ways() -> Vec<(PathBuf, String, BTreeSet<Vec<u8>>)> {
    let mut ways = vec![];
    for path in goldens_below(&repository().join("elements")) {
        let text = std::fs::read_to_string(&path).expect("goldens can be read");
        let golden = Golden::parse(&text).expect("goldens are well formed");
        let mut packets: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for case in &golden.cases {
            let configuration = run::configuration(case).expect("it is joined");
            let kept = packets.entry(configuration).or_default();
            for step in &case.steps {
                if let Action::In { packets, .. } = &step.action {
                    kept.extend(packets.iter().cloned());
                }
            }
        }
        let count = if is_long() { packets.len() } else { WAYS };
        let packets = packets.into_iter().take(count);
        ways.extend(packets.map(|(how, packets)| (path.clone(), how, packets)));
    }
    ways
}

/// Sends a packet twice, so that one of them is a copy.
const COPIES: &str = "
program copies

element Copies {
  in in: packet<64>
  out left: packet<64>
  out right: packet<64>
  handler {
    entry:
      %packet = take in
      put left, %packet
      put right, %packet
      done
  }
}

graph {
  instance copies: Copies
  endpoint input: into packet<64>
  endpoint left: out_of packet<64>
  endpoint right: out_of packet<64>
  input -> copies.in
  copies.left -> left
  copies.right -> right
}
";

/// A frame that claims one byte more than its memory is detected, so that the test above can fail.
#[test]
fn a_read_of_one_byte_too_many_is_found() {
    if let Some(output) = sanitized("a_read_of_one_byte_too_many_is_found") {
        let reported = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && reported.contains("heap-buffer-overflow"),
            "{reported}"
        );
    }
    if !is_inside() {
        return;
    }
    // SAFETY: as above.
    unsafe { std::env::remove_var("LD_PRELOAD") };
    let program = parse(COPIES).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = vec![7_u8; 60].into_boxed_slice();
    // SAFETY: it is not valid, by the one byte for which this process must be aborted.
    let longer = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr(), 61) };
    run_frames(&program, &mut load(&program), vec![Frame::new(longer)], &[]);
}

fn goldens_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in std::fs::read_dir(folder).expect("the library can be read") {
        let path = entry.expect("the library can be read").path();
        if path.is_dir() {
            files.extend(goldens_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "test") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Returns those `packets` that may be frames: truncated at every byte, and with bytes changed.
fn frames(random: &mut Rng, packets: &BTreeSet<Vec<u8>>) -> Vec<Vec<u8>> {
    let whole: Vec<&Vec<u8>> = packets.iter().filter(|it| it.len() >= 14).take(8).collect();
    let mut frames = vec![];
    for packet in &whole {
        frames.extend((1..=packet.len().min(200)).map(|length| packet[..length].to_vec()));
        for _ in 0..if is_long() { 5_000 } else { 200 } {
            let mut changed = (*packet).clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..changed.len().min(100));
                changed[at] = random.u8(..);
            }
            changed.truncate(random.usize(1..=packet.len()).max(random.usize(1..=packet.len())));
            frames.push(changed);
        }
    }
    frames
}

/// Loads without optimization, which would take the compiler five times as long, and would remove
/// reads without effect.
fn load(program: &Program) -> Graph {
    let cache = Cache::of("native");
    let options = Options {
        optimization: 0,
        sanitize: true,
        sanitize_addresses: true,
        cache: Some(cache.path().to_owned()),
        ..Options::default()
    };
    let image = build(program, &options);
    Graph::load(&image.expect("native code can do it")).expect("a library just built")
}

fn run_on(program: &Program, frames: &[Vec<u8>], random: &mut Rng) {
    let mut graph = load(program);
    for batch in frames.chunks(BATCH) {
        // Each frame in an allocation of its own size.
        let mut memory: Vec<Box<[u8]>> =
            batch.iter().map(|frame| frame.clone().into_boxed_slice()).collect();
        let lent = memory.iter_mut().map(|frame| Frame::new(frame)).collect();
        let records: Vec<u8> = (0..BATCH * 128).map(|_| random.u8(..2)).collect();
        run_frames(program, &mut graph, lent, &records);
    }
}

/// Runs the graph on these frames at its first packet endpoint, and on records at the others.
fn run_frames(program: &Program, graph: &mut Graph, frames: Vec<Frame<'_>>, records: &[u8]) {
    let endpoints = &program.graph.endpoints;
    let mut frames = Some(frames);
    let mut inputs: Vec<Vec<Frame<'_>>> = vec![];
    let mut memory: Vec<Vec<Box<[u8]>>> = vec![];
    let mut rooms: Vec<Box<[u8]>> = vec![];
    for endpoint in endpoints {
        let is_frames = !matches!(endpoint.item, Item::Bits(_));
        let is_input = endpoint.direction == Direction::Into;
        let given = if is_frames && is_input { frames.take() } else { None };
        inputs.push(given.unwrap_or_default());
        let slots = if is_frames && !is_input { 2 * BATCH } else { 0 };
        memory.push((0..slots).map(|_| vec![0; BUFFER_BYTES].into_boxed_slice()).collect());
        rooms.push(vec![0; 1 << 16].into_boxed_slice());
    }
    let mut buffers: Vec<Vec<Buffer<'_>>> = (memory.iter_mut())
        .map(|memory| memory.iter_mut().map(|room| Buffer::new(room)).collect())
        .collect();
    let places = inputs.iter_mut().zip(&mut buffers).zip(&mut rooms);
    let mut io: Vec<EndpointIo<'_, '_>> = (endpoints.iter().zip(places))
        .map(|(endpoint, ((inputs, buffers), room))| match (endpoint.direction, endpoint.item) {
            (Direction::Into, Item::Bits(width)) => {
                let count = BATCH.min(records.len() / width.div_ceil(8) as usize);
                EndpointIo::records_in(&records[..count * width.div_ceil(8) as usize])
            }
            (Direction::OutOf, Item::Bits(_)) => EndpointIo::records_out(room),
            (Direction::Into, _) => EndpointIo::frames_in(inputs),
            (Direction::OutOf, _) => EndpointIo::frames_out(buffers),
        })
        .collect();
    let status = graph.run(&mut io).expect("an io for each endpoint");
    assert!(!matches!(status, RunStatus::RecordFull), "nothing is recorded");
}
