// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The load balancer with its manager and small tables, against a model: flows begin, end and pause
//! at random while backends are added and removed. Each packet must leave in the tunnel to the
//! backend of its flow, with the inner frame unchanged.

mod model;

use fastrand::Rng;
use freeport_clicknp::{Options, compile_text};
use freeport_golden::packet;
use freeport_ir::{Bits, Program, interp};
use freeport_native::Options as NativeOptions;
use freeport_port::packet::{ethernet, ipv4};
use freeport_port::trace::TraceFrame;
use freeport_port::{Generator, Sink};
use freeport_runtime::cpu::CpuDevice;
use freeport_runtime::device::{Device, Ports};
use freeport_runtime::interpreter::InterpreterDevice;
use freeport_runtime::placement::Placement;
use freeport_runtime::replace::{ReplaceOptions, replace};
use freeport_runtime::workers::WorkersDevice;
use freeport_testbed::cache::Cache;
use freeport_testbed::is_long;
use freeport_tests::repository;
use model::{Expected, Key, Model, Sign};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

const GRE: u8 = 47;
const OUTER_BYTES: usize = 42;
const NETWORK: u32 = 0x123456;
const THIS_END: u32 = 0xc000_0201;
/// Maximum number of concurrent flows.
const FLOWS: usize = 250;

/// The balancer with a cache of 32 lines and a table of 1,024 buckets.
fn program() -> Program {
    const TEXT: &str = "Balancer<FLOW_BITS = 10, CACHE_BITS = 3> :: balancer\n\
        from_tor -> balancer -> to_tor\n";
    let library = Options { library: vec![repository().join("elements")] };
    let compiled = compile_text("balancer.cnp", TEXT, &library);
    compiled.unwrap_or_else(|failure| panic!("{failure}")).program
}

/// A flow of the test, with its packets.
struct Flow {
    key: Key,
    frame: Vec<u8>,
    ending: Vec<u8>,
    end: Sign,
}

impl Flow {
    fn new(random: &mut Rng) -> Self {
        let source = 0x0a00_0000 + random.u32(..4);
        let (port, is_tcp) = (random.u16(1000..1100), random.bool());
        let address = Ipv4Addr::from(source);
        let (end, flags) = if random.bool() { (Sign::Closes, "fin") } else { (Sign::Ends, "rst") };
        let length = random.u32(60..200);
        let describe = |flags: &str| match is_tcp {
            true => format!("tcp {address}:{port} > 10.9.9.9:80 len {length} flags {flags}"),
            false => format!("udp {address}:{port} > 10.9.9.9:80 len {length}"),
        };
        let build = |flags: &str| packet::build(&describe(flags), &BTreeMap::new());
        let key = (source, 0x0a09_0909, port, 80, if is_tcp { ipv4::TCP } else { ipv4::UDP });
        let frame = build("ack").expect("well described");
        Self { key, frame, ending: build(flags).expect("well described"), end }
    }
}

/// A device with its model.
struct Balancer<'p> {
    device: Box<dyn Device + 'p>,
    model: Model,
    random: Rng,
    flows: Vec<Flow>,
    packets: u64,
    next_dip: u32,
}

impl Balancer<'_> {
    /// Calls a method; returns its result, or 0.
    fn call(&mut self, instance: &str, method: &str, arguments: &[(u32, u64)]) -> u64 {
        let arguments: Vec<Bits> =
            arguments.iter().map(|(width, value)| Bits::from_u64(*width, *value)).collect();
        let id = self.instance(instance);
        let result = self.device.call_method(id, method, &arguments).expect("it takes these");
        result.map_or(0, |result| result.to_u64())
    }

    /// Returns an instance inside the balancer.
    fn instance(&self, name: &str) -> freeport_ir::InstanceId {
        let mut instances = self.device.program().graph.instances.iter();
        let is_it = |own: &str| own.strip_prefix("balancer.") == Some(name);
        let at = instances.position(|it| is_it(&it.name)).expect("it is there");
        freeport_ir::InstanceId::new(at)
    }

    fn read(&self, instance: &str, variable: &str) -> u64 {
        let read = self.device.read_variable(self.instance(instance), variable, 0);
        read.expect("it is there").to_u64()
    }

    /// Sets a variable of 32 bits.
    fn write(&mut self, instance: &str, variable: &str, value: u64) {
        let (id, value) = (self.instance(instance), Bits::from_u64(32, value));
        self.device.write_variable(id, variable, 0, &value).expect("it is there");
    }

    fn add_backend(&mut self) {
        self.next_dip += 1;
        let (dip, weight) = (self.next_dip, self.random.u32(1..4));
        let number = self.model.add(dip, weight);
        // The far end of its tunnel has its own address; so does the next hop.
        let mac = 0x0200_0000_0000 | u64::from(dip);
        let ends = [(32, dip.into()), (48, mac), (32, NETWORK.into()), (32, weight.into())];
        assert_eq!(self.call("manager", "add", &ends), u64::from(number));
    }

    fn change_backends(&mut self) {
        let active = self.model.active();
        if active.len() < 12 && self.random.bool() {
            self.add_backend();
        } else if let Some(number) = self.random.choice(&active) {
            self.model.remove(*number);
            let dip = self.model.dip(*number);
            let arguments = [(32, dip.into()), (32, NETWORK.into())];
            assert_eq!(self.call("manager", "remove", &arguments), 1);
        }
    }

    fn pass_time(&mut self) {
        let ticks = if self.random.u8(..8) == 0 { 300_000 } else { 30_000 };
        self.model.tick += ticks;
        for name in ["cache", "flows"] {
            self.write(name, "time_shift", self.model.tick);
        }
    }

    /// Sweeps flows that have ended; then all sizes are known, and numbers without flows can be
    /// reassigned.
    fn sweep(&mut self) {
        let Some(size) = self.model.certain_size() else { return };
        let (unused, used): (Vec<u16>, Vec<u16>) =
            self.model.removed().into_iter().partition(|it| self.model.flows_of(*it) == 0);
        let freed = self.call("manager", "sweep", &[(32, 1024)]);
        assert_eq!(freed, unused.len() as u64, "{unused:?} have no flow left");
        assert_eq!(self.call("flows", "size", &[]), size);
        unused.into_iter().for_each(|number| self.model.release(number));
        for number in self.model.active().into_iter().chain(used) {
            let dip = self.model.dip(number);
            let arguments = [(32, dip.into()), (32, NETWORK.into())];
            let flows = self.model.flows_of(number);
            assert_eq!(self.call("manager", "flows_of", &arguments), flows);
        }
        assert_eq!(self.call("manager", "size", &[]), self.model.active().len() as u64);
    }

    /// Sends some packets of some flows, in bursts and mixed.
    fn send(&mut self) {
        let mut sent = vec![];
        let mut frames = vec![];
        for _ in 0..self.random.usize(1..60) {
            let at = self.random.usize(..self.flows.len());
            if !self.model.is_certain(self.flows[at].key) {
                continue;
            }
            for _ in 0..self.random.usize(1..4) {
                let flow = &self.flows[at];
                let ends = flow.key.4 == ipv4::TCP && self.random.u8(..8) == 0;
                let (bytes, sign) = match ends {
                    true => (flow.ending.clone(), flow.end),
                    false => (flow.frame.clone(), Sign::Goes),
                };
                let original_length = bytes.len();
                sent.push((bytes.clone(), self.model.packet(flow.key, sign)));
                let frame =
                    TraceFrame { bytes, original_length, timestamp_ns: 0, flow: 0, flaw: None };
                frames.push(frame);
            }
        }
        if frames.is_empty() {
            return;
        }
        self.packets += frames.len() as u64;
        let mut input = Generator::once(&frames).expect("frames of a good length");
        let mut output = Sink::keeping();
        let mut ports =
            Ports::new().with_input("from_tor", &mut input).with_output("to_tor", &mut output);
        self.device.run(&mut ports).expect("the ports fit");
        let mut out = output.kept().iter();
        for (inner, expected) in &sent {
            if *expected != Expected::Drop {
                let frame = out.next().expect("it is not dropped");
                self.check(&frame.bytes, inner, *expected);
            }
        }
        assert!(out.next().is_none(), "it is dropped");
    }

    fn check(&self, outer: &[u8], inner: &[u8], expected: Expected) {
        assert_eq!(&outer[OUTER_BYTES..], inner, "the frame inside is as it was");
        let frame = ethernet::View::new(outer).expect("whole");
        assert_eq!(frame.ether_type(), ethernet::IPV4);
        let ip = ipv4::View::new(frame.payload()).expect("whole");
        assert!(ip.is_checksum_right());
        assert_eq!((ip.protocol(), ip.source()), (GRE, THIS_END));
        assert_eq!(ip.total_length(), outer.len() - ethernet::HEADER_BYTES);
        let target = ip.target();
        assert_eq!(frame.source(), ethernet::Address([2, 0, 0, 0, 0, 1]));
        assert_eq!(frame.target().0[2..], target.to_be_bytes());
        let gre = ip.payload();
        assert_eq!(gre[..4], [0x20, 0, 0x65, 0x58]);
        assert_eq!(gre[4..7], NETWORK.to_be_bytes()[1..]);
        match expected {
            Expected::Backend(number) => {
                assert_eq!(target, self.model.dip(number), "packet {}", self.packets);
            }
            Expected::Any => {
                let active = self.model.active();
                assert!(active.iter().any(|number| self.model.dip(*number) == target));
            }
            Expected::Drop => panic!("it is not dropped"),
        }
    }
}

/// Loads the program again.
type Load<'l, 'p> = &'l dyn Fn() -> Box<dyn Device + 'p>;

/// Runs the test, and asserts that it met every situation. `replacing`: the graph is replaced by
/// itself from time to time.
fn run<'p>(device: Box<dyn Device + 'p>, seed: u64, rounds: u32, replacing: Option<Load<'_, 'p>>) {
    let mut random = Rng::with_seed(seed);
    let flows = (0..FLOWS).map(|_| Flow::new(&mut random)).collect();
    let next_dip = 0x0a01_0000;
    let mut it = Balancer { device, model: Model::new(), random, flows, packets: 0, next_dip };
    it.call("manager", "set_own", &[(32, THIS_END.into()), (48, 0x0200_0000_0001)]);
    it.write("flows", "linger", 20_000);
    for round in 0..rounds {
        if round > 2 && it.random.u8(..3) == 0 {
            it.change_backends();
        } else if round == 2 {
            (0..4).for_each(|_| it.add_backend());
        }
        if it.random.bool() {
            it.pass_time();
        }
        it.sweep();
        if let Some(load) = replacing
            && round % 7 == 3
        {
            let mut new = load();
            let reported = replace(&mut *it.device, &mut *new, &ReplaceOptions::default());
            let reported = reported.expect("nothing is lost");
            assert!(reported.not_kept.is_empty() && reported.new.is_empty(), "{reported}");
            it.device = new;
        }
        it.send();
    }
    assert_eq!(it.read("flows", "opened"), it.model.opened, "new connections");
    assert_eq!(it.read("flows", "unstored"), 0);
    for (instance, variable) in [
        ("cache", "hits"),
        ("cache", "misses"),
        ("flows", "opened"),
        ("flows", "closed"),
        ("flows", "expired"),
        ("flows", "unserved"),
        ("encap", "unrouted"),
    ] {
        let count = it.read(instance, variable);
        assert!(count > 0, "{instance}.{variable} is 0 of {} packets", it.packets);
    }
}

#[test]
fn the_interpreter_balances_as_the_model_does() {
    let program = program();
    for seed in 0..if is_long() { 50 } else { 2 } {
        let schedule = interp::Schedule::Random { seed };
        let options = interp::Options { schedule, keep_histories: false, ..Default::default() };
        let device = InterpreterDevice::load(&program, &options).expect("it is whole");
        run(Box::new(device), seed, 60, None);
    }
}

#[test]
fn native_code_balances_as_the_model_does() {
    let program = program();
    let cache = Cache::of("native");
    let options = NativeOptions {
        optimization: 1,
        cache: Some(cache.path().to_owned()),
        ..Default::default()
    };
    for seed in 0..if is_long() { 500 } else { 20 } {
        let device = CpuDevice::load(&program, &options).expect("it can be built");
        run(Box::new(device), seed, 300, None);
    }
}

#[test]
fn flows_keep_their_backends_while_the_graph_is_replaced() {
    let program = program();
    let cache = Cache::of("native");
    let native = NativeOptions {
        optimization: 1,
        cache: Some(cache.path().to_owned()),
        ..Default::default()
    };
    let load = || -> Box<dyn Device + '_> {
        Box::new(CpuDevice::load(&program, &native).expect("it can be built"))
    };
    run(load(), 5, 150, Some(&load));
    let options = interp::Options { keep_histories: false, ..Default::default() };
    let load = || -> Box<dyn Device + '_> {
        Box::new(InterpreterDevice::load(&program, &options).expect("it is whole"))
    };
    run(load(), 6, 60, Some(&load));
}

#[test]
fn several_workers_balance_as_the_model_does() {
    let program = Arc::new(program());
    let cache = Cache::of("native");
    let options = NativeOptions {
        optimization: 1,
        cache: Some(cache.path().to_owned()),
        ..Default::default()
    };
    for (seed, placement) in
        ["balancer.parse=1,balancer.encap=2", "balancer.cache=1"].iter().enumerate()
    {
        let placement: Placement = placement.parse().expect("written well");
        let workers = placement.workers(&program).expect("they are there");
        let device = WorkersDevice::load(program.clone(), &workers, &[], &options, 0);
        run(Box::new(device.expect("it can be built")), seed as u64, 300, None);
    }
}
