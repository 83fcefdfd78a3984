// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Items and time.

use super::client::{BEGIN, Client};
use freeport_kv_items::Now;

#[test]
fn an_item_expires_at_its_second() {
    let mut client = Client::default();
    assert_eq!(client.ask("set k 0 10 1\r\nv\r\n"), "STORED\r\n");
    client.now.0 += 9;
    assert_eq!(client.ask("mg k t v\r\n"), "VA 1 t1\r\nv\r\n");
    client.now.0 += 1;
    assert_eq!(client.ask("get k\r\n"), "END\r\n");
    assert_eq!(client.stat("get_expired"), 1);
    assert_eq!(client.stat("curr_items"), 0);
    // A time since 1970.
    let time = client.now.0 + 5;
    assert_eq!(client.ask(&format!("set k 0 {time} 1\r\nv\r\n")), "STORED\r\n");
    client.now.0 += 4;
    assert_eq!(client.ask("add k 0 0 1\r\nw\r\n"), "NOT_STORED\r\n");
    client.now.0 += 1;
    assert_eq!(client.ask("add k 0 0 1\r\nw\r\n"), "STORED\r\n");
}

#[test]
fn every_request_sees_that_an_item_has_expired() {
    for request in [
        "get k\r\n",
        "gat 5 k\r\n",
        "touch k 5\r\n",
        "incr k 1\r\n",
        "delete k\r\n",
        "append k 0 0 1\r\n1\r\n",
        "cas k 0 0 1 1\r\n1\r\n",
        "mg k\r\n",
        "mg k T5\r\n",
        "ma k\r\n",
        "md k\r\n",
        "me k\r\n",
        "ms k 1 MR\r\n1\r\n",
    ] {
        let mut client = Client::default();
        client.ask("set k 0 10 1\r\n5\r\n");
        client.now.0 += 10;
        let expected = Client::default().ask(request);
        assert_eq!(client.ask(request), expected, "{request}");
        assert_eq!(client.items.len(), 0, "{request}");
    }
}

#[test]
fn a_touched_item_lives_on() {
    let mut client = Client::default();
    client.ask("set k 0 10 1\r\nv\r\n");
    for request in ["touch k 10\r\n", "gat 10 k\r\n", "mg k T10\r\n", "md k I T10\r\n"] {
        client.ask(request);
        client.now.0 += 9;
        assert!(client.ask("mg k t\r\n").starts_with("HD t1"), "{request}");
    }
    client.ask("touch k 0\r\n");
    client.now.0 += 1_000_000;
    assert_eq!(client.ask("mg k s t l u\r\n"), "HD s1 t-1 l1000000 Z X\r\n");
}

#[test]
fn idle_time_counts_from_the_last_use() {
    let mut client = Client::default();
    client.ask("set k 0 0 1\r\n1\r\n");
    for (request, is_use) in [("get k\r\n", true), ("mg k u\r\n", false), ("incr k 1\r\n", true)] {
        client.now.0 += 7;
        client.ask(request);
        let expected = if is_use { "HD l0\r\n" } else { "HD l7\r\n" };
        assert_eq!(client.ask("mg k l u\r\n"), expected, "{request}");
    }
}

#[test]
fn all_items_are_removed_now_or_later() {
    let mut client = Client::default();
    client.ask("set k 0 0 1\r\n1\r\n");
    assert_eq!(client.ask("flush_all 10\r\nget k\r\n"), "OK\r\nVALUE k 0 1\r\n1\r\nEND\r\n");
    client.now.0 += 9;
    assert!(client.ask("get k\r\n").starts_with("VALUE"));
    client.now.0 += 1;
    assert_eq!(client.ask("get k\r\nset k 0 0 1\r\n1\r\n"), "END\r\nSTORED\r\n");
    client.now.0 += 100;
    assert!(client.ask("get k\r\n").starts_with("VALUE"), "only once");
    assert_eq!(client.ask("flush_all\r\nget k\r\n"), "OK\r\nEND\r\n");
    assert_eq!(client.stat("cmd_flush"), 2);
}

#[test]
fn expired_items_are_removed_without_a_request() {
    let mut client = Client::default();
    for number in 0..10_000 {
        let expiry = if number % 2 == 0 { 0 } else { number % 100 };
        client.ask(&format!("set key{number} 0 {expiry} 4\r\ntext\r\n"));
    }
    let mut removed = 0;
    for second in 0..100 {
        client.now = Now(BEGIN.0 + second);
        for _ in 0..200 {
            removed += client.items.expire_some(client.now, 50);
        }
    }
    assert_eq!(removed, 5_000);
    assert_eq!(client.items.len(), 5_000);
    assert_eq!(client.stat("crawler_reclaimed"), 5_000);
}
