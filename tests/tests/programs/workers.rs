// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs on several workers behave as on one: generated graphs with randomly distributed
//! instances, and graphs with features that are difficult to distribute.

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::oracle::Oracles;
use freeport_ir::{Bits, Direction, EndpointId, InstanceId, Item, Program, interp};
use freeport_port::trace::TraceFrame;
use freeport_port::{Generator, Receive, Sink, Transmit};
use freeport_runtime::device::{Device, Ports, Run, RunEnd};
use freeport_runtime::interpreter::InterpreterDevice;
use freeport_runtime::placement::Placement;
use freeport_runtime::workers::WorkersDevice;
use freeport_testbed::cache::Cache;
use freeport_testbed::is_long;
use freeport_tests::oracle::{batch, graphs, seed};
use std::sync::Arc;

/// Frames for each input endpoint, by its number.
type Input = Vec<Vec<Vec<u8>>>;

/// Result of a run: everything that must not depend on the workers.
#[derive(Debug, PartialEq)]
struct Outcome {
    end: RunEnd,
    /// Output by endpoint.
    out: Vec<Vec<Vec<u8>>>,
    /// Variables visible to the host, by instance, and its tables.
    state: Vec<Vec<Bits>>,
    tables: Vec<Vec<(Bits, Bits)>>,
}

fn compile(name: &str, text: &str) -> Program {
    let compiled = compile_text(name, text, &Options::default());
    compiled.unwrap_or_else(|failure| panic!("{}\n{text}", failure.render())).program
}

fn native_options(cache: &Cache) -> freeport_native::Options {
    let cache = cache.path().to_path_buf();
    freeport_native::Options {
        cache: Some(cache),
        optimization: 0,
        ..freeport_native::Options::default()
    }
}

fn frames(random: &mut Rng, program: &Program) -> Input {
    let ends = program.graph.endpoints.iter();
    let frame = |random: &mut Rng, at: usize| {
        let length = if at.is_multiple_of(7) { 1 + at * 30 } else { 20 + at * 3 };
        (0..length).map(|_| random.u8(..)).collect()
    };
    ends.map(|end| match (end.direction, end.item) {
        (Direction::OutOf, _) | (_, Item::Bits(_)) => vec![],
        _ => (0..40).map(|at| frame(random, at)).collect(),
    })
    .collect()
}

/// Runs a program to its end between ports in memory, with room for `room` frames at a time at each
/// output.
fn run(device: &mut dyn Device, input: &Input, room: u64) -> Outcome {
    let program = device.program().clone();
    let ends = &program.graph.endpoints;
    let trace = |frames: &Vec<Vec<u8>>| frames.iter().cloned().map(TraceFrame::of).collect();
    let traces: Vec<Vec<TraceFrame>> = input.iter().map(trace).collect();
    let mut sources: Vec<(usize, Generator)> = vec![];
    for (at, trace) in traces.iter().enumerate().filter(|(_, trace)| !trace.is_empty()) {
        sources.push((at, Generator::once(trace).expect("good frames")));
    }
    let takes = |at: &usize| {
        ends[*at].direction == Direction::OutOf && !matches!(ends[*at].item, Item::Bits(_))
    };
    let outputs = (0..ends.len()).filter(takes);
    let mut sinks: Vec<(usize, Sink)> =
        outputs.map(|at| (at, Sink::keeping().with_room(0))).collect();
    let end = loop {
        sinks.iter_mut().for_each(|(_, sink)| sink.make_room(room));
        let mut ports = Ports::new();
        for (at, source) in &mut sources {
            ports = ports.with_input(&ends[*at].name, source as &mut dyn Receive);
        }
        for (at, sink) in &mut sinks {
            ports = ports.with_output(&ends[*at].name, sink as &mut dyn Transmit);
        }
        let Run { end, .. } = device.run(&mut ports).expect("nothing fails");
        if end != RunEnd::OutputFull {
            break end;
        }
    };
    let mut out = vec![vec![]; ends.len()];
    for (at, sink) in sinks {
        out[at] = sink.kept().iter().map(|frame| frame.bytes.clone()).collect();
    }
    let (mut state, mut tables) = (vec![], vec![]);
    for at in 0..program.graph.instances.len() {
        let id = InstanceId::new(at);
        let element = program.element_of(id);
        let mut values = vec![];
        for object in element.state.iter().filter(|object| object.host_visible) {
            let read = |index| device.read_variable(id, &object.name, index).expect("it is there");
            values.extend((0..object.depth).map(read));
        }
        state.push(values);
        let entries = |name: &str| device.table_entries(id, name).expect("it is there");
        tables.push(element.tables.iter().flat_map(|table| entries(&table.name)).collect());
    }
    Outcome { end, out, state, tables }
}

/// Whether a run had no choice, so that every other run must have the same result.
fn is_determined(oracles: &Oracles) -> bool {
    oracles.channels.iter().all(|channel| channel.keep.is_empty())
        && oracles.instances.iter().all(|instance| {
            instance.ready.is_empty() && instance.now.is_empty() && instance.random.is_empty()
        })
}

/// Returns the interpreter's result for a program, and whether the run had no choice.
fn interpreted(program: &Program, input: &Input) -> (Outcome, Counted, bool) {
    let options = interp::Options::default();
    let mut device = InterpreterDevice::load(program, &options).expect("a good program");
    let outcome = run(&mut device, input, u64::MAX);
    (outcome, counted(&device), is_determined(&device.oracles()))
}

/// Firings by instance, and items by channel.
type Counted = (Vec<u64>, Vec<u64>);

fn counted(device: &dyn Device) -> Counted {
    let counters = device.counters();
    let firings = counters.instances.iter().map(|it| it.firings).collect();
    (firings, counters.channels.iter().map(|it| it.items).collect())
}

#[test]
fn generated_programs_run_on_several_workers_as_in_the_interpreter() {
    let cache = Cache::of("native");
    let batches = if is_long() { 60 } else { 2 };
    for number in 0..batches {
        let first = seed(5_000_000) + number * 1_000;
        check_batch(first, 12, &native_options(&cache));
    }
}

/// Runs this many programs concurrently, the instances of each distributed over four workers.
fn check_batch(first: u64, count: usize, options: &freeport_native::Options) {
    let mut random = Rng::with_seed(first);
    let mut chosen = vec![];
    for seed in first.. {
        let program = compile(&format!("seed-{seed}.cnp"), &graphs::generate(seed).text);
        let input = frames(&mut random, &program);
        let is_spread = program.graph.instances.len() > 1 && input.iter().any(|it| !it.is_empty());
        if !is_spread {
            continue;
        }
        let (expected, counts, is_determined) = interpreted(&program, &input);
        if is_determined && expected.end == RunEnd::Ended {
            chosen.push((seed, program, input, expected, counts));
        }
        if chosen.len() == count {
            break;
        }
    }
    let whole = Arc::new(batch::merge(chosen.iter().map(|(_, program, ..)| program.clone())));
    let workers: Vec<usize> = whole.graph.instances.iter().map(|_| random.usize(..4)).collect();
    let input = chosen.iter().flat_map(|(_, _, input, ..)| input.clone()).collect();
    for room in [u64::MAX, 3] {
        let device = WorkersDevice::load(whole.clone(), &workers, &[], options, 0);
        let mut device = device.expect("clang-19 is needed");
        let got = run(&mut device, &input, room);
        let (firings, items) = counted(&device);
        assert_eq!(got.end, RunEnd::Ended, "from seed {first}");
        let (mut ends, mut instances, mut channels) = (0, 0, 0);
        for (seed, program, _, expected, counted) in &chosen {
            let graph = &program.graph;
            let end = ends + graph.endpoints.len();
            assert_eq!(got.out[ends..end], expected.out, "seed {seed}: what came out");
            ends = end;
            let end = instances + graph.instances.len();
            assert_eq!(got.state[instances..end], expected.state, "seed {seed}: state");
            assert_eq!(got.tables[instances..end], expected.tables, "seed {seed}: tables");
            assert_eq!(firings[instances..end], counted.0, "seed {seed}: firings");
            instances = end;
            let end = channels + graph.channels.len();
            assert_eq!(items[channels..end], counted.1, "seed {seed}: items");
            channels = end;
        }
    }
}

/// Checks a program with every placement of its instances on two workers, and some on more.
fn check_placements(program: Program, input: &Input) {
    let cache = Cache::of("native");
    let (expected, counts, _) = interpreted(&program, input);
    assert_eq!(expected.end, RunEnd::Ended);
    assert!(expected.out.iter().any(|frames| frames.len() > 10), "it does something");
    let program = Arc::new(program);
    let count = program.graph.instances.len();
    let placements = (0..1_usize << count)
        .map(|bits| (0..count).map(|at| bits >> at & 1).collect())
        .chain([(0..count).collect()]);
    for workers in placements {
        let workers: Vec<usize> = workers;
        let options = native_options(&cache);
        let device = WorkersDevice::load(program.clone(), &workers, &[], &options, 0);
        let mut device = device.expect("clang-19 is needed");
        let got = run(&mut device, input, 7);
        assert_eq!(got, expected, "{workers:?}");
        assert_eq!(counted(&device), counts, "{workers:?}");
    }
}

fn input(program: &Program, frames: Vec<Vec<u8>>) -> Input {
    let id = program.graph.endpoints.iter().position(|it| it.direction == Direction::Into);
    let mut input = vec![vec![]; program.graph.endpoints.len()];
    input[EndpointId::new(id.expect("it has one")).index()] = frames;
    input
}

/// A packet is longer than the channels of both ways are deep: neither way may hold back a packet
/// until it is complete, and values that elements write into flits beside the packet must be
/// preserved.
#[test]
fn two_ways_of_a_packet_meet_flit_by_flit() {
    let program = compile(
        "ways.cnp",
        "// SPDX-License-Identifier: Apache-2.0 OR MIT
        .element Split (flit in -> flit a, flit b) {
            .state { ulong flits; }
            .handler {
                flit x = read_input_port(in);
                flits++;
                set_output_port(a, x);
                set_output_port(b, x);
            }
        }
        .element Number (flit in -> flit out) {
            .state { uint next; }
            .handler {
                flit x = read_input_port(in);
                x.meta = next;
                next = next + 1;
                set_output_port(out, x);
            }
        }
        .element Meet (flit a, flit b -> flit out) await all {
            .state { ulong sum; }
            .handler {
                flit x = read_input_port(a);
                flit y = read_input_port(b);
                x.data[31:0] = x.data[31:0] + y.meta;
                sum = sum + y.meta;
                set_output_port(out, x);
            }
        }
        Split :: split
        Number :: number
        Meet :: meet
        from_tor -> split [a] ->{depth = 2} [a] meet -> to_tor
        split [b] ->{depth = 2} number ->{depth = 2} [b] meet
        ",
    );
    let frames = (0..60).map(|at| vec![at as u8; 40 + at * 150]).collect();
    let input = input(&program, frames);
    check_placements(program, &input);
}

/// The headroom of a packet is passed from worker to worker.
#[test]
fn packets_grow_on_their_way_as_far_as_on_one_worker() {
    let element = |name: &str, by: i32| {
        format!(
            ".element {name} (packet in -> packet out) {{
                .state {{ ulong grown; }}
                .handler {{
                    packet p = read_input_port(in);
                    if (adjust_head(p, {by})) grown++;
                    if (adjust_tail(p, {tail})) grown++;
                    set_output_port(out, p);
                }}
            }}\n",
            tail = -by / 4
        )
    };
    let text = element("Push", -100)
        + &element("Pull", 60)
        + "Push :: a\nPush :: b\nPull :: c\nPush :: d\nPush :: e\n\
           from_tor -> a -> b -> c -> d -> e -> to_tor\n";
    let program = compile("grow.cnp", &text);
    let frames = (0..40).map(|at| vec![at as u8; 1 + at * 230]).collect();
    let input = input(&program, frames);
    check_placements(program, &input);
}

/// The next packet waits for the answer to a question: a cycle through both workers. No answer
/// arrives before its question, so there is no choice, although the asker waits for any port.
#[test]
fn records_go_round_between_workers() {
    let program = compile(
        "circle.cnp",
        "struct Question { uint number; ushort part; };
        .element Asker (packet in, Question answer -> packet out, Question ask) {
            .state { uint number; uint sum; uint length; }
            .handler {
                if (test_input_port(in)) {
                    packet p = read_input_port(in);
                    Question next;
                    next.number = number;
                    next.part = p.length;
                    number = number + 1;
                    set_output_port(ask, next);
                    set_output_port(out, p);
                    return answer;
                }
                Question got = read_input_port(answer);
                sum = sum * 5 + got.number;
                return in;
            }
        }
        .element Answer (Question in -> Question out) {
            .state { ulong answers; }
            .handler {
                Question got = read_input_port(in);
                got.number = got.number * 3 + got.part;
                answers++;
                set_output_port(out, got);
            }
        }
        Asker :: asker
        Answer :: first
        from_tor -> [in] asker [out] -> to_tor
        asker [ask] -> first -> [answer] asker
        ",
    );
    let frames = (0..500).map(|at| vec![at as u8; 60 + at]).collect();
    let input = input(&program, frames);
    check_placements(program, &input);
}

/// The example that copies all traffic to a logger, with the logger on another worker: the host
/// finds the traffic there.
#[test]
fn a_logger_on_another_worker_sees_every_packet() {
    let example = freeport_tests::repository().join("examples/capture.cnp");
    let text = std::fs::read_to_string(example).expect("the example is there");
    let library = Options { library: vec![freeport_tests::repository().join("elements")] };
    let program = compile_text("capture.cnp", &text, &library);
    let program = program.unwrap_or_else(|failure| panic!("{failure}")).program;
    let cache = Cache::of("native");
    let placement: Placement = "logger=1".parse().expect("well written");
    let workers = placement.workers(&program).expect("they are there");
    let frames: Vec<Vec<u8>> = (0..3_000).map(|at| vec![at as u8; 60 + at % 1_400]).collect();
    let input = input(&program, frames.clone());
    let mut device =
        WorkersDevice::load(Arc::new(program), &workers, &[], &native_options(&cache), 0)
            .expect("clang-19 is needed");
    let got = run(&mut device, &input, 100);
    assert_eq!((got.end, &got.out[1]), (RunEnd::Ended, &frames));
    let names = device.program().graph.instances.iter().map(|it| it.name.as_str());
    let logger = InstanceId::new(
        names.collect::<Vec<_>>().iter().position(|it| *it == "logger").expect("there"),
    );
    let read = |name, index| device.read_variable(logger, name, index).expect("there").to_u64();
    assert_eq!(read("packets", 0), 3_000);
    // It stores the last 64, of which the next one to be replaced is the oldest.
    let next = read("next", 0);
    let lengths = (0..64).map(|at| read("lengths", (next + at) % 64));
    let expected = frames[3_000 - 64..].iter().map(|frame| frame.len() as u64);
    assert!(lengths.eq(expected));
}

/// A graph that cannot continue is reported with what it waits for, on any worker.
#[test]
fn a_stall_is_told_by_worker() {
    let program = compile(
        "stall.cnp",
        ".element Pass (packet in -> packet out) {
            .handler { packet p = read_input_port(in); set_output_port(out, p); }
        }
        .element Both (packet a, packet b -> packet out) await all {
            .handler {
                packet p = read_input_port(a);
                packet q = read_input_port(b);
                set_output_port(out, p);
            }
        }
        Pass :: pass
        Both :: both
        from_tor -> pass -> [a] both -> to_tor
        from_nic -> [b] both
        ",
    );
    let cache = Cache::of("native");
    let placement: Placement = "both=2".parse().expect("well written");
    let workers = placement.workers(&program).expect("they are there");
    let input = input(&program, vec![vec![1; 60]; 600]);
    let mut device =
        WorkersDevice::load(Arc::new(program), &workers, &[], &native_options(&cache), 0)
            .expect("clang-19 is needed");
    let RunEnd::Stalled(text) = run(&mut device, &input, 9).end else { panic!("it cannot go on") };
    assert!(text.contains("worker 2: nothing can move") && text.contains("both waits"), "{text}");
    assert!(text.contains("worker 0:"), "{text}");
}

/// A manager acts on other instances immediately, between two of their firings, so it runs on their
/// worker.
#[test]
fn a_manager_runs_with_those_that_it_calls() {
    let program = compile(
        "managed.cnp",
        "// SPDX-License-Identifier: Apache-2.0 OR MIT
        .element Add (packet in -> packet out) {
            .state { ulong packets; uint by; }
            .handler {
                packet p = read_input_port(in);
                packets++;
                p.data[0] = p.data[0] + by;
                set_output_port(out, p);
            }
            .method uint set(uint to) { uint before = by; by = to; return before; }
        }
        Add :: first
        Add :: second
        Add :: third
        .manager {
            .method uint tune(uint to) { return first.set(to) + third.set(to + 1); }
        }
        from_tor -> first -> second -> third -> to_tor
        ",
    );
    let cache = Cache::of("native");
    let load = |placement: &str| {
        let placement: Placement = placement.parse().expect("well written");
        let workers = placement.workers(&program).expect("they are there");
        let options = native_options(&cache);
        WorkersDevice::load(Arc::new(program.clone()), &workers, &[], &options, 0)
    };
    let error = load("first=1,manager=1").map(|_| ()).expect_err("the third one is elsewhere");
    assert!(error.to_string().contains("manager calls methods of third"), "{error}");
    let names = program.graph.instances.iter().map(|it| it.name.as_str());
    let manager = names.collect::<Vec<_>>().iter().position(|it| *it == "manager");
    let manager = InstanceId::new(manager.expect("it is one of them"));
    let input = input(&program, vec![vec![1; 60]; 100]);
    for placement in ["second=1", "first=1,third=1,manager=1", "first=2,second=1,third=2,manager=2"]
    {
        let mut device = load(placement).expect("clang-19 is needed");
        for (to, before) in [(5, 0), (20, 11)] {
            let argument = Bits::from_u64(32, to);
            let answer = device.call_method(manager, "tune", &[argument]).expect("it is there");
            assert_eq!(answer.map(|it| it.to_u64()), Some(before), "{placement}");
        }
        let got = run(&mut device, &input, 30);
        let mut frame = vec![1; 60];
        frame[0] = 1 + 20 + 21;
        assert_eq!(got.out[1], vec![frame; 100], "{placement}");
    }
}
