// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hashes, sets and HyperLogLogs.

use super::server::{Reply, Server};
use super::with_server;
use fastrand::Rng;
use freeport_kv_types::set::algebra;
use freeport_kv_types::{Entry, Extended, Hash, Limits, Set, hyperloglog};

fn name(random: &mut Rng, range: u32) -> String {
    let number = random.u32(0..range);
    if random.bool() { number.to_string() } else { format!("name {number}") }
}

fn value(random: &mut Rng) -> String {
    match random.u32(0..9) {
        0 => "v".repeat(random.usize(0..80)),
        1 => format!("{}", random.f64() * 100.0),
        2 => i64::MAX.to_string(),
        3 => "1e3".into(),
        _ => random.i32(-100..100).to_string(),
    }
}

fn hash_command(server: &mut Server, random: &mut Rng, limits: &Limits, hash: &mut Hash) {
    let (field, value) = (name(random, 90), value(random));
    let bytes = field.as_bytes();
    let (reply, expected): (Reply, Reply) = match random.u32(0..12) {
        0..4 => (
            server.call(&[&"HSET", &"h", &field, &value]),
            hash.set(limits, bytes, value.as_bytes()).into(),
        ),
        4 => (
            server.call(&[&"HSETNX", &"h", &field, &value]),
            hash.set_absent(limits, bytes, value.as_bytes()).into(),
        ),
        5 => (server.call(&[&"HDEL", &"h", &field]), hash.remove(bytes).into()),
        6 => (
            server.call(&[&"HGET", &"h", &field]),
            hash.view().get(bytes).map(Entry::to_vec).into(),
        ),
        7 => (
            server.call(&[&"HSTRLEN", &"h", &field]),
            hash.view().get(bytes).map_or(0, Entry::len).into(),
        ),
        8 => {
            let by = random.i64(-1000..1000);
            let reply = server.call(&[&"HINCRBY", &"h", &field, &by.to_string()]);
            (reply, hash.increment(limits, bytes, by).into())
        }
        9 => {
            let by = format!("{}", random.f64() - 0.5);
            let reply = server.call(&[&"HINCRBYFLOAT", &"h", &field, &by]);
            let by = Extended::parse(by.as_bytes()).expect("a number");
            (reply, hash.increment_float(limits, bytes, by).into())
        }
        10 => (server.call(&[&"HLEN", &"h"]), hash.view().len().into()),
        _ => {
            let found = hash.view().encoding();
            let name = (!hash.view().is_empty()).then(|| found.as_bytes().to_vec());
            (server.call(&[&"OBJECT", &"ENCODING", &"h"]), name.into())
        }
    };
    assert_eq!(reply, expected, "{field}, {value}");
    if hash.view().is_empty() {
        // A key without fields is removed, and begins anew as a small one.
        *hash = Hash::default();
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn hashes() {
    with_server(40, |server, random| {
        let limits = Limits { hash_entries: random.usize(1..130), ..Limits::default() };
        let entries = limits.hash_entries.to_string();
        server.call(&[&"CONFIG", &"SET", &"hash-max-listpack-entries", &entries]);
        let mut hash = Hash::default();
        for _ in 0..1000 {
            hash_command(server, random, &limits, &mut hash);
        }
        let mut reply = server.call(&[&"HGETALL", &"h"]).texts();
        let mut expected: Vec<_> = hash.view().iter().flatten().map(Entry::to_vec).collect();
        if hash.view().encoding() == "hashtable" {
            reply.sort();
            expected.sort();
        }
        assert_eq!(reply, expected);
    });
}

#[test]
#[ignore = "long: needs redis-server"]
fn sets() {
    with_server(40, |server, random| {
        let limits = Limits { set_integers: random.usize(1..60), ..Limits::default() };
        let most = limits.set_integers.to_string();
        server.call(&[&"CONFIG", &"SET", &"set-max-intset-entries", &most]);
        let mut sets: Vec<Set> = vec![Set::default(); 4];
        let range = random.u32(10..200);
        for _ in 0..600 {
            let (at, member) = (random.usize(0..4), name(random, range));
            // One of the sets has integers only.
            let member = if at == 0 { format!("{}", member.len() * 77) } else { member };
            let key = format!("s{at}");
            let (reply, expected): (Reply, Reply) = match random.u32(0..4) {
                0 => (server.call(&[&"SREM", &key, &member]), {
                    sets[at].remove(member.as_bytes()).into()
                }),
                1 => (server.call(&[&"SISMEMBER", &key, &member]), {
                    sets[at].view().contains(member.as_bytes()).into()
                }),
                _ => (server.call(&[&"SADD", &key, &member]), {
                    sets[at].add(&limits, member.as_bytes()).into()
                }),
            };
            assert_eq!(reply, expected, "{key} {member}");
        }
        let views: Vec<_> = sets.iter().map(Set::view).collect();
        let mut common = vec![];
        algebra::intersection(&views, 0, |member| common.push(member.to_vec()));
        let members = |set: Set| set.view().iter().map(Entry::to_vec).collect();
        let all = [
            ("SUNION", members(algebra::union(&views, &limits))),
            ("SDIFF", members(algebra::difference(&views, &limits))),
            ("SINTER", common),
        ];
        for (command, mut expected) in all {
            let mut reply = server.call(&[&command, &"s0", &"s1", &"s2", &"s3"]).texts();
            reply.sort();
            expected.sort();
            assert_eq!(reply, expected, "{command}");
        }
        let mut limited = 0usize;
        algebra::intersection(&views[..2], 3, |_| limited += 1);
        let reply = server.call(&[&"SINTERCARD", &"2", &"s0", &"s1", &"LIMIT", &"3"]);
        assert_eq!(reply, limited.into());
        let reply = server.call(&[&"SMEMBERS", &"s0"]).texts();
        let members: Vec<_> = views[0].iter().map(Entry::to_vec).collect();
        if views[0].encoding() == "intset" {
            assert_eq!(reply, members);
        }
    });
}

/// The stored strings are the same, byte by byte.
#[test]
#[ignore = "long: needs redis-server"]
fn hyperloglogs() {
    with_server(12, |server, random| {
        let limits = Limits { sparse_bytes: random.usize(50..4000), ..Limits::default() };
        let most = limits.sparse_bytes.to_string();
        server.call(&[&"CONFIG", &"SET", &"hll-sparse-max-bytes", &most]);
        let mut counted = [hyperloglog::new(), hyperloglog::new()];
        for key in ["p0", "p1"] {
            server.call(&[&"PFADD", &key]);
        }
        for _ in 0..random.usize(100..3000) {
            let (at, element) = (random.usize(0..2), name(random, 5000));
            let reply = server.call(&[&"PFADD", &format!("p{at}"), &element]);
            let added = hyperloglog::add(&limits, &mut counted[at], element.as_bytes());
            assert_eq!(reply, added.into());
        }
        for (at, bytes) in counted.iter_mut().enumerate() {
            let key = format!("p{at}");
            let count = hyperloglog::count(bytes);
            assert_eq!(server.call(&[&"PFCOUNT", &key]), count.into());
            hyperloglog::store_count(bytes, count.expect("valid")).expect("valid");
            assert_eq!(server.call(&[&"GET", &key]), bytes.clone().into());
        }
        let both: Vec<&[u8]> = counted.iter().map(Vec::as_slice).collect();
        let reply = server.call(&[&"PFCOUNT", &"p0", &"p1"]);
        assert_eq!(reply, hyperloglog::count_union(&both).into());
        let mut merged = hyperloglog::new();
        hyperloglog::merge(&limits, &mut merged, &both).expect("valid");
        server.call(&[&"PFMERGE", &"all", &"p0", &"p1"]);
        assert_eq!(server.call(&[&"GET", &"all"]), merged.into());
    });
}
