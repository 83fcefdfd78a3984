// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What others notice of a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_commands::{Class, Waiter};
use freeport_kv_functions::Element;
use freeport_kv_keyspace::Kind;
use freeport_kv_protocol::batch::{Opcode, Operation};

use super::packet::{Packet, words};
use crate::harness::Local;

const ADD: u8 = 3;

fn operations() -> Vec<Operation<'static>> {
    let byte = Element::U8.code();
    vec![
        Operation::get(b"none"),
        Operation::put(b"new", b"1"),
        Operation::put(b"new", b"2"),
        Operation::call(Opcode::Update, b"new", ADD, byte, &[1]),
        Operation::call(Opcode::UpdateSame, b"new", ADD, byte, &[1]),
        Operation::call(Opcode::UpdateVector, b"new", ADD, byte, &[1]),
        Operation::call(Opcode::Update, b"none", ADD, byte, &[1]),
        Operation::delete(b"new"),
        Operation::delete(b"new"),
    ]
}

#[test]
fn changes_are_events() {
    let mut local = Local::new();
    local.now_ms = Some(1_000_000);
    local.effects.listened |= Class::New as u16 | Class::Miss as u16;
    Packet::of(&operations()).run_all(&mut local);
    let expected = [
        "keymiss none",
        "new new",
        "set new",
        "set new",
        "kv.update new",
        "kv.updatev new",
        "kv.updatev new",
        "del new",
    ];
    assert_eq!(local.events(), expected);
}

#[test]
fn transactions_that_watch_fail_and_clients_that_wait_are_looked_at() {
    for operation in operations().into_iter().skip(1) {
        let mut local = Local::new();
        (local.now_ms, local.effects.listened) = (Some(1_000_000), 0);
        local.line("SET new 1");
        let flag = Arc::new(AtomicBool::new(false));
        let shard = local.store.shard_mut(0);
        shard.watch(0, b"new", &flag);
        let waiter = Waiter {
            worker: 0,
            client: 1,
            kind: Kind::List,
            wakes_on_removal: true,
            is_told: false,
        };
        shard.wait(0, b"new", waiter);
        Packet::of(&[operation]).run_all(&mut local);
        let is_changed = operation.key == b"new";
        assert_eq!(flag.load(Ordering::Relaxed), is_changed, "{operation:?}");
        assert_eq!(local.effects.has_ready_keys, is_changed);
    }
}

#[test]
fn removals_before_an_operation_are_recorded() {
    let mut local = Local::new();
    (local.now_ms, local.effects.listened) = (Some(1_000_000), 0);
    local.effects.records = true;
    local.line("SET key 1 PX 10");
    local.now_ms = Some(1_000_010);
    Packet::of(&[Operation::get(b"key")]).run_all(&mut local);
    assert_eq!(local.effects.removed, [(0, b"key".to_vec())]);
}

#[test]
fn operations_have_the_words_of_commands() {
    let text = |operation: Operation<'_>| {
        let words = words(&operation);
        words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
    };
    let call = |opcode, function, element: Element, operand| {
        text(Operation::call(opcode, b"key", function, element.code(), operand))
    };
    assert_eq!(text(Operation::get(b"key")), "GET key");
    assert_eq!(text(Operation::put(b"key", b"\x01")), "SET key \\x01");
    assert_eq!(text(Operation::delete(b"key")), "DEL key");
    assert_eq!(text(Operation::functions()), "KV.FUNCTIONS");
    assert_eq!(text(Operation::hello(b"user", b"\0\0\0\0secret")), "HELLO");
    let clamp = 10;
    let operand = [0xFF, 0xFF, 2, 0];
    let (float, sigma) = (1.5_f32.to_le_bytes(), (-1_i64).to_le_bytes());
    let line = call(Opcode::Update, clamp, Element::I16, &operand);
    assert_eq!(line, "KV.UPDATE key clamp i16 -1 2");
    let line = call(Opcode::UpdateSame, ADD, Element::F32, &float);
    assert_eq!(line, "KV.UPDATEV key add f32 DELTA 0x3fc00000");
    let line = call(Opcode::UpdateVector, ADD, Element::U8, b"abc");
    assert_eq!(line, "KV.UPDATEV key add u8 DELTAS abc");
    let line = call(Opcode::Reduce, 32, Element::I8, &sigma);
    assert_eq!(line, "KV.REDUCE key sum i8 -1");
    assert_eq!(call(Opcode::Filter, 70, Element::U8, b""), "KV.FILTER key nonzero u8");
    // What will be refused is shown as it is.
    assert_eq!(call(Opcode::Update, 99, Element::U32, b"abc"), "KV.UPDATE key 99 u32 abc");
    let unknown = text(Operation::call(Opcode::Update, b"key", ADD, 77, b"abc"));
    assert_eq!(unknown, "KV.UPDATE key add 77 abc");
}
