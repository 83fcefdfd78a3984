// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bits of strings, and integers among them.

use crate::harness::Local;

#[test]
fn a_bit_that_stays_is_no_change() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("SETBIT b 100 0"), b":0\r\n");
    assert_eq!(local.line("STRLEN b"), b":13\r\n");
    assert_eq!(local.line("SETBIT b 100 0"), b":0\r\n");
    assert_eq!(local.line("SETBIT b 100 1"), b":0\r\n");
    assert_eq!(local.line("SETBIT b 100 1"), b":1\r\n");
    assert_eq!(local.line("GETBIT b 100"), b":1\r\n");
    assert_eq!(local.event_names(), ["setbit", "setbit"]);
}

#[test]
fn a_changed_bit_keeps_the_expiry() {
    let mut local = Local::with_shards(3);
    local.now_ms = Some(1_000);
    local.line("SET b x PXAT 5000");
    local.line("SETBIT b 0 1");
    local.line("SETBIT b 80 1");
    local.line("BITFIELD b SET u8 #20 7");
    assert_eq!(local.expires_ms(b"b"), Some(Some(5_000)));
    local.line("BITOP NOT b b");
    assert_eq!(local.expires_ms(b"b"), Some(None));
}

/// Redis 7.0 replies with a number if there is no such key; 7.2 does not.
#[test]
fn arguments_are_checked_before_the_key() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("BITCOUNT none 1"), b"-ERR syntax error\r\n");
    assert_eq!(local.line("BITCOUNT none 1 2 BITS"), b"-ERR syntax error\r\n");
    let not_an_integer = b"-ERR value is not an integer or out of range\r\n";
    assert_eq!(local.line("BITCOUNT none 1 x"), not_an_integer);
    assert_eq!(local.line("BITPOS none 1 x"), not_an_integer);
    assert_eq!(local.line("BITPOS none 1 0 1 BITS"), b"-ERR syntax error\r\n");
    local.line("RPUSH list x");
    assert_eq!(local.line("BITPOS list 1 0 1 BITS"), b"-ERR syntax error\r\n");
    assert_eq!(local.line("BITCOUNT list 1 x"), not_an_integer);
    assert_eq!(local.line("BITCOUNT none 0 -1 BIT"), b":0\r\n");
}

#[test]
fn an_empty_result_removes_the_target() {
    let mut local = Local::with_shards(3);
    local.line("MSET a abc b ab");
    assert_eq!(local.line("BITOP XOR c a b"), b":3\r\n");
    assert_eq!(local.line("GET c"), b"$3\r\n\0\0c\r\n");
    local.line("RPUSH list x");
    assert_eq!(local.line("BITOP OR list a"), b":3\r\n");
    assert_eq!(local.line("BITOP AND c none"), b":0\r\n");
    assert_eq!(local.line("BITOP AND c none"), b":0\r\n");
    assert_eq!(local.event_names(), ["set", "set", "set", "rpush", "set", "del"]);
}

/// Redis makes the string longer without an event, so that a transaction would not notice.
#[test]
fn a_longer_string_is_a_change() {
    let mut local = Local::with_shards(3);
    assert_eq!(local.line("BITFIELD f OVERFLOW FAIL SET u4 #2 16"), b"*1\r\n$-1\r\n");
    assert_eq!(local.line("STRLEN f"), b":2\r\n");
    assert_eq!(local.line("BITFIELD f OVERFLOW FAIL SET u4 #2 16"), b"*1\r\n$-1\r\n");
    assert_eq!(local.line("BITFIELD f SET u4 #2 15 GET u8 8"), b"*2\r\n:0\r\n:240\r\n");
    assert_eq!(local.line("BITFIELD f GET u4 #2"), b"*1\r\n:15\r\n");
    assert_eq!(local.event_names(), ["setbit", "setbit"]);
    let refused = b"-ERR BITFIELD_RO only supports the GET subcommand\r\n";
    assert_eq!(local.line("BITFIELD_RO f SET u4 0 1"), refused);
}
