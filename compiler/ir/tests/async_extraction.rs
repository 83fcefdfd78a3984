// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slow paths that become elements: the results of the graph stay the same, and calls that cannot
//! be extracted give a reason.

use freeport_ir::generate::{Generated, Limits, generate};
use freeport_ir::interp::{Interpreter, Options, Outcome};
use freeport_ir::passes::{self, PassSet};
use freeport_ir::{Bits, InstanceId, Latency, Op, Program, text};
use std::collections::BTreeMap;

/// A table with a cache of one entry: on a miss, the slow path reads (or, for key 200 and above,
/// refuses) and counts.
const CACHE: &str = "
element Cache {
  in in: bits<8>
  out out: bits<16>
  reg key: bits<8>[1]
  reg value: bits<16>[1]
  global memory: bits<16>[256] = {0x7, 0x9}
  local misses: bits<32>[1]
  handler {
    entry:
      %zero = const 0:1
      %wanted = take in
      %held = load key[%zero]
      %hit = eq %wanted, %held
      br %hit, known, miss
    miss:
      %read = call @fill(%wanted) async
      store key[%zero], %wanted
      store value[%zero], %read
      jump known
    known:
      %result = load value[%zero]
      put out, %result
      done
  }
  fn @fill(%at: bits<8>) -> bits<16> {
    entry:
      %zero = const 0:1
      %one = const 1:32
      %old = load misses[%zero]
      %new = add %old, %one
      store misses[%zero], %new
      %limit = const 200:8
      %fits = ult %at, %limit
      br %fits, read, refuse
    read:
      %word = load memory[%at]
      %mark = zext %at to 16
      %sum = add %word, %mark
      ret %sum
    refuse:
      trap user 3
  }
}
graph {
  instance it: Cache
  endpoint in: into bits<8>
  endpoint out: out_of bits<16>
  in -> it.in
  it.out -> out
}
";

fn state_by_name(program: &Program, run: &Interpreter) -> BTreeMap<String, Vec<Bits>> {
    let state = run.execution().state;
    let mut found = BTreeMap::new();
    for (at, contents) in state.into_iter().enumerate() {
        let element = program.element_of(InstanceId::new(at));
        found.extend(element.state.iter().map(|it| it.name.clone()).zip(contents));
    }
    found
}

/// Histories of the original channels, state by name, answers, and the counters that must not
/// change, summed over caller and companions.
type Seen = (Vec<Vec<Bits>>, BTreeMap<String, Vec<Bits>>, Vec<Bits>, [u64; 2], String);

fn observe(program: &Program, input: &Generated) -> Seen {
    let mut run = Interpreter::new(program, &Options::default()).expect("a sound program");
    for (endpoint, items) in &input.feed {
        for item in items {
            run.feed_item(*endpoint, item.clone()).expect("an item of the right width");
        }
    }
    assert_eq!(run.run(10_000).expect("no framing to break"), Outcome::Idle);
    for signal in &input.signals {
        run.signal(InstanceId(0), signal.clone()).expect("the element takes signals");
    }
    let execution = run.execution();
    let channels = input.program.graph.channels.len();
    let sum = |count: fn(&freeport_ir::oracle::InstanceCounters) -> u64| {
        execution.counters.iter().map(count).sum()
    };
    (
        execution.histories[..channels].to_vec(),
        state_by_name(program, &run),
        execution.answers[0].clone(),
        [sum(|counters| counters.out_of_range), sum(|counters| counters.empty_reads)],
        format!("{:?}", execution.counters[0].traps),
    )
}

fn extract(program: &Program) -> (Program, passes::Changes) {
    let mut program = program.clone();
    let set = PassSet::only(&["async_extraction"]).expect("a pass");
    let report = passes::run(&mut program, &set);
    (program, report.of("async_extraction"))
}

#[test]
fn a_cache_miss_becomes_an_element_and_keeps_its_meaning() {
    let program = text::parse(CACHE).unwrap_or_else(|error| panic!("{error}"));
    let keys = [0, 0, 1, 1, 250, 1, 0, 199, 200, 0, 5];
    let feed = keys.iter().map(|key| Bits::from_u64(8, *key)).collect();
    let endpoint = freeport_ir::EndpointId(0);
    let input = Generated { program, feed: vec![(endpoint, feed)], signals: vec![] };
    let want = observe(&input.program, &input);
    assert_eq!(want.0[1].len(), 9, "two keys are refused");
    assert_eq!(want.1["misses"], [Bits::from_u64(32, 7)]);
    let (program, changes) = extract(&input.program);
    assert_eq!(changes.counts["elements"], 1, "{changes:?}");
    assert_eq!(observe(&program, &input), want);
    let names = |at: usize| -> Vec<String> {
        program.elements[at].state.iter().map(|object| object.name.clone()).collect()
    };
    assert_eq!(names(0), ["key", "value"]);
    assert_eq!(names(1), ["memory", "misses"]);
    assert_eq!(program.graph.instances[1].name, "it.fill");

    let mut hardware = input.program.clone();
    passes::run(&mut hardware, &PassSet::for_hardware());
    assert_eq!(observe(&hardware, &input), want);
}

#[test]
fn what_cannot_leave_says_why() {
    let declined = |from: &str, to: &str| {
        let text = CACHE.replace(from, to);
        assert_ne!(text, CACHE);
        let program = text::parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let (after, changes) = extract(&program);
        assert_eq!(after, program);
        changes.notes.join("\n")
    };
    let before = "%read = call";
    let cases = [
        (before, "%seen = load misses[%zero]\n      %read = call", "also uses the state `misses`"),
        (
            "store key[%zero], %wanted",
            "%again = peek in\n      store key[%zero], %wanted",
            "ports are read",
        ),
        (before, "put out, %early\n      %read = call", "`out` may be put to both"),
        ("%old = load misses", "%drawn = random\n      %old = load misses", "`now` or `random`"),
        ("trap user 3", "put out, %zero16\n      trap user 3", "uses ports"),
    ];
    for (from, to, reason) in cases {
        let to = to.replace("put out, %early", "%early = const 1:16\n      put out, %early");
        let to = to.replace("put out, %zero16", "%zero16 = const 0:16\n      put out, %zero16");
        let notes = declined(from, &to);
        assert!(notes.contains(reason), "{notes:?} lacks {reason:?}");
    }
}

/// Every call of a generated handler becomes a slow path; with a single input port, nothing depends
/// on timing.
#[test]
fn generated_programs_keep_their_meaning() {
    let mut extracted = 0;
    for seed in 0..2000 {
        let limits = Limits { statements: 15, ..Limits::default() };
        let mut input = generate(seed, &limits);
        if input.program.elements[0].inputs.len() > 1 {
            continue;
        }
        let handler = input.program.elements[0].handler.index();
        for block in &mut input.program.functions[handler].blocks {
            for inst in &mut block.insts {
                if let Op::Call { latency, .. } = &mut inst.op {
                    *latency = Latency::Async;
                }
            }
        }
        let (program, changes) = extract(&input.program);
        extracted += changes.counts.get("elements").copied().unwrap_or(0);
        assert_eq!(observe(&program, &input), observe(&input.program, &input), "seed {seed}");
    }
    assert!(extracted > 20, "only {extracted} slow paths were extracted");
}
