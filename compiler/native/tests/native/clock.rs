// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clock in native code: it is monotonic, and a new run or call reads it anew.

use freeport_ir::Bits;
use freeport_ir::text::parse;
use freeport_native::{EndpointIo, Graph, Options, RunStatus, build};
use std::time::Duration;

/// Returns the time for each record, and in the method `time`.
const CLOCK: &str = "
element Clock {
  in in: bits<8>
  out out: bits<64>
  handler {
    entry:
      %any = take in
      %time = now
      put out, %time
      done
  }
  method time () -> bits<64> {
    entry:
      %time = now
      ret %time
  }
}
graph {
  instance clock: Clock
  endpoint from_host: into bits<8>
  endpoint to_host: out_of bits<64>
  from_host -> clock.in
  clock.out -> to_host
}";

/// Sends the time once it has reached `next`; in between, it does not wait for items.
const ALARM: &str = "
element Alarm {
  out out: bits<64>
  reg next: bits<64>[1] visible = {-1}
  handler {
    entry:
      %zero = const 0:1
      %next = load next[%zero]
      %time = now
      %is_early = ult %time, %next
      br %is_early, wait, send
    wait:
      done
    send:
      put out, %time
      %never = const -1:64
      store next[%zero], %never
      done
  }
}
graph {
  instance alarm: Alarm
  endpoint to_host: out_of bits<64>
  alarm.out -> to_host
}";

fn loaded(text: &str) -> Graph {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("native");
    let options = Options { cache: Some(cache), ..Options::default() };
    let image = build(&program, &options).unwrap_or_else(|error| panic!("{error}"));
    Graph::load(&image).expect("a library just built")
}

fn times(graph: &mut Graph, count: usize) -> Vec<u64> {
    let mut room = vec![0; count * 8];
    let mut io = [EndpointIo::records_in(&[0; 100][..count]), EndpointIo::records_out(&mut room)];
    graph.run(&mut io).expect("the endpoints fit");
    assert_eq!(io[1].done(), count);
    room.chunks_exact(8).map(|it| u64::from_le_bytes(it.try_into().expect("8 bytes"))).collect()
}

#[test]
fn the_clock_never_goes_back_and_each_run_and_call_reads_it() {
    let mut graph = loaded(CLOCK);
    let clock = graph.instance("clock").expect("it is there");
    let mut last = 0;
    for round in 0..20 {
        let seen = times(&mut graph, 100);
        assert!(seen.is_sorted(), "{seen:?}");
        assert!(seen[99] > seen[0], "many records are not all from one reading");
        // No condition can replace this pause: the test needs a minimum of elapsed time.
        let pause = Duration::from_millis(2);
        assert!(round == 0 || seen[0] >= last + 2_000_000, "a run reads the clock");
        std::thread::sleep(pause);
        let called = graph.call_method(clock, "time", &[]).expect("there is one");
        let called = called.map(|time| time.to_u64()).expect("it has a result");
        assert!(called >= seen[99] + 2_000_000, "a call reads the clock");
        std::thread::sleep(pause);
        last = called;
    }
}

#[test]
fn who_only_asks_for_the_time_has_few_firings_and_ends_the_run() {
    let mut graph = loaded(ALARM);
    let alarm = graph.instance("alarm").expect("it is there");
    let mut room = [0; 8];
    let mut run = |graph: &mut Graph| {
        let mut io = [EndpointIo::records_out(&mut room)];
        (graph.run(&mut io).expect("the endpoints fit"), io[0].done())
    };
    for round in 1..=3 {
        assert_eq!(run(&mut graph), (RunStatus::Waiting, 0));
        let firings = graph.counters().instances[0].firings;
        assert!((round..=round * 16).contains(&firings), "{firings} firings in {round} runs");
    }
    graph.write_variable(alarm, "next", 0, Bits::zero(64)).expect("it is visible");
    assert_eq!(run(&mut graph), (RunStatus::Waiting, 1));
    assert_eq!(run(&mut graph), (RunStatus::Waiting, 0));
}
