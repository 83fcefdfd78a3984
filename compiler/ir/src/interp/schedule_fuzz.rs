// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random graphs under random schedules: replaying the record of one schedule under another gives
//! the same execution, even if the graph got stuck.

use super::fixture::{Fixture, put, take};
use super::{Interpreter, Options, Outcome, Schedule};
use crate::*;

const WORD: Item = Item::Bits(64);
const GRAPHS: u64 = 150;
const REPLAYS: u64 = 4;

/// An element that takes from some of its ready ports, mixes the items into a sum, and puts that to
/// some of its outputs; sometimes it waits for one port only, or reads an oracle.
fn random_handler(b: &mut Builder, random: &mut fastrand::Rng, inputs: u32, outputs: u32) {
    let sum = ObjectRef::State(ObjectId(0));
    let zero = b.number(1, 0);
    let takes_one = random.bool();
    let taken = b.new_block();
    for port in 0..inputs {
        let (taking, next) = (b.new_block(), b.new_block());
        let is_ready = b.push(Op::Ready(PortId(port)), Type::Bits(1));
        b.branch(is_ready, taking, next);
        b.switch_to(taking);
        let old = b.load(sum, zero, 0, 64);
        let value = take(b, port, 64);
        let factor = b.number(64, random.u64(..) | 1);
        let product = b.binary(BinaryOp::Mul, old, factor);
        let mut mixed = b.binary(BinaryOp::Add, product, value);
        if random.u8(0..4) == 0 {
            let drawn = b.push(Op::Random, Type::Bits(64));
            mixed = b.binary(BinaryOp::Xor, mixed, drawn);
        }
        b.store(sum, zero, 0, mixed);
        b.jump(if takes_one { taken } else { next });
        b.switch_to(next);
    }
    b.jump(taken);
    b.switch_to(taken);
    let value = b.load(sum, zero, 0, 64);
    for port in 0..outputs {
        let (putting, next) = (b.new_block(), b.new_block());
        let cond = b.extract(value, random.u32(32..64), 1);
        let always = random.bool();
        if always {
            b.jump(putting);
        } else {
            b.branch(cond, putting, next);
        }
        b.switch_to(putting);
        put(b, port, value);
        b.jump(next);
        b.switch_to(next);
    }
    let mask = (inputs > 1 && random.u8(0..3) == 0).then(|| {
        let cond = b.extract(value, 40, 1);
        let if_true = b.number(inputs, random.u64(1..1 << inputs));
        let if_false = b.number(inputs, (1 << inputs) - 1);
        b.push(Op::Select { cond, if_true, if_false }, Type::Bits(inputs))
    });
    b.end(Term::Done { mask });
}

/// A graph in which each instance reads inputs of the graph and outputs of earlier instances.
fn random_graph(random: &mut fastrand::Rng) -> Program {
    let mut fixture = Fixture::default();
    let mut open: Vec<(InstanceId, u32)> = vec![];
    for at in 0..random.usize(2..7) {
        let (inputs, outputs) = (random.u32(1..4), random.u32(1..3));
        let [takes, puts] = [inputs, outputs].map(|count| vec![WORD; count as usize]);
        let element =
            fixture.element(&takes, &puts, |b| random_handler(b, random, inputs, outputs));
        fixture.state(element, 64, 1);
        fixture.program.elements[element.index()].await_all = random.u8(0..4) == 0;
        let instance = fixture.instance(&format!("i{at}"), element);
        for port in 0..inputs {
            let depth = random.u32(1..5);
            if open.is_empty() || random.u8(0..3) == 0 {
                fixture.feed_into(&format!("feed{at}_{port}"), (instance, port), depth);
            } else {
                let from = open.swap_remove(random.usize(..open.len()));
                let channel = fixture.join(from, (instance, port), depth);
                if random.u8(0..4) == 0 {
                    let channel = &mut fixture.program.graph.channels[channel.index()];
                    channel.on_full = OnFull::DropCounted;
                }
            }
        }
        open.extend((0..outputs).map(|port| (instance, port)));
    }
    for (at, from) in open.into_iter().enumerate() {
        fixture.collect(from, &format!("out{at}"), random.u32(1..5));
    }
    fixture.program
}

fn feed(interpreter: &mut Interpreter<'_>, program: &Program, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for (at, endpoint) in program.graph.endpoints.iter().enumerate() {
        if endpoint.direction == Direction::Into {
            for _ in 0..random.u32(0..40) {
                let value = Bits::from_u64(64, random.u64(..));
                interpreter.feed_item(EndpointId::new(at), value).expect("records fit");
            }
        }
    }
}

fn options(seed: u64) -> Options {
    Options { schedule: Schedule::Random { seed }, random_seed: seed, ..Options::default() }
}

/// Runs; returns whether it ended with data waiting.
fn run(interpreter: &mut Interpreter<'_>, seed: u64) -> bool {
    match interpreter.run(1_000_000) {
        Ok(Outcome::Idle) => false,
        Ok(Outcome::Stalled(_)) => true,
        other => panic!("seed {seed}: {other:?}"),
    }
}

#[test]
fn every_record_replays_under_every_schedule() {
    let (mut stalled, mut with_choice, mut firings) = (0, 0, 0);
    for seed in 0..GRAPHS {
        let program = random_graph(&mut fastrand::Rng::with_seed(seed));
        assert_eq!(verify(&program), Ok(()), "seed {seed}");
        let mut recording = Interpreter::new(&program, &options(seed)).expect("complete");
        feed(&mut recording, &program, seed);
        let is_stalled = run(&mut recording, seed);
        let (execution, oracles) = (recording.execution(), recording.oracles());
        stalled += u64::from(is_stalled);
        with_choice += u64::from(oracles.instances.iter().any(|it| !it.ready.is_empty()));
        firings += execution.counters.iter().map(|counters| counters.firings).sum::<u64>();
        for other in 0..REPLAYS {
            let options = match other {
                0 => Options::default(),
                other => options(seed + other * GRAPHS),
            };
            let mut replay =
                Interpreter::replay(&program, oracles.clone(), &options).expect("its own record");
            feed(&mut replay, &program, seed);
            assert_eq!(run(&mut replay, seed), is_stalled, "seed {seed}");
            assert_eq!(replay.execution(), execution, "seed {seed}");
            assert_eq!(replay.oracles(), oracles, "seed {seed}");
        }
    }
    let is_varied = stalled > 10 && stalled < GRAPHS - 10 && with_choice > GRAPHS / 2;
    assert!(is_varied && firings > 20 * GRAPHS, "{stalled} {with_choice} {firings}");
}
