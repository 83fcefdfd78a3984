// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A firewall on a device, together with the rules that it should follow.

use super::model::{Rule, Rules, tuple};
use fastrand::Rng;
use freeport_golden::packet;
use freeport_ir::{Bits, InstanceId, Program, interp};
use freeport_native::Options;
use freeport_port::trace::TraceFrame;
use freeport_port::{Generator, Sink};
use freeport_runtime::cpu::CpuDevice;
use freeport_runtime::device::{Device, Ports, RunEnd};
use freeport_runtime::interpreter::InterpreterDevice;
use freeport_runtime::placement::Placement;
use freeport_runtime::workers::WorkersDevice;
use freeport_tests::tables::Tuple;
use freeport_tests::tables::status::{ABSENT, DONE, NO_ROOM, REPLACED};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

pub fn native(program: &Program) -> Box<dyn Device + '_> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("firewall");
    let options = Options { cache: Some(cache), ..Options::default() };
    Box::new(CpuDevice::load(program, &options).expect("it builds"))
}

/// Returns native code on several workers.
pub fn spread(program: &Program, placement: &str) -> Box<dyn Device> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("firewall");
    let options = Options { cache: Some(cache), ..Options::default() };
    let placement: Placement = placement.parse().expect("written well");
    let workers = placement.workers(program).expect("they are there");
    let device = WorkersDevice::load(Arc::new(program.clone()), &workers, &[], &options, 0);
    Box::new(device.expect("it builds"))
}

pub fn interpreter(program: &Program) -> Box<dyn Device + '_> {
    let device = InterpreterDevice::load(program, &interp::Options::default());
    Box::new(device.expect("a good program"))
}

/// A firewall, and its expected behaviour.
pub struct Firewall<'p> {
    pub device: Box<dyn Device + 'p>,
    pub rules: Rules,
    /// Rules of a set that is not placed yet.
    pub planned: Vec<Rule>,
    /// Number of rules that did not fit.
    pub refused: u32,
}

impl<'p> Firewall<'p> {
    pub fn new(device: Box<dyn Device + 'p>) -> Self {
        Self { device, rules: Rules::default(), planned: vec![], refused: 0 }
    }

    /// Returns an instance inside the firewall.
    fn instance(&self, name: &str) -> InstanceId {
        let mut instances = self.device.program().graph.instances.iter();
        let is_it = |own: &str| own.strip_prefix("firewall.") == Some(name);
        InstanceId::new(instances.position(|it| is_it(&it.name)).expect("it is there"))
    }

    pub fn call(&mut self, method: &str, arguments: &[Bits]) -> Bits {
        let manager = self.instance("manager");
        let result = self.device.call_method(manager, method, arguments);
        result.expect("it takes these").expect("it has a result")
    }

    pub fn read(&self, instance: &str, variable: &str, index: u64) -> Bits {
        let value = self.device.read_variable(self.instance(instance), variable, index);
        value.expect("it is there")
    }

    pub fn count(&self, instance: &str, variable: &str) -> u64 {
        self.read(instance, variable, 0).to_u64()
    }

    pub fn insert(&mut self, rule: Rule) {
        let status = self.call("insert", &rule.arguments()).to_u64();
        match status {
            NO_ROOM => self.refused += 1,
            status => {
                let exists = self.rules.has(&rule);
                assert_eq!(status, if exists { REPLACED } else { DONE }, "{rule:?}");
                self.rules.insert(rule);
            }
        }
    }

    pub fn remove(&mut self, rule: &Rule) {
        let wanted = if self.rules.remove(rule) { DONE } else { ABSENT };
        assert_eq!(self.call("remove", &rule.key()).to_u64(), wanted, "{rule:?}");
    }

    pub fn plan(&mut self, rule: Rule) -> bool {
        let status = self.call("plan", &rule.arguments()).to_u64();
        assert!([DONE, NO_ROOM].contains(&status), "{status}");
        self.planned.extend((status == DONE).then_some(rule));
        status == DONE
    }

    /// Places the planned rules; those that do not fit stay planned.
    pub fn place(&mut self) {
        let status = self.call("place", &[]).to_u64();
        let left = self.count("manager", "planned");
        assert_eq!(status, if left == 0 { DONE } else { NO_ROOM });
        let left: Vec<Rule> = (0..left).map(|at| self.planned_rule(at)).collect();
        self.refused += left.len() as u32;
        for rule in std::mem::replace(&mut self.planned, left.clone()) {
            if !left.contains(&rule) {
                self.rules.insert(rule);
            }
        }
    }

    fn planned_rule(&self, at: u64) -> Rule {
        let bits = self.read("manager", "plans", at);
        let number = |lo, width| bits.extract(lo, width).to_u64();
        let tuple_at = |lo| Tuple {
            source: number(lo, 32) as u32,
            target: number(lo + 32, 32) as u32,
            source_port: number(lo + 64, 16) as u16,
            target_port: number(lo + 80, 16) as u16,
            protocol: number(lo + 96, 8) as u8,
        };
        Rule::new(tuple_at(0), tuple_at(128), number(256, 32) as u32, number(320, 16) as u16)
    }

    /// Checks the manager's answer about a tuple.
    pub fn check_lookup(&mut self, tuple: &Tuple) {
        let found = self.call("lookup", &[tuple.bits()]);
        let found =
            (found.extract(128, 32).to_u64() as u32, found.extract(160, 16).to_u64() as u16);
        assert_eq!(found, self.rules.verdict(tuple), "{tuple:?}");
    }

    pub fn check(&mut self, random: &mut Rng, packets: usize) {
        let tuples: Vec<Tuple> = (0..packets).map(|_| tuple(random)).collect();
        tuples.iter().take(4).for_each(|tuple| self.check_lookup(tuple));
        let frames: Vec<Vec<u8>> = tuples.iter().map(|tuple| frame(random, tuple)).collect();
        let expected = tuples.iter().zip(&frames).filter(|(tuple, _)| self.rules.passes(tuple));
        let mut sink = Sink::checking(expected.map(|(_, frame)| frame.clone()).collect());
        let trace: Vec<TraceFrame> = frames.into_iter().map(TraceFrame::of).collect();
        let mut source = Generator::once(&trace).expect("good frames");
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        let run = self.device.run(&mut ports).expect("nothing fails");
        assert_eq!(run.end, RunEnd::Ended);
        assert!(sink.is_as_expected(), "{:?} of {:?}", sink.first_mismatch(), self.rules.0);
    }

    /// Returns every value that the host can see.
    pub fn everything(&self) -> Vec<Bits> {
        let program = self.device.program();
        let mut all = vec![];
        for instance in &program.graph.instances {
            let inside = instance.name.strip_prefix("firewall.").expect("all are inside");
            let state = &program.element(instance.element).state;
            for object in state.iter().filter(|object| object.host_visible) {
                let values = (0..object.depth).map(|at| self.read(inside, &object.name, at));
                all.extend(values);
            }
        }
        all
    }
}

pub fn frame(random: &mut Rng, tuple: &Tuple) -> Vec<u8> {
    let protocol = if tuple.protocol == 6 { "tcp" } else { "udp" };
    let [source, target] = [tuple.source, tuple.target].map(Ipv4Addr::from);
    let (source_port, target_port) = (tuple.source_port, tuple.target_port);
    let length = if random.bool() { 64 } else { random.u32(64..1515) };
    let text = format!("{protocol} {source}:{source_port} > {target}:{target_port} len {length}");
    packet::build(&text, &BTreeMap::new()).expect("well described")
}
