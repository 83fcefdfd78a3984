// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers that look up routes and devices, sum bytes, and parse and format strings.

use crate::program;
use crate::program::{
    add, call, constant, copy, definition, exit, load, machine, map, packet, reason, set, slot,
    store, store_constant, store_word, value,
};
use freeport_ebpf::instruction::Instruction;
use freeport_ebpf::interpreter::{Device, Machine, Neighbour, Outcome, Route, Way};
use freeport_ebpf::maps::ErrorNumber;
use freeport_ebpf::object::MapKind;
use std::net::IpAddr;

fn stack(register: u8, offset: i32) -> [Instruction; 2] {
    [copy(register, 10), add(register, offset)]
}

/// Stores bytes on the stack, at `offset` and up, padded to a multiple of eight.
fn written(offset: i16, bytes: &[u8]) -> Vec<Instruction> {
    let mut program = vec![];
    for (at, chunk) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        program.extend(constant(5, u64::from_le_bytes(word)));
        program.push(store(10, offset + 8 * at as i16, 5));
    }
    program
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Creates a machine with two devices and some routes.
fn routed(program: Vec<Instruction>) -> Machine {
    let mut machine = machine(program, vec![definition(MapKind::Array, (4, 64), 1)]);
    let environment = machine.environment_mut();
    let device = |ifindex, mtu, forwards| Device {
        ifindex,
        address: [2, 0, 0, 0, 0, ifindex as u8],
        mtu,
        forwards,
    };
    environment.devices = vec![device(1, 1_500, true), device(2, 1_400, false)];
    let out = |gateway: Option<&str>| Way::Out { ifindex: 2, gateway: gateway.map(address) };
    let route =
        |target, prefix_bits, way| Route { target: address(target), prefix_bits, metric: 7, way };
    environment.routes = vec![
        route("10.0.0.0", 8, out(Some("192.168.0.1"))),
        route("10.1.0.0", 16, out(None)),
        route("10.2.0.0", 16, Way::Blackhole),
        route("10.3.0.0", 16, Way::Unreachable),
        route("10.4.0.0", 16, Way::Prohibited),
        route("10.5.0.0", 16, Way::Local),
        route("2001:db8::", 32, out(None)),
    ];
    let neighbour = |text, last| Neighbour {
        ifindex: 2,
        address: address(text),
        link_address: [4, 0, 0, 0, 0, last],
    };
    environment.neighbours = vec![neighbour("192.168.0.1", 1), neighbour("2001:db8::5", 5)];
    machine
}

/// Looks a target up; returns the outcome and the 64 bytes of parameters after the call.
fn looked_up(target: &str, change: impl Fn(&mut [u8; 64]), flags: i32) -> (Outcome, Vec<u8>) {
    let mut parameters = [0; 64];
    parameters[8] = 1;
    match address(target) {
        IpAddr::V4(target) => {
            parameters[0] = 2;
            parameters[32..36].copy_from_slice(&target.octets());
        }
        IpAddr::V6(target) => {
            parameters[0] = 10;
            parameters[32..48].copy_from_slice(&target.octets());
        }
    }
    change(&mut parameters);
    let program = program![
        copy(6, 1),
        written(-64, &parameters),
        copy(1, 6),
        stack(2, -64),
        set(3, 64),
        set(4, flags),
        call(69),
        copy(7, 0),
        store_word(10, -72, 0),
        map(1, 0),
        stack(2, -72),
        stack(3, -64),
        set(4, 0),
        call(2),
        copy(0, 7),
        exit(),
    ];
    let mut machine = routed(program);
    let outcome = machine.run(0, &mut packet(60));
    let after = machine.map("map").expect("it is there").lookup(&[0; 4]).expect("there is one");
    (outcome, after.to_vec())
}

#[test]
fn routes_are_found_with_their_neighbours() {
    let (outcome, after) = looked_up("10.9.9.9", |_| {}, 0);
    assert_eq!((outcome.aborted, outcome.value), (None, 0));
    assert_eq!(after[8..16], [2, 0, 0, 0, 7, 0, 0, 0], "device and metric");
    assert_eq!(after[32..36], [192, 168, 0, 1], "the gateway");
    assert_eq!(after[52..64], [2, 0, 0, 0, 0, 2, 4, 0, 0, 0, 0, 1], "both link addresses");
    assert_eq!(after[6..8], 1_400_u16.to_ne_bytes());
    let (outcome, after) = looked_up("2001:db8::5", |_| {}, 0);
    assert_eq!((outcome.value, &after[58..64]), (0, &[4, 0, 0, 0, 0, 5][..]));
}

#[test]
fn a_lookup_says_why_a_packet_does_not_go_on() {
    let result = |target| looked_up(target, |_| {}, 0).0.value;
    assert_eq!(result("10.2.0.1"), 1, "blackhole");
    assert_eq!(result("10.3.0.1"), 2, "unreachable");
    assert_eq!(result("10.4.0.1"), 3, "prohibited");
    assert_eq!(result("10.5.0.1"), 4, "to this machine");
    assert_eq!(result("11.0.0.1"), 4, "no route");
    assert_eq!(result("10.1.0.1"), 7, "no neighbour");
    assert_eq!(looked_up("10.1.0.1", |_| {}, 4).0.value, 0, "none is wanted");
    let forwarding = looked_up("10.9.9.9", |parameters| parameters[8] = 2, 0).0.value;
    assert_eq!(forwarding, 5, "the device does not forward");
    let long = |parameters: &mut [u8; 64]| {
        parameters[6..8].copy_from_slice(&1_401_u16.to_ne_bytes());
    };
    let (outcome, after) = looked_up("10.9.9.9", long, 0);
    assert_eq!((outcome.value, &after[6..8]), (8, &1_400_u16.to_ne_bytes()[..]));
    let errors = [
        (looked_up("10.9.9.9", |parameters| parameters[8] = 9, 0), ErrorNumber::ENODEV),
        (looked_up("10.9.9.9", |parameters| parameters[0] = 3, 0), ErrorNumber::EAFNOSUPPORT),
        (looked_up("10.9.9.9", |_| {}, 0x40), ErrorNumber::EINVAL),
    ];
    for ((outcome, _), error) in errors {
        assert_eq!(outcome.value, error.returned());
    }
}

#[test]
fn a_device_says_what_it_carries() {
    let fits = |ifindex: i32, length: i32, change: i32, flags: i32| {
        let program = program![
            store_constant(10, -8, length),
            set(2, ifindex),
            stack(3, -8),
            set(4, change),
            set(5, flags),
            call(163),
            load(1, 10, -8),
            slot(0x67, (1, 0), 0, 32),
            slot(0x4f, (0, 1), 0, 0),
            exit(),
        ];
        routed(program).run(0, &mut packet(60)).value
    };
    assert_eq!(fits(2, 0, 1_400 + 14 - 60, 0), 1_400 << 32);
    assert_eq!(fits(2, 0, 1_401 + 14 - 60, 0), 1_400 << 32 | 1);
    assert_eq!(fits(0, 1_501, 0, 0), 1_500 << 32 | 1, "the device it came from");
    assert_eq!(fits(0, 1_501, -1, 0), 1_500 << 32);
    assert_eq!(fits(9, 0, 0, 0), ErrorNumber::ENODEV.returned());
    assert_eq!(fits(2, 0, 0, 1), ErrorNumber::EINVAL.returned());
}

#[test]
fn sums_of_what_comes_and_goes() {
    let difference = |from: &[u8], to: &[u8], seed: i32| {
        value(program![
            written(-64, from),
            written(-32, to),
            stack(1, -64),
            set(2, from.len() as i32),
            stack(3, -32),
            set(4, to.len() as i32),
            set(5, seed),
            call(28),
            exit(),
        ])
    };
    assert_eq!(difference(&[], &[1, 0, 2, 0], 0), 3);
    assert_eq!(difference(&[1, 0, 2, 0], &[], 0), 0xfffc);
    assert_eq!(difference(&[1, 0, 0, 0], &[3, 0, 0, 0], 4), 6);
    assert_eq!(difference(&[], &[], 5), 5);
    assert_eq!(difference(&[1, 0], &[], 0), ErrorNumber::EINVAL.returned());
}

/// Returns the string that a helper writes to the last 64 bytes of the stack, and its result.
fn text(program: Vec<Instruction>) -> (u64, String) {
    let store = program![
        program,
        copy(7, 0),
        store_word(10, -72, 0),
        map(1, 0),
        stack(2, -72),
        stack(3, -64),
        set(4, 0),
        call(2),
        copy(0, 7),
        exit(),
    ];
    let mut machine = machine(store, vec![definition(MapKind::Array, (4, 64), 1)]);
    let outcome = machine.run(0, &mut packet(60));
    assert_eq!(outcome.aborted, None);
    let after = machine.map("map").expect("it is there").lookup(&[0; 4]).expect("there is one");
    let end = after.iter().position(|&byte| byte == 0).expect("it has an end");
    (outcome.value, String::from_utf8_lossy(&after[..end]).into_owned())
}

#[test]
fn texts_are_formatted_as_the_kernel_formats_them() {
    let formatted = |format: &str, arguments: &[u64], size: i32| {
        let bytes: Vec<u8> = arguments.iter().flat_map(|number| number.to_le_bytes()).collect();
        text(program![
            written(-128, format!("{format}\0").as_bytes()),
            written(-200, &bytes),
            stack(1, -64),
            set(2, size),
            stack(3, -128),
            stack(4, -200),
            set(5, bytes.len() as i32),
            call(165),
        ])
    };
    assert_eq!(
        formatted("%d %5u|%-4x|", &[u64::MAX, 7, 10], 64),
        (15, "-1     7|a   |".to_owned())
    );
    assert_eq!(formatted("%llx %08X %c%%", &[1 << 40, 171, 65], 64).1, "10000000000 000000AB A%");
    assert_eq!(formatted("%d bytes", &[1_234], 5), (11, "1234".to_owned()), "cut off");
    let invalid = ErrorNumber::EINVAL.returned();
    assert_eq!(formatted("%d %d", &[1], 64).0, invalid, "too few arguments");
    assert_eq!(formatted("%f", &[1], 64).0, invalid);
}

#[test]
fn lines_are_traced() {
    let program =
        program![written(-16, b"n = %d\0"), stack(1, -16), set(2, 7), set(3, 42), call(6), exit(),];
    let mut machine = machine(program, vec![]);
    assert_eq!(machine.run(0, &mut packet(60)).value, 6);
    assert_eq!((machine.take_trace(), machine.take_trace()), (vec!["n = 42".to_owned()], vec![]));
}

#[test]
fn numbers_are_read_and_texts_compared() {
    let read = |helper: i32, digits: &str| {
        let program = program![
            written(-16, digits.as_bytes()),
            stack(1, -16),
            set(2, digits.len() as i32),
            set(3, 0),
            stack(4, -24),
            call(helper),
            copy(6, 0),
            load(0, 10, -24),
            slot(0x67, (6, 0), 0, 32),
            slot(0xaf, (0, 6), 0, 0),
            exit(),
        ];
        value(program)
    };
    assert_eq!(read(106, "0x20 "), 4 << 32 | 32);
    assert_eq!(read(105, "-1"), (2 << 32) ^ u64::MAX);
    assert_eq!(read(106, "-1"), ErrorNumber::EINVAL.returned() << 32);
    let compared = |first: &str, second: &str| {
        value(program![
            written(-16, first.as_bytes()),
            written(-32, second.as_bytes()),
            stack(1, -16),
            set(2, first.len() as i32),
            stack(3, -32),
            call(182),
            exit(),
        ]) as i64
    };
    assert_eq!(compared("abc", "abc\0"), 0);
    assert_eq!(compared("abc", "abcd\0"), 0, "three characters only");
    assert_eq!((compared("abc", "abd\0"), compared("abc", "ab\0")), (-1, 1));
    let endless = program![constant(1, 1), set(2, 0), copy(3, 10), call(182), exit()];
    assert!(reason(&program::run(endless)).contains("is outside the stack"));
}
