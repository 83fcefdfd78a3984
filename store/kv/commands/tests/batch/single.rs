// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Single operations, and what a packet is told of errors and limits.

use freeport_kv_functions::{Element, Registry};
use freeport_kv_protocol::batch::{Opcode, Operation, ReplyLimits, Status, read_functions};

use super::packet::{Packet, one};
use crate::harness::{Local, fill};

const ADD: u8 = 3;
const SUM: u8 = 32;

fn local() -> Local {
    let mut local = Local::with_memory(1, 16 << 20);
    local.effects.listened = 0;
    local.now_ms = Some(1_000_000);
    local
}

fn text(answer: &(Status, Option<Vec<u8>>)) -> String {
    String::from_utf8(answer.1.clone().expect("an error has a text")).expect("a text")
}

#[test]
fn fetch_and_add_of_one_key_is_serial() {
    const TIMES: u64 = 50_000;
    let mut local = local();
    one(&mut local, Operation::put(b"counter", &[0; 8]));
    let amounts: Vec<[u8; 8]> = (0..TIMES).map(|number| (number % 7).to_le_bytes()).collect();
    let element = Element::U64.code();
    let operations: Vec<Operation<'_>> = amounts
        .iter()
        .map(|amount| Operation::call(Opcode::Update, b"counter", ADD, element, amount))
        .collect();
    let answers = Packet::of(&operations).run_all(&mut local);
    let mut expected = 0_u64;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, (Status::Done, Some(expected.to_le_bytes().to_vec())));
        expected += number as u64 % 7;
    }
    assert_eq!(local.effects.changes, TIMES + 1);
}

#[test]
fn a_packet_without_keys_has_replies() {
    let mut local = local();
    assert!(Packet::of(&[]).run_all(&mut local).is_empty());
    let answers = Packet::of(&[Operation::functions()]).run_all(&mut local);
    let value = answers[0].1.as_deref().expect("a list");
    let entries = read_functions(value).expect("it was just written");
    let registry = Registry::built_in();
    assert_eq!(entries.len(), registry.signatures().count());
    let add = entries.iter().find(|entry| entry.id == ADD).expect("a built-in function");
    assert_eq!((add.name, add.operands, add.elements), ("add", 1, 0x3FF));
    let answer = one(&mut local, Operation::hello(b"", &[0; 4]));
    assert_eq!(answer.0, Status::Failed);
}

#[test]
fn errors_name_what_is_wrong() {
    let mut local = local();
    local.line("RPUSH list 1");
    one(&mut local, Operation::put(b"number", &[1; 8]));
    let element = Element::U64.code();
    let call = |opcode, key, function, element, operand| {
        Operation::call(opcode, key, function, element, operand)
    };
    let cases: [(Operation<'_>, Status, &str); 8] = [
        (Operation::get(b"list"), Status::WrongType, "WRONGTYPE "),
        (call(Opcode::Update, b"list", ADD, element, &[0; 8]), Status::WrongType, "WRONGTYPE "),
        (call(Opcode::Update, b"number", 0, element, &[]), Status::Failed, "ERR no function has"),
        (call(Opcode::Update, b"number", SUM, element, &[]), Status::Failed, "ERR function 32 "),
        (call(Opcode::Reduce, b"none", SUM, 10, &[0; 8]), Status::Failed, "ERR no such element"),
        (
            call(Opcode::Update, b"number", ADD, element, &[0; 7]),
            Status::Refused,
            "ERR the operand",
        ),
        (call(Opcode::Update, b"number", ADD, 0, &[0]), Status::Refused, "ERR the value has 8"),
        (call(Opcode::Reduce, b"number", SUM, element, &[]), Status::Refused, "ERR the operand"),
    ];
    for (operation, status, begin) in cases {
        let changes = local.effects.changes;
        let answer = one(&mut local, operation);
        assert_eq!(answer.0, status, "{operation:?}");
        assert!(text(&answer).starts_with(begin), "{operation:?}: {}", text(&answer));
        assert_eq!(local.effects.changes, changes);
    }
    // A key that is missing is found so, whatever the operand.
    let missing = call(Opcode::Update, b"none", ADD, element, &[]);
    assert_eq!(one(&mut local, missing), (Status::NotFound, None));
}

#[test]
fn a_reply_that_does_not_fit_changes_nothing() {
    let mut local = local();
    let vector = [1; 1_000];
    one(&mut local, Operation::put(b"vector", &vector));
    let add = |opcode| Operation::call(opcode, b"vector", ADD, 0, &[1]);
    let operations = [
        Operation::get(b"vector"),
        add(Opcode::UpdateSame),
        add(Opcode::UpdateSame).without_return(),
        Operation::get(b"vector").without_return(),
    ];
    let packet = Packet::of(&operations);
    let limits = ReplyLimits { value_bytes: 999, ..ReplyLimits::default() };
    let (_, answers) = packet.run_within(&mut local, 0..4, false, limits);
    let statuses: Vec<Status> = answers.iter().map(|answer| answer.0).collect();
    assert_eq!(statuses, [Status::Failed, Status::Failed, Status::Done, Status::Done]);
    assert_eq!(one(&mut local, Operation::get(b"vector")).1, Some(vec![2; 1_000]));
    let limits = ReplyLimits { packet_bytes: 2_050, ..ReplyLimits::default() };
    let gets = Packet::of(&[Operation::get(b"vector"); 3]);
    let (_, answers) = gets.run_within(&mut local, 0..3, false, limits);
    let statuses: Vec<Status> = answers.iter().map(|answer| answer.0).collect();
    assert_eq!(statuses, [Status::Done, Status::Done, Status::Failed]);
}

#[test]
fn a_batch_stops_before_an_operation_without_memory() {
    let mut local = Local::with_memory(1, 1 << 20);
    local.effects.listened = 0;
    local.now_ms = Some(1_000_000);
    fill(&mut local);
    let value = [7; 5_000];
    let operations =
        [Operation::get(b"none"), Operation::put(b"more", &value), Operation::get(b"more")];
    let packet = Packet::of(&operations);
    for is_observed in [false, true] {
        local.effects.listened = u16::from(is_observed);
        let (outcome, answers) = packet.run(&mut local, 0..3, true);
        assert_eq!((outcome.executed, answers.len()), (1, 1));
        let (outcome, answers) = packet.run(&mut local, 1..3, false);
        assert_eq!((outcome.executed, outcome.failed), (2, 1));
        assert_eq!(answers[0].0, Status::OutOfMemory);
        assert_eq!(answers[1], (Status::NotFound, None));
    }
    local.effects.listened = 0;
    local.line("FLUSHDB");
    let (outcome, answers) = packet.run(&mut local, 1..3, true);
    assert_eq!((outcome.executed, outcome.failed), (2, 0));
    assert_eq!(answers[1].1.as_deref(), Some(&value[..]));
}

#[test]
fn a_value_whose_time_has_passed_is_removed_by_what_looks_for_it() {
    for is_paused in [false, true] {
        let mut local = local();
        local.line("SET key 1 PX 10");
        local.line("SET other 1 PX 10");
        local.now_ms = Some(1_000_010);
        local.effects.paused_until_ms = if is_paused { u64::MAX } else { 0 };
        assert_eq!(one(&mut local, Operation::get(b"key")), (Status::NotFound, None));
        assert_eq!(one(&mut local, Operation::delete(b"key")), (Status::NotFound, None));
        assert_eq!(local.effects.expired, 1);
        assert_eq!(one(&mut local, Operation::put(b"other", b"2")), (Status::Done, None));
        assert_eq!((local.effects.expired, local.effects.changes), (2, 3));
        assert_eq!(local.store.shard(0).keys(), 1);
    }
}
