// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The firewall of `examples/firewall.cnp`, with smaller tables, against a search through all
//! rules: rules come and go between batches of packets, which the one with the largest priority
//! that fits passes or drops.

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_ir::{Bits, InstanceId, Program, interp};
use freeport_native::Options as NativeOptions;
use freeport_nic::cpu::CpuDevice;
use freeport_nic::device::{Device, Ports, RunEnd};
use freeport_nic::interpreter::InterpreterDevice;
use freeport_nic::port::{Generator, Sink};
use freeport_nic::trace::TraceFrame;
use freeport_tests::golden::packet;
use freeport_tests::repository;
use freeport_tests::tables::Tuple;
use freeport_tests::tables::status::{ABSENT, DONE, NO_MASK, NO_ROOM, REPLACED};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const PASS: u32 = 0;
const DROP: u32 = 1;

/// The example, with tables for few rules, so that they overflow.
fn program() -> Program {
    let example = repository().join("examples/firewall.cnp");
    let text = std::fs::read_to_string(example).expect("the example is there");
    let small = text
        .replace("CuckooHash ::", "CuckooHash<64> ::")
        .replace("LpmTree ::", "LpmTree<32, 32> ::")
        .replace("HashTcam ::", "HashTcam<2, 8> ::")
        .replace("BramTcam ::", "BramTcam<64, 64> ::");
    assert_eq!(small.matches('<').count(), 5, "the tables are made small");
    let library = Options { library: vec![repository().join("elements")] };
    let compiled = compile_text("firewall.cnp", &small, &library);
    compiled.unwrap_or_else(|failure| panic!("{failure}")).program
}

/// A rule of one of the tables.
#[derive(Clone, Debug)]
struct Rule {
    table: &'static str,
    tuple: Tuple,
    mask: Tuple,
    /// Of the prefix; for the other tables it has no meaning.
    length: u32,
    action: u32,
    priority: u16,
}

const EXACT: Tuple = Tuple {
    source: u32::MAX,
    target: u32::MAX,
    source_port: u16::MAX,
    target_port: u16::MAX,
    protocol: u8::MAX,
};

/// Tuples that are alike, so that rules fit them.
fn tuple(random: &mut Rng) -> Tuple {
    Tuple {
        source: 0x0a00_0000 + random.u32(..3),
        target: 0x0a00_0100 + random.u32(..3),
        source_port: random.u16(..2),
        target_port: 80 + random.u16(..2),
        protocol: [6, 17][random.usize(..2)],
    }
}

impl Rule {
    /// A rule with a priority that no other has, so that it is clear which one counts.
    fn random(random: &mut Rng, priority: u16) -> Self {
        let tuple = tuple(random);
        let action = random.u32(..2);
        let length = random.u32(..=32);
        let prefix = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        let (table, mask) = match random.u8(..3) {
            0 => ("exact", EXACT),
            1 => ("prefixes", Tuple { target: prefix, ..Tuple::default() }),
            _ => {
                let any = |random: &mut Rng, bits: u64| if random.bool() { bits } else { 0 };
                let mask = Tuple {
                    source: any(random, u64::from(u32::MAX)) as u32,
                    target: any(random, u64::from(u32::MAX)) as u32,
                    source_port: any(random, 0xffff) as u16,
                    target_port: any(random, 0xffff) as u16,
                    protocol: any(random, 0xff) as u8,
                };
                ("wildcard", mask)
            }
        };
        Self { table, tuple: tuple.masked(&mask), mask, length, action, priority }
    }

    fn is_of(&self, other: &Self) -> bool {
        (self.table, self.tuple, self.mask) == (other.table, other.tuple, other.mask)
            && (self.table != "prefixes" || self.length == other.length)
    }

    fn fits(&self, tuple: &Tuple) -> bool {
        tuple.masked(&self.mask) == self.tuple
    }

    fn key(&self) -> Vec<Bits> {
        match self.table {
            "exact" => vec![self.tuple.bits()],
            "prefixes" => vec![
                Bits::from_u64(32, self.tuple.target.into()),
                Bits::from_u64(8, self.length.into()),
            ],
            _ => vec![self.tuple.bits(), self.mask.bits()],
        }
    }
}

/// Rules in the tables, as the manager of the firewall keeps them.
struct Firewall<'p> {
    device: Box<dyn Device + 'p>,
    /// With the instance that holds each.
    rules: Vec<(Rule, &'static str)>,
    overflows: u32,
}

impl Firewall<'_> {
    fn call(&mut self, instance: &str, method: &str, arguments: &[Bits]) -> u64 {
        let instances = &self.device.program().graph.instances;
        let at = instances.iter().position(|it| it.name == instance).expect("in the example");
        let result = self.device.call_method(InstanceId::new(at), method, arguments);
        result.expect("it takes these").expect("it has a result").to_u64()
    }

    /// Inserts a rule; one with a mask that finds no place goes to the table of masks of their
    /// own.
    fn insert(&mut self, rule: Rule) {
        self.remove(&rule);
        let mut arguments = rule.key();
        arguments.push(Bits::from_u64(32, rule.action.into()));
        arguments.push(Bits::from_u64(16, rule.priority.into()));
        let mut holder = rule.table;
        let mut status = self.call(holder, "insert", &arguments);
        if holder == "wildcard" && (status == NO_ROOM || status == NO_MASK) {
            holder = "others";
            self.overflows += 1;
            status = self.call(holder, "insert", &arguments);
        }
        match status {
            DONE => self.rules.push((rule, holder)),
            status => assert_eq!(status, NO_ROOM, "the rule was not there"),
        }
        assert_ne!(status, REPLACED);
    }

    fn remove(&mut self, rule: &Rule) {
        let Some(at) = self.rules.iter().position(|(other, _)| other.is_of(rule)) else { return };
        let (rule, holder) = self.rules.swap_remove(at);
        assert_eq!(self.call(holder, "remove", &rule.key()), DONE);
        assert_eq!(self.call(holder, "remove", &rule.key()), ABSENT);
    }

    fn passes(&self, tuple: &Tuple) -> bool {
        // Only the longest prefix counts of those that fit.
        let fitting = || self.rules.iter().map(|(rule, _)| rule).filter(|rule| rule.fits(tuple));
        let longest = fitting().filter(|rule| rule.table == "prefixes").map(|rule| rule.length);
        let longest = longest.max();
        let counts = |rule: &&Rule| rule.table != "prefixes" || Some(rule.length) == longest;
        let best = fitting().filter(counts).max_by_key(|rule| rule.priority);
        best.is_some_and(|rule| rule.action == PASS)
    }

    fn check(&mut self, random: &mut Rng, packets: usize) {
        let tuples: Vec<Tuple> = (0..packets).map(|_| tuple(random)).collect();
        let frames: Vec<Vec<u8>> = tuples.iter().map(|tuple| frame(random, tuple)).collect();
        let expected = tuples.iter().zip(&frames).filter(|(tuple, _)| self.passes(tuple));
        let mut sink = Sink::checking(expected.map(|(_, frame)| frame.clone()).collect());
        let trace: Vec<TraceFrame> = frames.into_iter().map(TraceFrame::of).collect();
        let mut source = Generator::once(&trace).expect("good frames");
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        let run = self.device.run(&mut ports).expect("nothing fails");
        assert_eq!(run.end, RunEnd::Ended);
        assert!(sink.is_as_expected(), "{:?} of {:?}", sink.first_mismatch(), self.rules);
    }
}

fn frame(random: &mut Rng, tuple: &Tuple) -> Vec<u8> {
    let protocol = if tuple.protocol == 6 { "tcp" } else { "udp" };
    let [source, target] = [tuple.source, tuple.target].map(Ipv4Addr::from);
    let (source_port, target_port) = (tuple.source_port, tuple.target_port);
    let length = if random.bool() { 64 } else { random.u32(64..1515) };
    let text = format!("{protocol} {source}:{source_port} > {target}:{target_port} len {length}");
    packet::build(&text, &BTreeMap::new()).expect("well described")
}

fn run(device: Box<dyn Device + '_>, rounds: usize) {
    let mut random = Rng::with_seed(7);
    let mut firewall = Firewall { device, rules: vec![], overflows: 0 };
    firewall.check(&mut random, 20);
    for round in 0..rounds {
        for change in 0..8 {
            let priority = (round * 8 + change + 1) as u16;
            let rule = Rule::random(&mut random, priority);
            match random.u8(..4) {
                0 => firewall.remove(&rule),
                _ => firewall.insert(rule),
            }
        }
        firewall.check(&mut random, 40);
    }
    assert!(firewall.overflows > 0, "no mask overflowed");
    let actions = firewall.rules.iter().map(|(rule, _)| rule.action);
    let drops = actions.filter(|action| *action == DROP).count();
    let passes = firewall.rules.len() - drops;
    assert!(drops > 5 && passes > 5, "{drops} rules drop, {passes} pass");
}

#[test]
fn native_code_passes_what_the_rules_allow() {
    let program = program();
    let cache = tempfile::tempdir().expect("a folder");
    let options = NativeOptions { cache: cache.path().to_owned(), ..NativeOptions::default() };
    run(Box::new(CpuDevice::load(&program, &options).expect("it builds")), 300);
}

#[test]
fn the_interpreter_passes_what_the_rules_allow() {
    let program = program();
    let device = InterpreterDevice::load(&program, &interp::Options::default());
    run(Box::new(device.expect("a good program")), 12);
}
