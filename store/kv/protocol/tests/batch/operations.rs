// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations as they are written and read.

use super::plain::{NO_RETURN, Owned, SAME_SIZE, SAME_VALUE, WIDE, encode, random};
use fastrand::Rng;
use freeport_kv_protocol::batch::{
    Opcode, Operation, Operations, PacketLimits, PacketWriter, Reason, Refused,
};

const LARGE: PacketLimits = PacketLimits { bytes: 64 << 20, operations: u16::MAX };

fn decoded(payload: &[u8], count: usize) -> Vec<Owned> {
    let mut operations = Operations::default();
    operations.decode(payload, count as u16).expect("the payload is well formed");
    assert_eq!(operations.len(), count);
    let all: Vec<Owned> = operations.iter(payload).map(Owned::of).collect();
    for (number, operation) in all.iter().enumerate() {
        assert_eq!(operations.get(payload, number), operation.borrowed());
        assert_eq!(operations.key(payload, number), operation.key);
    }
    all
}

fn written(operations: &[Owned]) -> Vec<u8> {
    let mut packet = b"before".to_vec();
    let mut writer = PacketWriter::begin(&mut packet, LARGE, 3, None);
    for operation in operations {
        writer.push(&mut packet, &operation.borrowed()).expect("it fits");
    }
    let header = writer.finish(&mut packet);
    assert_eq!(usize::from(header.count), operations.len());
    let payload = packet.split_off(b"before".len() + header.bytes());
    assert_eq!(payload.len(), header.payload_bytes as usize);
    payload
}

#[test]
fn operations_with_any_flags_are_decoded() {
    let mut rng = Rng::with_seed(1);
    for round in 0..2_000 {
        let operations = random(&mut rng, round % 40);
        let mut flags = Rng::with_seed(round as u64);
        let payload = encode(&operations, |_| flags.bool());
        assert_eq!(decoded(&payload, operations.len()), operations, "round {round}");
    }
}

#[test]
fn the_writer_takes_every_flag_that_shortens_a_packet() {
    let mut rng = Rng::with_seed(2);
    for round in 0..2_000 {
        let operations = random(&mut rng, round % 40);
        let shortest = encode(&operations, |flag| flag == SAME_SIZE || flag == SAME_VALUE);
        let payload = written(&operations);
        assert_eq!(payload, shortest, "round {round}");
        assert_eq!(decoded(&payload, operations.len()), operations, "round {round}");
    }
}

#[test]
fn a_packet_that_is_cut_anywhere_is_refused() {
    let mut rng = Rng::with_seed(3);
    let mut reader = Operations::default();
    for round in 0..60 {
        let mut operations = random(&mut rng, 12);
        operations.iter_mut().for_each(|operation| {
            operation.key.truncate(40);
            operation.value.truncate(40);
        });
        let mut flags = Rng::with_seed(round);
        let payload = encode(&operations, |_| flags.bool());
        let count = operations.len() as u16;
        for bytes in 0..payload.len() {
            let error = reader.decode(&payload[..bytes], count).expect_err("it is cut");
            assert!(matches!(error.reason, Reason::Truncated), "{error}");
            assert!(error.operation < count && error.offset as usize <= bytes, "{error}");
            assert!(reader.is_empty(), "nothing of a refused packet is kept");
        }
        reader.decode(&payload, count).expect("all of it is well formed");
        let error = reader.decode(&payload, count - 1).expect_err("an operation is left");
        assert_eq!((error.operation, error.reason), (count - 1, Reason::Trailing));
        let error = reader.decode(&payload, count + 1).expect_err("an operation is missing");
        assert_eq!((error.operation, error.reason), (count, Reason::Truncated));
    }
}

#[test]
fn a_first_byte_that_is_no_operation_is_refused() {
    let mut reader = Operations::default();
    for byte in 0..=u8::MAX {
        // A put first, so that every flag has something to refer to.
        let mut payload = Owned::of(Operation::put(b"k", b"v"));
        payload.no_return = true;
        let mut payload = encode(&[payload], |_| false);
        payload.push(byte);
        payload.extend([0; 40]);
        let opcode = Opcode::ALL.into_iter().find(|opcode| *opcode as u8 == byte & 15);
        let is_valid = opcode.is_some_and(|opcode| match opcode {
            Opcode::Functions => byte >> 4 == 0,
            _ if byte & SAME_SIZE != 0 && byte & WIDE != 0 => false,
            _ => opcode.has_value() || byte & SAME_VALUE == 0,
        });
        let error = reader.decode(&payload, 2).expect_err("zeros follow");
        let expected = if is_valid { Reason::Trailing } else { Reason::FirstByte(byte) };
        assert_eq!(error.reason, expected, "first byte {byte:#x}");
        let text = error.to_string();
        let named = "operation 1, at byte 6 of the payload: no operation has the code and flags";
        assert_eq!(text.starts_with(named), !is_valid, "{text}");
    }
}

#[test]
fn the_first_operation_refers_to_nothing() {
    let mut reader = Operations::default();
    let mut refused = |payload: &[u8], count| {
        reader.decode(payload, count).expect_err("there is nothing before").reason
    };
    let put = Opcode::Put as u8;
    assert_eq!(refused(&[Opcode::Get as u8 | SAME_SIZE, b'k'], 1), Reason::NoKeyBefore);
    assert_eq!(refused(&[put | SAME_SIZE, b'k', b'v'], 1), Reason::NoKeyBefore);
    assert_eq!(refused(&[put | SAME_VALUE, 1, b'k'], 1), Reason::NoValueBefore);
    assert_eq!(refused(&[put | SAME_VALUE | WIDE, 1, 0, 0, 0, b'k'], 1), Reason::NoValueBefore);
    // The list of functions has no key, and a get no value.
    assert_eq!(refused(&[13, Opcode::Get as u8 | SAME_SIZE, b'k'], 2), Reason::NoKeyBefore);
    let get = [Opcode::Get as u8, 1, b'k'];
    assert_eq!(
        refused(&[&get[..], &[put | SAME_SIZE, b'k', 0]].concat(), 2),
        Reason::NoValueBefore
    );
    assert_eq!(
        refused(&[&get[..], &[put | SAME_VALUE | NO_RETURN, 0]].concat(), 2),
        Reason::NoValueBefore
    );
}

#[test]
fn lengths_at_the_borders_need_no_more_bytes_than_they_have_to() {
    let long = vec![7; 65_536];
    let bytes = |key: usize, value: usize| {
        let operation = Owned::of(Operation::put(&long[..key], &long[..value]));
        let payload = written(std::slice::from_ref(&operation));
        assert_eq!(decoded(&payload, 1), [operation]);
        payload.len() - key - value
    };
    assert_eq!([bytes(0, 0), bytes(255, 65_535)], [4, 4]);
    assert_eq!([bytes(256, 0), bytes(0, 65_536)], [9, 9]);
    // A long length that a payload does not have takes no memory.
    let mut huge = vec![Opcode::Put as u8 | WIDE];
    huge.extend([0xff; 8]);
    let error = Operations::default().decode(&huge, 1).expect_err("there are no such bytes");
    assert_eq!(error.reason, Reason::Truncated);
}

#[test]
fn an_operation_that_does_not_fit_changes_nothing() {
    let mut rng = Rng::with_seed(4);
    for round in 0..400 {
        let operations = random(&mut rng, 60);
        let limits = PacketLimits { bytes: rng.usize(16..2_000), operations: rng.u16(1..40) };
        let token = rng.bool().then_some(9);
        let mut packet = Vec::new();
        let mut sent = Vec::new();
        let mut writer = PacketWriter::begin(&mut packet, limits, round, token);
        for operation in &operations {
            let before = packet.clone();
            let error = match writer.push(&mut packet, &operation.borrowed()) {
                Ok(()) => {
                    sent.push(operation.clone());
                    assert!(writer.bytes(&packet) <= limits.bytes);
                    continue;
                }
                Err(error) => error,
            };
            assert_eq!(packet, before);
            let alone = encode(std::slice::from_ref(operation), |_| false).len()
                + if token.is_some() { 24 } else { 16 };
            let limit = limits.bytes;
            let too_large = Refused::TooLarge { bytes: alone, limit };
            assert_eq!(error, if alone > limit { too_large } else { Refused::Full });
            assert!(error == too_large || writer.count() > 0, "the first operation fits");
        }
        let header = writer.finish(&mut packet);
        let payload = &packet[header.bytes()..];
        assert_eq!(decoded(payload, header.count.into()), sent);
    }
}
