// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whole programs in the text form, run by the interpreter packet by packet: a drop, a MAC swap,
//! and a stateful firewall as it looks when lifted from XDP.

use freeport_ir::interp::{Interpreter, Options, Outcome, Schedule};
use freeport_ir::{Bits, EndpointId, InstanceId, Program, text, verify};

const ONLY: InstanceId = InstanceId(0);
const FROM_TOR: EndpointId = EndpointId(0);
const TO_TOR: EndpointId = EndpointId(1);

fn parsed(text: &str) -> Program {
    let program = text::parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verify(&program), Ok(()));
    program
}

fn fed<'p>(program: &'p Program, options: &Options, packets: &[Vec<u8>]) -> Interpreter<'p> {
    let mut interpreter = Interpreter::new(program, options).expect("the program is complete");
    for packet in packets {
        interpreter.feed_packet(FROM_TOR, packet).expect("packets are taken in");
    }
    assert_eq!(interpreter.run(100_000), Ok(Outcome::Idle));
    interpreter
}

/// Returns packets of every number of flits up to 4, with every padding.
fn packets() -> Vec<Vec<u8>> {
    (14..128).map(|length| (0..length).map(|at| (at * 31 + length) as u8).collect()).collect()
}

#[test]
fn drop_counts_packets_and_lets_none_out() {
    let program = parsed(include_str!("interp/drop.ir"));
    let interpreter = fed(&program, &Options::default(), &packets());
    let count = interpreter.read_variable(ONLY, "count", 0);
    assert_eq!(count, Ok(Bits::from_u64(64, packets().len() as u64)));
}

#[test]
fn mac_swap_changes_the_addresses_and_nothing_else() {
    let program = parsed(include_str!("interp/mac_swap.ir"));
    let want: Vec<Vec<u8>> = packets()
        .iter()
        .map(|packet| [&packet[6..12], &packet[..6], &packet[12..]].concat())
        .collect();
    for schedule in [Schedule::RoundRobin, Schedule::Random { seed: 3 }] {
        let options = Options { schedule, ..Options::default() };
        let mut interpreter = fed(&program, &options, &packets());
        assert_eq!(interpreter.take_packets(TO_TOR), Ok(want.clone()));
        let count = interpreter.read_variable(ONLY, "count", 0);
        assert_eq!(count, Ok(Bits::from_u64(64, want.len() as u64)));
    }
}

type Side = ([u8; 4], u16);
const CLIENT: Side = ([10, 0, 0, 1], 4000);
const OTHER: Side = ([10, 0, 0, 2], 4000);
const THIRD: Side = ([10, 0, 0, 3], 4000);
const SERVER: Side = ([192, 0, 2, 7], 443);
const STRANGER: Side = ([192, 0, 2, 8], 443);

/// Returns a frame with an IPv4 and a UDP header.
fn frame(source: Side, target: Side) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[23] = 17;
    frame[26..30].copy_from_slice(&source.0);
    frame[30..34].copy_from_slice(&target.0);
    frame[34..36].copy_from_slice(&source.1.to_be_bytes());
    frame[36..38].copy_from_slice(&target.1.to_be_bytes());
    frame
}

/// Returns the key of a flow: the bytes as they are in the frame, the first one lowest.
fn key(source: Side, target: Side) -> Bits {
    let ports = [source.1.to_be_bytes(), target.1.to_be_bytes()].concat();
    Bits::from_le_bytes(96, &[&source.0[..], &target.0[..], &ports].concat())
}

#[test]
fn the_firewall_lets_in_only_answers_to_what_went_out() {
    let program = parsed(include_str!("interp/firewall.ir"));
    let mut not_ipv4 = frame(CLIENT, SERVER);
    not_ipv4[12] = 0x86;
    let sent = [
        (frame(SERVER, CLIENT), false),
        (frame(CLIENT, SERVER), true),
        (frame(SERVER, CLIENT), true),
        (frame(SERVER, CLIENT), true),
        (frame(STRANGER, CLIENT), false),
        (not_ipv4, false),
        (frame(OTHER, SERVER), true),
        (frame(CLIENT, SERVER), true),
        // The table holds two flows.
        (frame(THIRD, SERVER), false),
        (frame(SERVER, OTHER), true),
        // Too short to have an EtherType: the load gives 0, and is counted.
        (vec![0; 13], false),
    ];
    let packets: Vec<Vec<u8>> = sent.iter().map(|(packet, _)| packet.clone()).collect();
    let mut interpreter = fed(&program, &Options::default(), &packets);
    let passed = sent.iter().filter(|(_, passes)| *passes).map(|(packet, _)| packet.clone());
    assert_eq!(interpreter.take_packets(TO_TOR), Ok(passed.collect()));
    let refused = interpreter.read_variable(ONLY, "refused", 0);
    assert_eq!(refused, Ok(Bits::from_u64(32, 5)));
    assert_eq!(interpreter.counters(ONLY).out_of_range, 1);
    let answers = [(CLIENT, 2), (OTHER, 1)];
    for (client, count) in answers {
        let answered = interpreter.call_method(ONLY, "answers", vec![key(client, SERVER)]);
        assert_eq!(answered, Ok(Some(Bits::from_u64(64, count))));
    }
}
