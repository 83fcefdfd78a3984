// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Managers in native code compared with the interpreter: methods that call methods of other
//! instances, two levels deep, with values of odd widths, choices and traps, between random parts
//! of a run.

use crate::replay::{Driver, Traffic, check, image, options};
use fastrand::Rng;
use freeport_ir::text::parse;
use freeport_ir::{Bits, Program, TrapCode, verify};
use freeport_testbed::cache::Cache;

const ITEM_BITS: u32 = 300;

/// Two elements that change their items by a mask, a manager of the first, and one of both.
const MANAGED: &str = r#"
program managed
element Keep {
  in in: bits<300>
  out out: bits<300>
  reg mask: bits<300>[1] visible
  reg drawn: bits<64>[1] visible
  handler {
    entry:
      %zero = const 0:1
      %item = take in
      %mask = load mask[%zero]
      %changed = xor %item, %mask
      put out, %changed
      done
  }
  method swap(%to: bits<300>, %part: bits<7>) -> bits<104> {
    entry:
      %zero = const 0:1
      %old = load mask[%zero]
      %low = extract %old[9 +: 104]
      %new = insert %to[50], %part
      store mask[%zero], %new
      %bad = const 99:7
      %is_bad = eq %part, %bad
      br %is_bad, trap, end
    trap:
      trap user 5
    end:
      ret %low
  }
  method clear() {
    entry:
      %zero = const 0:1
      %none = const 0:300
      store mask[%zero], %none
      ret
  }
  method draw() -> bits<64> {
    entry:
      %zero = const 0:1
      %now = now
      %random = random
      %drawn = xor %now, %random
      store drawn[%zero], %drawn
      ret %drawn
  }
}
element Inner {
  reg sum: bits<64>[1] visible
  init {
    entry:
      %to = const 0x123456789abcdef:300
      %part = const 1:7
      %old = call_method a.swap(%to, %part)
      ret
  }
  handler {
    entry:
      done
  }
  method both(%to: bits<300>) -> bits<104> {
    entry:
      %zero = const 0:1
      %part = const 3:7
      %old = call_method a.swap(%to, %part)
      %drawn = call_method a.draw()
      %sum = load sum[%zero]
      %more = add %sum, %drawn
      store sum[%zero], %more
      ret %old
  }
}
element Outer {
  reg last: bits<104>[1] visible
  handler {
    entry:
      done
  }
  method all(%to: bits<300>, %part: bits<7>) -> bits<104> {
    entry:
      %zero = const 0:1
      %first = call_method inner.both(%to)
      %second = call_method b.swap(%to, %part)
      %sum = xor %first, %second
      store last[%zero], %sum
      %lowest = extract %part[0 +: 1]
      br %lowest, clear, end
    clear:
      call_method a.clear()
      %unused = call_method b.draw()
      jump end
    end:
      ret %sum
  }
}
graph {
  instance outer: Outer host
  instance a: Keep
  instance b: Keep
  instance inner: Inner host
  endpoint from: into bits<300>
  endpoint to: out_of bits<300>
  from -> a.in
  a.out -> b.in
  b.out -> to
}"#;

fn managed() -> Program {
    let program = parse(MANAGED).unwrap_or_else(|error| panic!("{error}"));
    verify(&program).unwrap_or_else(|errors| panic!("{errors:?}"));
    program
}

fn item(random: &mut Rng) -> Bits {
    let bytes: Vec<u8> = (0..38).map(|_| random.u8(..)).collect();
    Bits::from_le_bytes(ITEM_BITS, &bytes)
}

#[test]
fn a_record_of_managers_replays_to_the_same_execution() {
    let program = managed();
    let cache = Cache::of("native");
    let image = image(&program, &options(cache.path()));
    for seed in 0..10 {
        let random = &mut Rng::with_seed(seed);
        let records = (0..random.usize(1..60)).map(|_| item(random)).collect();
        let input = vec![Traffic { records, ..Traffic::default() }, Traffic::default()];
        let mut driver = Driver::new(&image, input);
        let mut trapped = 0;
        for _ in 0..random.usize(0..40) {
            let (instance, method) = [
                ("outer", "all"),
                ("outer", "all"),
                ("inner", "both"),
                ("a", "swap"),
                ("b", "clear"),
            ][random.usize(..5)];
            let part = Bits::from_u64(7, [99, random.u64(..128)][random.usize(..2)]);
            let args = match method {
                "clear" => vec![],
                "both" => vec![item(random)],
                _ => vec![item(random), part.clone()],
            };
            trapped += u64::from(method == "all" && part.to_u64() == 99);
            let id = driver.graph.instance(instance).expect("in the graph");
            driver.graph.call_method(id, method, &args).expect("it takes these");
            driver.run(&[random.usize(..4), 0], &[0, random.usize(..4)]);
        }
        driver.run_in_pieces(random, 3);
        let (oracles, execution) = driver.graph.take_recording();
        let calls = oracles.instances.iter().map(|it| it.calls.len());
        let calls: Vec<usize> = calls.collect();
        assert!(calls[3] > 0, "init calls: {calls:?}");
        let traps = execution.counters[2].traps.get(&TrapCode::User(5)).copied();
        assert_eq!(traps.unwrap_or(0), trapped);
        let out = check(&program, oracles, &execution);
        assert_eq!(out, driver.out);
    }
}

#[test]
fn without_a_record_the_same_comes_out() {
    let program = managed();
    let cache = Cache::of("native");
    let plain = freeport_native::Options { record: false, ..options(cache.path()) };
    let image = image(&program, &plain);
    let mut graph = freeport_native::Graph::load(&image).expect("a library just built");
    let outer = graph.instance("outer").expect("in the graph");
    let random = &mut Rng::with_seed(1);
    let (first, second) = (item(random), item(random));
    let part = Bits::from_u64(7, 4);
    graph.call_method(outer, "all", &[first.clone(), part.clone()]).expect("it takes these");
    let old = graph.call_method(outer, "all", &[second, part]).expect("it takes these");
    // The masks of the two differ in the inserted part.
    let low = |part| first.insert(50, &Bits::from_u64(7, part)).extract(9, 104);
    let (low, other) = (low(3), low(4));
    let difference: Vec<u8> =
        low.to_le_bytes().iter().zip(other.to_le_bytes()).map(|(l, r)| l ^ r).collect();
    assert_eq!(old, Some(Bits::from_le_bytes(104, &difference)));
    let (_, execution) = graph.take_recording();
    assert!(execution.answers.iter().all(Vec::is_empty));
}
