// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs and maps in map entries are changed between packets, as user space does when services
//! are added and removed; the following packets have the same outcome as in the kernel.

use super::{may_ask_kernel, seed};
use crate::objects::compiled;
use fastrand::Rng;
use freeport_ebpf::interpreter::Environment;
use freeport_ebpf::object::Object;
use freeport_xdp::traffic::{Kind, Traffic, hosts};
use freeport_xdp::{Arrival, Comparison, Error, Interpreter, Kernel, Target};

const ROUNDS: usize = 200;
const PACKETS: usize = 12;
const KINDS: &[Kind] = &[Kind::Tcp, Kind::Udp, Kind::TcpIpv6, Kind::Extended, Kind::Other];

/// A change, on any target.
type Change<'c> = &'c dyn Fn(&mut dyn Target) -> Result<(), Error>;

/// A program on both targets.
struct Both {
    kernel: Kernel,
    interpreter: Interpreter,
    comparison: Comparison,
    traffic: Traffic,
    packets: u64,
    refused: usize,
}

impl Both {
    fn load(source: &str) -> Self {
        let bytes = compiled(source);
        let object = Object::parse(&bytes).expect("clang makes such objects");
        let interpreter = Interpreter::load(&object, Environment::default());
        Self {
            kernel: Kernel::load(&bytes).expect("the verifier takes it"),
            interpreter: interpreter.expect("it can run here"),
            comparison: Comparison::new(["kernel", "interpreter"], vec![]),
            traffic: Traffic::new(seed(), KINDS),
            packets: 0,
            refused: 0,
        }
    }

    /// Makes a change on both targets, which both must accept or both refuse.
    fn change(&mut self, what: &str, change: Change<'_>) {
        let expected = change(&mut self.kernel);
        let found = change(&mut self.interpreter);
        assert_eq!(found.is_ok(), expected.is_ok(), "{what}: {found:?}, the kernel {expected:?}");
        self.refused += usize::from(expected.is_err());
    }

    fn run(&mut self, program: &str) {
        for _ in 0..PACKETS {
            let packet = self.traffic.next_packet();
            let arrival = Arrival { ingress_ifindex: 1, rx_queue_index: 0, ..packet.arrival() };
            self.packets += 1;
            let targets: [&mut dyn Target; 2] = [&mut self.kernel, &mut self.interpreter];
            let result = self.comparison.run(targets, program, self.packets, &arrival);
            result.unwrap_or_else(|error| panic!("{error}"));
        }
    }

    fn compare_maps(&mut self) {
        let names = self.comparison.map_names([&self.kernel, &self.interpreter]);
        for name in names.unwrap_or_else(|error| panic!("{error}")) {
            let targets: [&mut dyn Target; 2] = [&mut self.kernel, &mut self.interpreter];
            let result = self.comparison.map(targets, &name);
            result.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[test]
fn programs_in_a_map_are_changed_between_packets() {
    if !may_ask_kernel() {
        return;
    }
    const PARSERS: [&str; 7] = [
        "parse_ethernet",
        "parse_vlan",
        "parse_ipv4",
        "parse_ipv6",
        "parse_extension",
        "parse_tcp",
        "parse_nothing",
    ];
    let mut both = Both::load("parser_chain");
    let mut random = Rng::with_seed(seed());
    for _ in 0..ROUNDS {
        // The map has seven slots.
        let place = random.u32(..9).to_ne_bytes();
        let parser = PARSERS[random.usize(..PARSERS.len())];
        if random.u8(..3) == 0 {
            both.change("delete", &|target| target.delete("parsers", &place));
        } else {
            both.change(parser, &|target| target.put_program("parsers", &place, parser));
        }
        both.run("parse_ethernet");
    }
    both.compare_maps();
    assert!(both.refused > ROUNDS / 10 && both.refused < ROUNDS / 2, "{}", both.refused);
}

#[test]
fn maps_in_a_map_are_changed_between_packets() {
    if !may_ask_kernel() {
        return;
    }
    const MAPS: [&str; 3] = ["targets_of_first", "counters_of_first", "counters_of_second"];
    let mut both = Both::load("tenants");
    let mut random = Rng::with_seed(seed());
    for _ in 0..ROUNDS {
        let vlan = u32::from(hosts::VLANS[random.usize(..hosts::VLANS.len())]);
        let (outer, key) = match random.bool() {
            true => ("targets", vlan),
            false => ("counters", random.u32(..18)),
        };
        let (key, inner) = (key.to_ne_bytes(), MAPS[random.usize(..MAPS.len())]);
        let host = hosts::ipv4(random.u8(..hosts::HOSTS));
        match random.u8(..6) {
            0 => both.change("delete", &|target| target.delete(outer, &key)),
            1 => both.change("forget", &|target| target.delete("targets_of_first", &host)),
            2 => both.change("allow", &|target| target.update("targets_of_first", &host, &[0; 8])),
            // A map of another kind or size is refused.
            _ => both.change(inner, &|target| target.put_inside(outer, &key, inner)),
        }
        both.run("isolate");
    }
    both.compare_maps();
    assert!(both.refused > ROUNDS / 10 && both.refused < ROUNDS / 2, "{}", both.refused);
}
