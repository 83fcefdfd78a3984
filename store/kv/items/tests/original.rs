// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparisons with an installed memcached 1.6.18: replies to random requests, and what both count
//! meanwhile.

use super::client::Client;
use super::protocol::original::Server;
use super::requests::Requests;
use fastrand::Rng;
use freeport_kv_items::Options;
use freeport_testbed::{seed, usual_or_long};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Counters that both count alike.
const COUNTERS: [&str; 19] = [
    "cmd_get",
    "cmd_set",
    "cmd_touch",
    "cmd_flush",
    "get_hits",
    "get_misses",
    "delete_misses",
    "delete_hits",
    "incr_misses",
    "incr_hits",
    "decr_misses",
    "decr_hits",
    "cas_misses",
    "cas_hits",
    "cas_badval",
    "touch_hits",
    "touch_misses",
    "store_too_large",
    "total_items",
];

/// Sends bytes, and returns what comes up to an end.
fn ask(stream: &mut TcpStream, bytes: &[u8], end: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).expect("it is open");
    let (mut replies, mut piece) = (vec![], vec![0; 1 << 16]);
    while !replies.ends_with(end) {
        let count = stream.read(&mut piece).expect("it replies");
        assert!(count > 0, "it is open");
        replies.extend_from_slice(&piece[..count]);
    }
    replies
}

fn number_of(stats: &str, name: &str) -> u64 {
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.expect("it is counted").parse().expect("it is a number")
}

#[test]
#[ignore = "long: needs memcached 1.6.18"]
fn random_requests_have_the_replies_and_the_counts_of_the_original() {
    let Some(server) = Server::start() else { return };
    let mut stream = server.connect();
    // Otherwise another thread of the original may hold an item, and a number that becomes shorter
    // is not padded then.
    ask(&mut stream, b"lru mode flat\r\n", b"OK\r\n");
    let probe = ask(&mut stream, b"ms probe 0 c\r\n\r\n", b"\r\n");
    let probe = String::from_utf8(probe).expect("it is a line");
    let cas = probe.trim_end().strip_prefix("HD c").expect("a CAS number");
    let mut cas = cas.parse().expect("it is a number");
    ask(&mut stream, b"delete probe\r\nstats reset\r\n", b"RESET\r\n");
    let mut client = Client::new(Options { cas_before: cas, ..Options::default() });
    let mut requests = Requests { rng: Rng::with_seed(seed()), is_for_original: true };
    let mut count = 0;
    while count < usual_or_long(100_000, 2_000_000) {
        // One request at a time: while a reply with an item is not sent, the original changes no
        // number of it in place.
        let mut sent = vec![];
        requests.push(&mut sent, cas);
        count += 1;
        // The last CAS number, and an end that no value has.
        sent.extend_from_slice(
            format!("delete last noreply\r\nms last 0 c O{count}\r\n\r\n").as_bytes(),
        );
        let end = format!(" O{count}\r\n");
        let expected = ask(&mut stream, &sent, end.as_bytes());
        let got = client.receive(&sent);
        if got != expected {
            let at = got.iter().zip(&expected).take_while(|(a, b)| a == b).count();
            let shown = |bytes: &[u8]| {
                let to = bytes.len().min(at + 100);
                String::from_utf8_lossy(&bytes[at.saturating_sub(200).min(to)..to]).into_owned()
            };
            let sent = String::from_utf8_lossy(&sent).into_owned();
            panic!("{sent}\n{:?}\nnot\n{:?}", shown(&got), shown(&expected));
        }
        let text = String::from_utf8_lossy(&got);
        let last = text.trim_end().rsplit("HD c").next().expect("a reply");
        cas = last.split(' ').next().and_then(|cas| cas.parse().ok()).expect("a number");
    }
    let expected = ask(&mut stream, b"stats\r\n", b"END\r\n");
    let expected = String::from_utf8(expected).expect("it is text");
    let got = client.ask("stats\r\n");
    for name in COUNTERS {
        assert_eq!(number_of(&got, name), number_of(&expected, name), "{name}");
    }
}

#[test]
#[ignore = "long: needs memcached 1.6.18"]
fn operators_are_told_what_the_original_tells_them() {
    let Some(server) = Server::start() else { return };
    for line in [
        "version",
        "stats sizes",
        "stats x",
        "stats detail off",
        "stats detail dump",
        "stats cachedump 1",
        "stats cachedump 1 0",
        "stats cachedump 300 0",
        "stats extstore",
        "stats reset",
        "stats items",
        "slabs automove 1",
        "slabs automove 3",
        "slabs automove x",
        "slabs reassign 1 1",
        "slabs reassign x 1",
        "lru mode flat",
        "lru mode x",
        "lru temp_ttl 5",
        "lru temp_ttl -1",
        "lru tune 10 20 0.1 2",
        "lru tune 60 60 0.1 2",
        "lru tune 10 20 0 2",
        "lru_crawler sleep 100",
        "lru_crawler sleep x",
        "lru_crawler sleep 99999999",
        "lru_crawler tocrawl 5",
        "lru_crawler tocrawl x",
        "lru_crawler crawl x",
        "lru_crawler crawl 300",
        "lru_crawler metadump x",
        "lru_crawler x y",
        "cache_memlimit 64",
        "cache_memlimit 7",
        "verbosity 1",
        "extstore x",
        "shutdown",
    ] {
        let line = format!("{line}\r\n");
        let expected = String::from_utf8(server.ask(line.as_bytes(), false)).expect("it is text");
        assert_eq!(Client::default().ask(&line), expected, "{line}");
    }
}
