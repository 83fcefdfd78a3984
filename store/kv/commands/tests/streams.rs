// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams: waits, effects, and a full store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_commands::{Block, Waiter};
use freeport_kv_keyspace::Kind;
use freeport_kv_protocol::resp::Version;

use crate::harness::Local;

/// Replies to all lines.
fn lines<'a>(local: &mut Local, lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    lines.into_iter().map(|line| text(&local.line(line))).collect()
}

fn text(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply).trim_end().replace("\r\n", " ")
}

/// Names of the events since the last call.
fn events(local: &mut Local) -> Vec<&'static str> {
    std::mem::take(&mut local.effects.events).into_iter().map(|event| event.name).collect()
}

/// The wait of the last command.
fn block(local: &mut Local) -> Block {
    local.effects.block.take().expect("the command waits")
}

#[test]
fn entries_are_added_and_read() {
    let mut local = Local::with_shards(3);
    let replies = lines(&mut local, ["XADD s 1-1 a b", "XADD s 1-* c 7", "XLEN s", "XLEN none"]);
    assert_eq!(replies, ["$3 1-1", "$3 1-2", ":2", ":0"]);
    assert_eq!(text(&local.line("XRANGE s (1-1 +")), "*1 *2 $3 1-2 *2 $1 c $1 7");
    assert_eq!(text(&local.line("XREVRANGE s + - COUNT 1")), "*1 *2 $3 1-2 *2 $1 c $1 7");
    assert_eq!(text(&local.line("XREAD STREAMS s 1-1")), "*1 *2 $1 s *1 *2 $3 1-2 *2 $1 c $1 7");
    local.session.version = Version::Three;
    assert_eq!(text(&local.line("XREAD STREAMS s 1-1")), "%1 $1 s *1 *2 $3 1-2 *2 $1 c $1 7");
}

#[test]
fn reads_make_no_key() {
    let mut local = Local::with_shards(3);
    for line in [
        "XRANGE s - +",
        "XREAD STREAMS s 0",
        "XDEL s 1-1",
        "XTRIM s MAXLEN 0",
        "XADD s NOMKSTREAM 1-1 a b",
        "XACK s g x",
        "XSETID s 1",
        "XGROUP CREATE s g 0",
        "XADD s 0-0 a b",
    ] {
        local.line(line);
        assert_eq!(local.store.shards().map(|shard| shard.keys()).sum::<usize>(), 0, "{line}");
    }
    assert_eq!(local.effects.changes, 0);
}

#[test]
fn a_wait_for_several_streams_ends_with_an_entry_of_one() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    local.line("XADD a 5-1 x y");
    assert!(local.line("XREAD BLOCK 500 COUNT 9 STREAMS a b c $ $ 7-1").is_empty());
    let block = block(&mut local);
    assert_eq!((block.keys, block.kind), (vec![6, 7, 8], Kind::Stream));
    assert_eq!((block.deadline_ms, block.wakes_on_removal), (Some(1_500), false));
    let again = block.arguments.expect("some ids were relative");
    assert_eq!(again[9..], [b"5-1".to_vec(), b"0-0".to_vec(), b"7-1".to_vec()]);
    local.line("XADD b 1-1 x y");
    let again: Vec<&[u8]> = again.iter().map(Vec::as_slice).collect();
    assert_eq!(text(&local.call(&again)), "*1 *2 $1 b *1 *2 $3 1-1 *2 $1 x $1 y");
}

#[test]
fn a_wait_with_given_ids_executes_the_same_arguments_again() {
    let mut local = Local::new();
    assert!(local.line("XREAD BLOCK 0 STREAMS s 0").is_empty());
    let block = block(&mut local);
    assert_eq!((block.arguments, block.deadline_ms), (None, None));
}

#[test]
fn a_client_that_may_not_wait_gets_nothing() {
    let mut local = Local::new();
    local.session.may_block = false;
    assert_eq!(local.line("XREAD BLOCK 0 STREAMS s $"), b"*-1\r\n");
    assert_eq!(local.line("XREAD STREAMS s $"), b"*-1\r\n");
    assert_eq!(local.effects.block, None);
}

#[test]
fn a_member_waits_for_an_entry_or_the_end_of_its_group() {
    let mut local = Local::with_shards(3);
    let wait = "XREADGROUP GROUP g c BLOCK 0 STREAMS s >";
    assert!(text(&local.line(wait)).starts_with("-NOGROUP No such key 's' or consumer group 'g'"));
    local.line("XGROUP CREATE s g $ MKSTREAM");
    assert!(local.line(wait).is_empty());
    let first = block(&mut local);
    assert!(first.wakes_on_removal && first.arguments.is_none() && first.keys == [7]);
    local.line("XADD s 1-1 x y");
    assert_eq!(text(&local.line(wait)), "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 x $1 y");
    assert!(local.line(wait).is_empty());
    local.line("XGROUP DESTROY s g");
    assert!(text(&local.line(wait)).starts_with("-NOGROUP"));
}

#[test]
fn clients_that_wait_are_told_of_entries_and_lost_groups() {
    let mut local = Local::with_shards(3);
    local.line("XGROUP CREATE s g $ MKSTREAM");
    let shard = local.store.shard_of(b"s");
    let waiter =
        Waiter { worker: 0, client: 1, kind: Kind::Stream, wakes_on_removal: true, is_told: false };
    local.store.shard_mut(shard).wait(0, b"s", waiter);
    for (line, wakes) in [
        ("XADD s 1-1 a b", true),
        ("XREADGROUP GROUP g c STREAMS s >", false),
        ("XACK s g 1-1", false),
        ("XGROUP DESTROY s g", true),
        ("XGROUP DESTROY s g", false),
    ] {
        local.line(line);
        assert_eq!(std::mem::take(&mut local.effects.has_ready_keys), wakes, "{line}");
        let ready = local.store.shard_mut(shard).take_ready();
        assert_eq!(!ready.is_empty(), wakes, "{line}");
    }
}

#[test]
fn the_history_of_a_consumer_is_served_at_once() {
    let mut local = Local::new();
    local.line("XGROUP CREATE s g $ MKSTREAM");
    let history = "XREADGROUP GROUP g c BLOCK 0 STREAMS s 0";
    assert_eq!(text(&local.line(history)), "*1 *2 $1 s *0");
    lines(&mut local, ["XADD s 1-1 x y", "XREADGROUP GROUP g c STREAMS s >", "XDEL s 1-1"]);
    assert_eq!(text(&local.line(history)), "*1 *2 $1 s *1 *2 $3 1-1 *-1");
}

#[test]
fn events_are_those_that_redis_sends() {
    let mut local = Local::with_shards(3);
    let table: [(&str, &[&str]); 21] = [
        ("XADD s 1-1 a b", &["xadd"]),
        ("XADD s MAXLEN 1 2-1 a b", &["xadd", "xtrim"]),
        ("XADD s MAXLEN 9 3-1 a b", &["xadd"]),
        ("XTRIM s MAXLEN 9", &[]),
        ("XTRIM s MINID 3", &["xtrim"]),
        ("XDEL s 1-1", &[]),
        ("XGROUP CREATE s g 0", &["xgroup-create"]),
        ("XGROUP CREATE s g 0", &[]),
        ("XGROUP SETID s g 0", &["xgroup-setid"]),
        ("XREADGROUP GROUP g c STREAMS s >", &["xgroup-createconsumer"]),
        ("XREADGROUP GROUP g c STREAMS s >", &[]),
        ("XGROUP CREATECONSUMER s g c", &[]),
        ("XGROUP CREATECONSUMER s g d", &["xgroup-createconsumer"]),
        ("XCLAIM s g e 0 3-1", &["xgroup-createconsumer"]),
        ("XAUTOCLAIM s g f 0 0", &["xgroup-createconsumer"]),
        ("XACK s g 3-1", &[]),
        ("XGROUP DELCONSUMER s g none", &[]),
        ("XGROUP DELCONSUMER s g d", &["xgroup-delconsumer"]),
        ("XGROUP DESTROY s g", &["xgroup-destroy"]),
        ("XSETID s 9-9", &["xsetid"]),
        ("XDEL s 3-1", &["xdel"]),
    ];
    for (line, expected) in table {
        local.line(line);
        assert_eq!(events(&mut local), expected, "{line}");
    }
}

#[test]
fn a_change_of_a_group_does_not_fail_transactions() {
    let mut local = Local::new();
    let flag = Arc::new(AtomicBool::new(false));
    local.store.shard_mut(0).watch(0, b"s", &flag);
    let table = [
        ("XGROUP CREATE s g 0 MKSTREAM", true),
        ("XADD s 1-1 a b", true),
        ("XREADGROUP GROUP g c STREAMS s >", false),
        ("XCLAIM s g d 0 1-1", false),
        ("XACK s g 1-1", false),
        ("XGROUP DESTROY s g", false),
        ("XSETID s 5-5", false),
        ("XTRIM s MAXLEN 0", true),
    ];
    for (line, fails) in table {
        local.line(line);
        assert_eq!(flag.swap(false, Ordering::Relaxed), fails, "{line}");
    }
}

#[test]
fn a_claim_without_entries_counts_no_delivery() {
    let mut local = Local::new();
    lines(&mut local, ["XADD s 1-1 a b", "XGROUP CREATE s g 0"]);
    local.line("XREADGROUP GROUP g c STREAMS s >");
    assert_eq!(text(&local.line("XCLAIM s g d 0 1-1 JUSTID")), "*1 $3 1-1");
    local.now_ms = Some(0);
    assert_eq!(text(&local.line("XPENDING s g - + 9")), "*1 *4 $3 1-1 $1 d :0 :1");
    assert_eq!(text(&local.line("XAUTOCLAIM s g e 0 0 JUSTID")), "*3 $3 0-0 *1 $3 1-1 *0");
    assert_eq!(text(&local.line("XPENDING s g - + 9")), "*1 *4 $3 1-1 $1 e :0 :1");
    local.line("XCLAIM s g d 0 1-1");
    assert_eq!(text(&local.line("XPENDING s g - + 9")), "*1 *4 $3 1-1 $1 d :0 :2");
}

#[test]
fn a_full_store_takes_reads_of_groups_and_removals() {
    let mut local = Local::with_memory(1, 4 << 20);
    lines(&mut local, ["XGROUP CREATE s g 0 MKSTREAM", "XADD s 1-1 a b"]);
    let value = vec![b'v'; 4096];
    let full = loop {
        let reply = local.call(&[b"XADD", b"s", b"*", b"a", &value]);
        if reply[0] == b'-' {
            break text(&reply);
        }
    };
    assert!(full.starts_with("-OOM"), "{full}");
    let length = local.line("XLEN s");
    events(&mut local);
    for line in ["XADD s * a b", "XGROUP CREATE s h 0", "XGROUP CREATECONSUMER s g d"] {
        assert!(local.line(line).starts_with(b"-OOM"), "{line}");
    }
    assert_eq!((local.line("XLEN s"), events(&mut local)), (length, vec![]));
    let read = text(&local.line("XREADGROUP GROUP g c COUNT 1 STREAMS s >"));
    assert_eq!(read, "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 a $1 b");
    for (line, reply) in [
        ("XCLAIM s g d 0 1-1 JUSTID", "*1 $3 1-1"),
        ("XACK s g 1-1", ":1"),
        ("XDEL s 1-1", ":1"),
        ("XGROUP DELCONSUMER s g c", ":0"),
        ("XGROUP DESTROY s g", ":1"),
    ] {
        assert_eq!(text(&local.line(line)), reply, "{line}");
    }
    assert_ne!(text(&local.line("XTRIM s MAXLEN 1")), ":0");
    assert_ne!(local.line("XADD s * a b")[0], b'-');
}
