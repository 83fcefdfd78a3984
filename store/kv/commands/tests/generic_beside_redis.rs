// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys of any type beside redis-server: replies, events, and what is left.

use std::collections::BTreeSet;

use freeport_kv_commands::Call;
use freeport_kv_keyspace::ValueRef;
use freeport_kv_protocol::resp::{Value, Version};
use freeport_kv_types::list::End;
use freeport_kv_types::stream::NewId;
use freeport_kv_types::zset::AddOptions;
use freeport_kv_types::{Hash, Limits, List, Set, Stream, ZSet};
use freeport_testbed::usual_or_long;

use crate::harness::{Compared, Listener, Local, parsed};

/// Lines with odd words, in this order; both sides start with the keys of [`start`].
const LINES: &str = "\
DEL|DEL none|DEL s s|DEL a b|UNLINK|UNLINK l none|EXISTS|EXISTS h h none|TOUCH h z none|TOUCH
TYPE h|TYPE z|TYPE t|TYPE i|TYPE x|TYPE none|TYPE|TYPE h h|EXPIRE h|EXPIRE h x|EXPIRE h 9999 ZZ
EXPIRE h x ZZ|EXPIRE none x|EXPIRE none 10|EXPIRE h 9999 NX XX|EXPIRE h 9999 NX GT
EXPIRE h 9999 GT LT|EXPIRE h 9999 XX GT LT|EXPIRE h 9999 nx lt|EXPIRE h 9999 XX|EXPIRE h 9999 GT
EXPIRE h 9999 LT|EXPIRE h 1000000 GT|EXPIRE h 9999 GT|EXPIRE h 9999 NX|EXPIRE h 9999 XX LT
EXPIRE h 9223372036854775807|EXPIRE h 9223372036854775|EXPIRE h -9223372036854775808
PEXPIRE h 9223372036854775807|PEXPIRE h -9223372036854775808|EXISTS h|EXPIRE z 1e3|EXPIRE z 010
EXPIREAT z 9223372036854775807|EXPIREAT z 9223372036854776|EXPIREAT z 9223372036854775
PEXPIRETIME z|EXPIRETIME z|PEXPIREAT z 9223372036854775807|PEXPIRETIME z|EXPIRETIME z|PERSIST z
PERSIST z|PERSIST none|PERSIST|PEXPIREAT z 2000000000499|EXPIRETIME z|PEXPIREAT z 2000000000500
EXPIRETIME z|PEXPIREAT z 2000000000400 GT|PEXPIREAT z 2000000000500 GT
PEXPIREAT z 2000000000500 LT|PEXPIREAT z 2000000000501 GT|PEXPIREAT z 2000000000500 LT XX
PEXPIREAT z 1 GT|EXISTS z|PEXPIREAT z 1 LT|EXISTS z|EXPIREAT t -5|EXISTS t|EXPIREAT t 0
EXPIRE i 0|EXISTS i|TTL none|PTTL none|TTL x|PTTL x|EXPIRETIME none|PEXPIRETIME x|TTL|TTL x x
RENAME|RENAME x|RENAME none x|RENAME none none|RENAME x x|RENAME x y|RENAME y x|RENAMENX x x
RENAMENX none x|RENAMENX x long|RENAMENX x y|RENAMENX y x|RENAME x y z|EXISTS x y|COPY x
COPY none x|COPY x x|COPY none none|COPY x y|COPY x y|COPY x y REPLACE|COPY x y replace REPLACE
COPY x y DB|COPY x y DB x|COPY x y DB 16|COPY x y DB -1|COPY x y DB 99999999999|COPY x y ZZ
COPY x x DB 0|COPY x x DB 1|COPY x x DB 1|COPY x x DB 1 REPLACE|COPY none x DB 1
COPY x y REPLACE DB 2|COPY x x DB 3 DB 4 REPLACE|COPY x y DB 1.5|COPY none none DB x|MOVE|MOVE x
MOVE x x|MOVE x 0|MOVE none 0|MOVE none 1|MOVE x 1|MOVE y 2|MOVE y 16|MOVE y -1
MOVE y 99999999999|MOVE y 9223372036854775808|MOVE y 5|MOVE y 5|EXISTS y|OBJECT|OBJECT HELP
OBJECT HELP x|OBJECT ENCODING|OBJECT ENCODING none|OBJECT ENCODING s|OBJECT encoding long
OBJECT ENCODING x x|OBJECT REFCOUNT x|OBJECT REFCOUNT none|OBJECT FREQ none|OBJECT FREQ x
OBJECT IDLETIME none|OBJECT ZZ|OBJECT ZZ x|OBJECT ENCODING bigl|OBJECT ENCODING bigh
OBJECT ENCODING bigz|OBJECT ENCODING bigx|OBJECT ENCODING bigi|OBJECT ENCODING hh
OBJECT ENCODING zz|OBJECT ENCODING ii|MEMORY|MEMORY USAGE|MEMORY USAGE none
MEMORY USAGE none SAMPLES|MEMORY USAGE none SAMPLES -1|MEMORY USAGE none SAMPLES 0
MEMORY USAGE none SAMPLES x|MEMORY USAGE none ZZ 1|MEMORY ZZ
MEMORY USAGE none SAMPLES 1 SAMPLES 2|MEMORY USAGE none SAMPLES 1 ZZ|DBSIZE|DBSIZE x|KEYS
KEYS nothing|KEYS x y|KEYS x|KEYS [x]|KEYS lo*|KEYS l?ng|SCAN|SCAN x|SCAN -|SCAN 0x1|SCAN 1.5
SCAN 18446744073709551616|SCAN 0 MATCH|SCAN 0 COUNT 0|SCAN 0 COUNT -5|SCAN 0 COUNT x|SCAN 0 ZZ 5
SCAN 0 COUNT 5 MATCH|SCAN x COUNT x|SCAN 0 TYPE|SCAN 0 COUNT 1000 MATCH lo*
SCAN 0 COUNT 1000 MATCH none*|SCAN 0 COUNT 1000 TYPE stream MATCH bigs
SCAN 0 COUNT 1000 TYPE nothing|SCAN 0 COUNT 1000 TYPE STREAM|SCAN +0 COUNT 1000 MATCH zz
RANDOMKEY x|DUMP|DUMP none|DUMP x x|RESTORE|RESTORE new 0|RESTORE new 0 x
RESTORE new 0 xxxxxxxxxxxx|RESTORE x 0 bad|RESTORE new x bad|RESTORE new -1 bad|RESTORE x x bad
RESTORE new 0 bad ZZ|RESTORE new 0 bad IDLETIME|RESTORE new 0 bad IDLETIME -1
RESTORE new 0 bad IDLETIME x|RESTORE new 0 bad FREQ 256|RESTORE new 0 bad FREQ -1
RESTORE new 0 bad FREQ x|RESTORE new 0 bad FREQ 255|RESTORE new 0 bad FREQ 1 IDLETIME 1
RESTORE new 0 bad IDLETIME 1 FREQ 1|RESTORE new 0 bad IDLETIME 1 IDLETIME 2
RESTORE new 0 bad ABSTTL REPLACE|RESTORE x -1 bad REPLACE|RESTORE x 5 bad REPLACE FREQ|SWAPDB
SWAPDB 0|SWAPDB x 1|SWAPDB 0 x|SWAPDB 0 16|SWAPDB 16 0|SWAPDB -1 0|SWAPDB 99999999999 x
SWAPDB 0 99999999999|SWAPDB 0 0|SWAPDB 0 1|DBSIZE|SWAPDB 1 0|DBSIZE|SWAPDB 20 20|SWAPDB x x
DEBUG|DEBUG ZZ|DEBUG OBJECT|DEBUG OBJECT none|DEBUG ERROR|DEBUG ERROR text|DEBUG ERROR WRONGTYPE
DEBUG PROTOCOL string|DEBUG PROTOCOL integer|DEBUG PROTOCOL double|DEBUG PROTOCOL null
DEBUG PROTOCOL array|DEBUG PROTOCOL set|DEBUG PROTOCOL map|DEBUG PROTOCOL true
DEBUG PROTOCOL FALSE|DEBUG PROTOCOL verbatim|DEBUG PROTOCOL bignum|DEBUG PROTOCOL zz
DEBUG PROTOCOL push|DEBUG PROTOCOL attrib|DEBUG SET-ACTIVE-EXPIRE 1|DEBUG SET-ACTIVE-EXPIRE
DEBUG POPULATE|DEBUG POPULATE x|DEBUG POPULATE -1|DEBUG POPULATE 3|GET key:0|GET key:2|GET key:3
DEBUG POPULATE 2 p|GET p:1|DEBUG POPULATE 2 q 12|GET q:1|DEBUG POPULATE 1 r 2|GET r:0
DEBUG POPULATE 1 r x|DEBUG POPULATE 1 r -1|DEBUG POPULATE 1 r 1 1|DBSIZE|FLUSHDB ZZ
FLUSHDB SYNC ASYNC|FLUSHALL ZZ|FLUSHDB ASYNC|DBSIZE|FLUSHALL sync|FLUSHDB|FLUSHALL|RANDOMKEY
SCAN 0|KEYS *|DEBUG DIGEST|DEBUG DIGEST-VALUE|DEBUG DIGEST-VALUE none x|DEBUG DIGEST x";

/// A value of a type with a number of elements, on both sides.
fn make(compared: &mut Compared, kind: u8, key: &str, elements: u32) {
    let texts: Vec<String> = (0..elements)
        .map(|number| if kind == b'i' { number.to_string() } else { format!("{key}-{number}") })
        .collect();
    let name = match kind {
        b's' => {
            compared.same(&format!("SET {key} {}", texts.concat()));
            return;
        }
        b'l' => "RPUSH",
        b'h' => "HSET",
        b'z' => "ZADD",
        b't' => "XADD",
        _ => "SADD",
    };
    let mut arguments: Vec<&[u8]> = vec![name.as_bytes(), key.as_bytes()];
    for text in &texts {
        match kind {
            b'h' => arguments.extend([text.as_bytes(), b"value"]),
            b'z' => arguments.extend([&b"1"[..], text.as_bytes()]),
            b't' => {
                arguments.extend([&b"*"[..], b"field", text.as_bytes()]);
                compared.redis.call(&arguments);
                arguments.truncate(2);
            }
            _ => arguments.push(text.as_bytes()),
        }
    }
    if kind != b't' {
        compared.redis.call(&arguments);
    }
    make_ours(&mut compared.ours, kind, key, &texts);
}

fn make_ours(local: &mut Local, kind: u8, key: &str, texts: &[String]) {
    let (mut output, key) = (vec![], key.as_bytes());
    let parts = (&mut local.store, &mut local.effects);
    let mut call = Call::new(&[], local.session, parts, 1_700_000_000_000, &mut output);
    let database = &mut call.database;
    let texts = texts.iter().map(String::as_bytes);
    let done = match kind {
        b'l' => database.change(key, |list: &mut List, limits: &Limits| {
            texts.for_each(|text| list.push(limits, End::Back, text));
        }),
        b'h' => database.change(key, |hash: &mut Hash, limits: &Limits| {
            for text in texts {
                hash.set(limits, text, b"value");
            }
        }),
        b'z' => database.change(key, |set: &mut ZSet, limits: &Limits| {
            for text in texts {
                set.add(limits, text, 1.0, AddOptions::default()).expect("a number");
            }
        }),
        b't' => database.change(key, |stream: &mut Stream, limits: &Limits| {
            for text in texts {
                stream.add(limits, NewId::Auto, &[b"field", text], 5).expect("ids ascend");
            }
        }),
        _ => database.change(key, |set: &mut Set, limits: &Limits| {
            for text in texts {
                set.add(limits, text);
            }
        }),
    };
    done.expect("there is memory");
    database.touch_watchers(key);
}

/// The keys that [`LINES`] name.
fn start(compared: &mut Compared) {
    for key in ["s", "l", "h", "z", "t", "i", "x"] {
        make(compared, key.as_bytes()[0], key, 3);
    }
    for (key, kind) in [("bigl", b'l'), ("bigh", b'h'), ("bigz", b'z'), ("bigx", b'x')] {
        make(compared, kind, key, 2_000);
    }
    make(compared, b'i', "bigi", 600);
    make(compared, b't', "bigs", 300);
    for key in ["hh", "zz", "ii"] {
        make(compared, key.as_bytes()[0], key, 5);
    }
    make(compared, b's', "long", 30);
}

#[test]
#[ignore = "long: needs redis-server"]
fn replies_to_odd_lines_are_those_of_redis() {
    for version in [Version::Two, Version::Three] {
        Compared::once(|compared| {
            compared.ours = Local::with_shards(3);
            compared.use_version(version);
            start(compared);
            let mut listener = compared.listener();
            compared.ours.events();
            for line in LINES.split(['|', '\n']) {
                let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                let (ours, theirs) = compared.both(&arguments);
                let shown = (ours.escape_ascii(), theirs.escape_ascii());
                assert!(ours == theirs, "{line}\n ours:  {}\n redis: {}", shown.0, shown.1);
                // Strings are another family, which has its own events.
                assert_eq!(compared.ours.events(), listener.events(), "{line}");
            }
        });
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Status(text) | Value::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("no text: {other:?}"),
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn random_commands_have_the_replies_and_events_of_redis() {
    Compared::for_seeds(usual_or_long(4, 20), |compared, random| {
        compared.ours = Local::with_shards(random.usize(1..4));
        let version = if random.bool() { Version::Three } else { Version::Two };
        compared.use_version(version);
        compared.select(0);
        let mut listener = compared.listener();
        compared.ours.events();
        for _ in 0..usual_or_long(30_000, 100_000) {
            step(compared, &mut listener, random);
        }
        for number in 0..3 {
            compared.select(number);
            same_keys(compared);
        }
    });
}

fn key(random: &mut fastrand::Rng) -> String {
    ["a", "b", "c", "d", "{a}e", "f", "", "k"][random.usize(0..8)].to_owned()
}

/// A time of expiry, far from now.
fn time(random: &mut fastrand::Rng) -> i64 {
    match random.u8(0..8) {
        0 => random.i64(-10..10),
        1 => random.i64(..),
        _ => 4_000_000_000_000 + random.i64(0..6) * 500,
    }
}

fn step(compared: &mut Compared, listener: &mut Listener, random: &mut fastrand::Rng) {
    let (one, other) = (key(random), key(random));
    let database = random.u8(0..4);
    let line = match random.u8(0..30) {
        0..5 => {
            compared.same(&format!("DEL {one}"));
            let elements = if random.u8(0..50) == 0 { 700 } else { random.u32(1..4) };
            make(compared, b"slhztix"[random.usize(0..7)], &one, elements);
            compared.ours.events();
            listener.events();
            return;
        }
        5 => format!("DEL {one} {other}"),
        6 => format!("EXISTS {one} {other}"),
        7 => format!("TYPE {one}"),
        8..12 => {
            let options = ["", "", " NX", " XX", " GT", " LT", " XX GT", " LT XX", " NX LT"];
            let option = options[random.usize(0..options.len())];
            let name = ["EXPIREAT", "PEXPIREAT"][random.usize(0..2)];
            format!("{name} {one} {}{option}", time(random))
        }
        12 => format!("PERSIST {one}"),
        13 => format!("EXPIRETIME {one}"),
        14 => format!("PEXPIRETIME {one}"),
        15 | 16 => format!("RENAME {one} {other}"),
        17 => format!("RENAMENX {one} {other}"),
        18 => format!("COPY {one} {other}"),
        19 => format!("COPY {one} {other} DB {database} REPLACE"),
        20 => format!("MOVE {one} {database}"),
        21 => "DBSIZE".to_owned(),
        22 => return dump(compared, listener, random, &one, &other),
        23 => return same_keys(compared),
        24 if random.u8(0..10) == 0 => format!("SWAPDB {database} {}", random.u8(0..4)),
        24 if random.u8(0..30) == 0 => "FLUSHDB".to_owned(),
        25 => {
            compared.select(random.u16(0..3));
            return;
        }
        26 => return random_key(compared),
        27 => format!("EXPIRE {one} {}", [-1, 0, i64::MAX][random.usize(0..3)]),
        28 => format!("UNLINK {one}"),
        _ => format!("TOUCH {one}"),
    };
    compared.same(&line);
    assert_eq!(compared.ours.events(), listener.events(), "{line}");
}

/// Each side restores what it dumped.
fn dump(
    compared: &mut Compared,
    listener: &mut Listener,
    random: &mut fastrand::Rng,
    from: &str,
    to: &str,
) {
    let (ours, theirs) = compared.both(&[b"DUMP", from.as_bytes()]);
    let (Value::Bulk(ours), Value::Bulk(theirs)) = (parsed(&ours), parsed(&theirs)) else {
        assert_eq!(parsed(&ours), parsed(&theirs));
        return;
    };
    let (ttl, options): (String, &[&[u8]]) = match random.u8(0..4) {
        0 => ("0".to_owned(), &[]),
        1 => ("0".to_owned(), &[b"REPLACE"]),
        2 => ("0".to_owned(), &[b"REPLACE", b"IDLETIME", b"5"]),
        _ => (time(random).max(0).to_string(), &[b"ABSTTL", b"REPLACE"]),
    };
    let line =
        |payload| [&[&b"RESTORE"[..], to.as_bytes(), ttl.as_bytes(), payload], options].concat();
    assert_eq!(compared.ours.call(&line(&ours)), compared.redis.call(&line(&theirs)));
    assert_eq!(compared.ours.events(), listener.events(), "RESTORE {to} {ttl}");
}

fn random_key(compared: &mut Compared) {
    let (ours, theirs) = compared.both(&[b"RANDOMKEY"]);
    let (ours, theirs) = (parsed(&ours), parsed(&theirs));
    assert_eq!(ours == Value::Null, theirs == Value::Null);
    if let Value::Bulk(key) = ours {
        assert_eq!(compared.redis.call(&[b"EXISTS", &key]), b":1\r\n");
    }
}

/// Both have the same keys, by KEYS and by SCAN, with the same types, times and contents.
fn same_keys(compared: &mut Compared) {
    let keys = compared.same_in_any_order("KEYS *");
    let Value::Array(keys) = keys else { panic!("no array") };
    let scanned = match parsed(&compared.ours.line("SCAN 0 COUNT 100000")) {
        Value::Array(mut parts) => parts.pop(),
        other => panic!("no array: {other:?}"),
    };
    let Some(Value::Array(scanned)) = scanned else { panic!("no keys") };
    let sorted = |keys: &[Value]| keys.iter().map(text).collect::<BTreeSet<_>>();
    assert_eq!((sorted(&keys), keys.len()), (sorted(&scanned), scanned.len()));
    for key in sorted(&keys) {
        compared.same(&format!("TYPE {key}"));
        compared.same(&format!("PEXPIRETIME {key}"));
        same_contents(compared, &key);
    }
}

fn same_contents(compared: &mut Compared, key: &str) {
    let shard = compared.ours.store.shard_of(key.as_bytes());
    let database = compared.ours.store.shard(shard).database(compared.ours.session.database);
    let value = database.and_then(|database| database.value(key.as_bytes(), 0));
    let (line, ours): (&[&[u8]], Vec<Vec<u8>>) = match value.expect("both have the key") {
        ValueRef::String(text) => (&[b"GET"], vec![text.to_vec()]),
        ValueRef::List(list) => {
            (&[b"LRANGE", b"0", b"-1"], list.iter().map(|it| it.to_vec()).collect())
        }
        ValueRef::Hash(hash) => {
            (&[b"HKEYS"], hash.iter().map(|[field, _]| field.to_vec()).collect())
        }
        ValueRef::Set(set) => (&[b"SMEMBERS"], set.iter().map(|it| it.to_vec()).collect()),
        ValueRef::SortedSet(_) | ValueRef::Stream(_) => return,
    };
    let arguments = [&line[..1], &[key.as_bytes()], &line[1..]].concat();
    let theirs = match parsed(&compared.redis.call(&arguments)) {
        Value::Array(values) | Value::Set(values) => values.iter().map(text).collect(),
        value => BTreeSet::from([text(&value)]),
    };
    let ours: BTreeSet<String> =
        ours.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    assert_eq!(ours, theirs, "{key}");
}
