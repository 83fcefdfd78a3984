// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A full memory evicts what was not used for long, or refuses.

use super::client::Client;
use freeport_kv_items::Options;

const MEMORY_BYTES: usize = 8 << 20;

fn client(is_eviction_allowed: bool) -> Client {
    Client::new(Options { memory_bytes: MEMORY_BYTES, is_eviction_allowed, ..Options::default() })
}

fn set(key: &str, length: usize) -> String {
    format!("set {key} 0 0 {length}\r\n{}\r\n", "v".repeat(length))
}

#[test]
fn a_full_memory_evicts_what_was_not_used_for_long() {
    let mut client = client(true);
    let (hot, mut found_cold) = (500, 0);
    (0..hot).for_each(|number| _ = client.ask(&set(&format!("hot{number}"), 100)));
    for number in 0..200_000 {
        if number % 100 == 0 {
            client.now.0 += 1;
        }
        let replies =
            client.ask(&format!("{}get hot{}\r\n", set(&format!("k{number}"), 100), number % hot));
        assert!(replies.starts_with("STORED\r\n"), "{replies}");
    }
    let found_hot = (0..hot).filter(|number| client.ask(&format!("get hot{number}\r\n")).len() > 5);
    let found_hot = found_hot.count();
    for number in 0..1_000 {
        found_cold += usize::from(client.ask(&format!("get k{number}\r\n")).len() > 5);
    }
    assert!(found_hot > hot as usize * 9 / 10, "{found_hot} of {hot}");
    assert!(found_cold < 10, "{found_cold}");
    let evictions = client.stat("evictions");
    assert_eq!(client.items.len() as u64 + evictions, 200_000 + hot);
    assert!(client.stat("evicted_unfetched") > evictions * 9 / 10);
    // Most of the memory is in use.
    assert!(client.items.used_bytes() > MEMORY_BYTES * 9 / 10);
    assert!(client.items.used_bytes() <= MEMORY_BYTES);
}

#[test]
fn items_of_all_sizes_find_room() {
    let mut client = client(true);
    let mut random = fastrand::Rng::with_seed(7);
    let mut refused = 0;
    for number in 0..30_000 {
        let length =
            if number % 100 == 0 { random.usize(0..400_000) } else { random.usize(0..3_000) };
        client.now.0 += 1;
        let reply = client.ask(&set(&format!("key{}", number % 5_000), length));
        refused += usize::from(reply != "STORED\r\n");
    }
    // Memory in pieces may refuse a few of the largest.
    assert!(refused < 30, "{refused}");
    assert!(client.stat("evictions") > 1_000);
}

#[test]
fn items_of_another_size_take_the_place_of_others() {
    let mut client = client(true);
    for (length, count) in
        [(50, 100_000), (5_000, 5_000), (10, 200_000), (100_000, 300), (900, 20_000)]
    {
        let mut refused = 0;
        for number in 0..count {
            let reply = client.ask(&set(&format!("{length}:{number}"), length));
            refused += usize::from(reply != "STORED\r\n");
        }
        assert!(refused * 100 <= count, "{refused} of {count} with {length} bytes");
    }
}

#[test]
fn a_full_memory_without_eviction_refuses() {
    let mut client = client(false);
    let mut number = 0;
    while client.ask(&set(&format!("k{number}"), 1_000)) == "STORED\r\n" {
        number += 1;
    }
    assert!(number > MEMORY_BYTES / 1_200, "{number}");
    let refusal = "SERVER_ERROR out of memory storing object\r\n";
    assert_eq!(client.ask(&format!("add {}", &set("new", 1_000)[4..])), refusal);
    assert_eq!(client.ask(&set("new", 1_000).replace("set", "add")), refusal);
    assert_eq!(client.ask(&format!("ms new 1000\r\n{}\r\n", "v".repeat(1_000))), refusal);
    assert!(client.stat("store_no_memory") > 1);
    assert_eq!(client.stat("evictions"), 0);
    // A value that cannot be replaced is removed, so that nothing finds the old one.
    let larger = set("k0", 100_000);
    assert_eq!(client.ask(&larger), refusal);
    assert_eq!(client.ask("get k0\r\n"), "END\r\n");
    // A quiet request is refused without a reply, and removes as well.
    let quiet = set("k1", 100_000).replacen("\r\n", " noreply\r\n", 1);
    assert_eq!(client.ask(&quiet), "");
    assert_eq!(client.ask("get k1\r\n"), "END\r\n");
    // The removed items make room.
    assert_eq!(client.ask(&set("new", 900)), "STORED\r\n");
}

#[test]
fn expired_items_make_room_even_without_eviction() {
    let mut client = client(false);
    for number in 0..5_000 {
        client.ask(&set(&format!("k{number}"), 1_000).replacen(" 0 1000", " 10 1000", 1));
    }
    client.now.0 += 10;
    for number in 0..5_000 {
        assert_eq!(client.ask(&set(&format!("new{number}"), 1_000)), "STORED\r\n");
    }
    assert_eq!(client.stat("evictions"), 0);
    assert!(client.stat("reclaimed") > 2_000);
}

#[test]
fn a_lower_limit_is_kept() {
    let mut client = Client::new(Options { memory_bytes: 32 << 20, ..Options::default() });
    for number in 0..20_000 {
        client.ask(&set(&format!("k{number}"), 1_000));
    }
    assert!(client.items.used_bytes() > 16 << 20);
    assert_eq!(client.ask("cache_memlimit 16\r\n"), "OK\r\n");
    assert_eq!(client.ask(&set("k", 1_000)), "STORED\r\n");
    assert!(client.items.used_bytes() <= 16 << 20);
    assert_eq!(client.stat("limit_maxbytes"), 16 << 20);
    let failed = "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
    assert_eq!(client.ask("cache_memlimit 64\r\n"), failed);
}

#[test]
fn values_that_grow_too_long_are_not_stored() {
    let mut client = Client::default();
    client.ask(&set("k", 600_000));
    let more = "v".repeat(600_000);
    assert_eq!(client.ask(&format!("append k 0 0 600000\r\n{more}\r\n")), "NOT_STORED\r\n");
    let large = "v".repeat(1 << 20);
    let refusal = "SERVER_ERROR object too large for cache\r\n";
    assert_eq!(client.ask(&format!("add k 0 0 {}\r\n{large}\r\n", 1 << 20)), refusal);
    assert_eq!(client.ask("mg k s\r\n"), "HD s600000\r\n");
    assert_eq!(client.ask(&format!("set k 0 0 {}\r\n{large}\r\n", 1 << 20)), refusal);
    assert_eq!(client.ask("mg k s\r\n"), "EN\r\n");
    assert_eq!(client.stat("store_too_large"), 2);
}
