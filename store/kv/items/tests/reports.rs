// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers to operators.

use super::client::Client;
use freeport_kv_items::{Items, Options, Statistics};

#[test]
fn all_items_are_listed() {
    let mut client = Client::default();
    assert_eq!(client.ask("lru_crawler metadump all\r\n"), "END\r\n");
    client.ask("set a%b 5 100 1\r\nx\r\nms AAE= 1 b\r\ny\r\nget a%b\r\nset gone 0 -1 1\r\nz\r\n");
    let list = client.ask("mn\r\nlru_crawler metadump hash\r\nmn\r\n");
    let mut lines: Vec<&str> = list.lines().collect();
    lines[1..3].sort_unstable();
    assert_eq!(
        lines,
        [
            "MN",
            "key=%00%01 exp=-1 la=1700000000 cas=2 fetch=no cls=1 size=62",
            "key=a%25b exp=1700000100 la=1700000000 cas=1 fetch=yes cls=1 size=67",
            "END",
            "MN",
        ]
    );
    for number in 0..20_000 {
        client.ask(&format!("set key{number} 0 0 1\r\n1\r\n"));
    }
    let list = client.ask("lru_crawler metadump all\r\n");
    assert_eq!(list.lines().count(), 20_003);
    let mut keys: Vec<&str> = list.lines().collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 20_003, "each once, since nothing changed");
    let some = client.ask("stats cachedump 1 10\r\n");
    assert_eq!(some.lines().count(), 11);
    let refused = Options { is_dump_allowed: false, ..Options::default() };
    let refused = Client::new(refused).ask("lru_crawler metadump all\r\n");
    assert_eq!(refused, "ERROR metadump not allowed\r\n");
}

#[test]
fn an_item_is_shown_for_people() {
    let mut client = Client::default();
    client.ask("set k 1 60 5\r\nvalue\r\n");
    client.now.0 += 3;
    assert_eq!(client.ask("me k\r\n"), "ME k exp=-57 la=3 cas=1 fetch=no cls=1 size=69\r\n");
}

#[test]
fn statistics_have_the_names_of_the_original() {
    let mut client = Client::default();
    client.items.server_mut().started = Some(client.now);
    client.items.server_mut().statistics.push(("curr_connections", "3".to_owned()));
    client.items.server_mut().settings.push(("tcpport", "11211".to_owned()));
    client.now.0 += 5;
    client.ask("set k 0 0 1\r\nv\r\nget k no\r\n");
    for (name, number) in [
        ("uptime", 5),
        ("curr_connections", 3),
        ("curr_items", 1),
        ("get_hits", 1),
        ("get_misses", 1),
        ("cmd_get", 2),
        ("limit_maxbytes", 64 << 20),
    ] {
        assert_eq!(client.stat(name), number, "{name}");
    }
    assert!(client.ask("stats settings\r\n").contains("STAT tcpport 11211\r\n"));
    assert!(client.ask("stats items\r\n").starts_with("STAT items:1:number 1\r\n"));
    assert!(client.ask("stats slabs\r\n").starts_with("STAT 1:used_chunks 1\r\n"));
    assert_eq!(client.ask("stats sizes\r\n"), "STAT sizes_status disabled\r\nEND\r\n");
    assert_eq!(client.ask("stats reset\r\n"), "RESET\r\n");
    assert_eq!((client.stat("cmd_get"), client.stat("curr_items")), (0, 1));
}

#[test]
fn statistics_of_workers_are_added() {
    let workers = [3, 5].map(|count| {
        let mut client = Client::default();
        (0..count).for_each(|key| _ = client.ask(&format!("set {key} 0 0 0\r\n\r\n")));
        client.items
    });
    let mut sum = Statistics::default();
    workers.iter().map(Items::statistics).for_each(|state| sum += state);
    assert_eq!((sum.items, sum.counters.cmd_set, sum.limit_bytes), (8, 8, 128 << 20));
}

#[test]
fn a_server_may_forbid_requests() {
    let options =
        Options { is_flush_allowed: false, is_shutdown_allowed: true, ..Options::default() };
    let mut client = Client::new(options);
    assert_eq!(client.ask("flush_all\r\n"), "CLIENT_ERROR flush_all not allowed\r\n");
    assert_eq!(client.ask("shutdown x\r\n"), "CLIENT_ERROR invalid shutdown mode\r\n");
    assert!(!client.is_closed);
    assert_eq!(client.ask("shutdown graceful\r\n"), "");
    assert!(client.is_closed);
}
