// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies of stream commands to odd arguments, beside redis-server.

use freeport_kv_protocol::resp::{Value, Version};

use crate::harness::{Compared, Local, parsed};

/// Both reply the same, apart from times and numbers that depend on the nodes.
#[track_caller]
pub fn same_but_times(compared: &mut Compared, arguments: &[&[u8]]) {
    let depends_on_time = match arguments[0].to_ascii_uppercase().as_slice() {
        b"XPENDING" => arguments.len() > 3,
        b"XINFO" => true,
        _ => false,
    };
    if !depends_on_time {
        compared.same_arguments(arguments);
        return;
    }
    let (ours, theirs) = compared.both(arguments);
    let settled = |reply: &[u8]| match arguments[0] {
        b"XPENDING" => without_idle_times(parsed(reply)),
        _ => without_times(parsed(reply)),
    };
    let line: Vec<_> = arguments.iter().map(|word| word.escape_ascii().to_string()).collect();
    let (ours, theirs) = (settled(&ours), settled(&theirs));
    assert!(ours == theirs, "{}\n ours:\n{ours}\n redis:\n{theirs}", line.join(" "));
}

fn without_idle_times(reply: Value) -> Value {
    let Value::Array(mut entries) = reply else { return reply };
    for entry in &mut entries {
        if let Value::Array(parts) = entry {
            parts[2] = Value::Null;
        }
    }
    Value::Array(entries)
}

/// Leaves out what depends on the clock or on the server's tree, and what Redis 7.0 does not have.
fn without_times(value: Value) -> Value {
    match value {
        Value::Array(parts) if is_map(&parts) => {
            let mut pairs = vec![];
            let mut parts = parts.into_iter();
            while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
                pairs.push((name, value));
            }
            let kept = pairs.into_iter().filter_map(entry_without_times);
            Value::Array(kept.flat_map(|(name, value)| [name, value]).collect())
        }
        Value::Array(parts) => Value::Array(parts.into_iter().map(without_times).collect()),
        Value::Map(pairs) => {
            Value::Map(pairs.into_iter().filter_map(entry_without_times).collect())
        }
        other => other,
    }
}

/// An array is a map in version 2.
fn is_map(parts: &[Value]) -> bool {
    let first = parts.first();
    [&b"name"[..], b"length"].iter().any(|name| first == Some(&Value::Bulk(name.to_vec())))
}

fn entry_without_times((name, value): (Value, Value)) -> Option<(Value, Value)> {
    let Value::Bulk(text) = &name else { return Some((name, value)) };
    let value = match text.as_slice() {
        b"idle" | b"seen-time" | b"radix-tree-keys" | b"radix-tree-nodes" => Value::Null,
        b"inactive" | b"active-time" => return None,
        b"entries" | b"first-entry" | b"last-entry" => value,
        b"pending" => without_delivery_times(value),
        _ => without_times(value),
    };
    Some((name, value))
}

fn without_delivery_times(pending: Value) -> Value {
    let Value::Array(mut entries) = pending else { return pending };
    for entry in &mut entries {
        if let Value::Array(parts) = entry {
            let time = parts.len() - 2;
            parts[time] = Value::Null;
        }
    }
    Value::Array(entries)
}

/// A stream `s` with two groups, and a string `string`.
const PREPARED: &str = "
    SET string value
    XADD s 1-1 a 1 b 2
    XADD s 1-2 a x b y
    XADD s 2-0 c -7
    XADD s 3-5 a 1 a 1
    XADD s 4-0 field 18446744073709551615
    XGROUP CREATE s g 0
    XGROUP CREATE s h $ ENTRIESREAD 5
    XGROUP CREATECONSUMER s g alice
    XGROUP CREATECONSUMER s g bob
    XGROUP CREATECONSUMER s h alice
    XGROUP CREATECONSUMER s g a
    XREADGROUP GROUP g alice COUNT 2 STREAMS s >
    XREADGROUP GROUP g bob COUNT 2 STREAMS s >
    XDEL s 1-2";

/// Commands in this order. `~~` is a word without bytes.
const TABLE: &str = "
    XADD s
    XADD s *
    XADD s * a
    XADD s * a b c
    XADD s 0-0 a
    XADD s 0-0 a b
    XADD s 0 a b
    XADD s 0-* a b
    XADD s x a b
    XADD s ~~ a b
    XADD s 1-x a b
    XADD s 5-** a b
    XADD s + a b
    XADD s - a b
    XADD s 4-0 a b
    XADD s 3-* a b
    XADD s 4-* a b
    XADD s 18446744073709551616 a b
    XADD string 5-0 a b
    XADD string 0-0 a b
    XADD string NOMKSTREAM 5-0 a b
    XADD none NOMKSTREAM 5-0 a b
    XADD none nomkstream NOMKSTREAM * a b
    XADD s MAXLEN 5-0 a b
    XADD s MAXLEN
    XADD s MAXLEN = 9
    XADD s MAXLEN x 5-0 a b
    XADD s MAXLEN -1 5-0 a b
    XADD s MAXLEN ~ -1 5-0 a b
    XADD s MAXLEN = 3 MINID 4 5-0 a b
    XADD s MINID 3 MAXLEN 4 5-0 a b
    XADD s MAXLEN 3 MAXLEN 4 5-0 a b
    XADD s MINID x 5-0 a b
    XADD s MINID - 5-0 a b
    XADD s LIMIT 5 5-0 a b
    XADD s LIMIT 0 5-0 a b
    XADD s LIMIT x 5-0 a b
    XADD s LIMIT -1 5-0 a b
    XADD s MAXLEN 100 LIMIT 5 5-0 a b
    XADD s MAXLEN = 100 LIMIT 0 5-0 a b
    XADD s MAXLEN ~ 100 LIMIT 5 5-0 a b
    XADD s LIMIT 5 MAXLEN ~ 100 6-0 a b
    XADD s MAXLEN 100 LIMIT
    XADD s MINID ~ 0 NOMKSTREAM 7-0 a b
    XADD s MAXLEN 6 8-0 a b
    XADD s maxlen = 6 8-1 a b
    XLEN s
    XLEN none
    XLEN string
    XLEN
    XTRIM s MAXLEN
    XTRIM s LIMIT 5
    XTRIM s LIMIT 0
    XTRIM s MAXLEN 100 LIMIT 3
    XTRIM s MAXLEN 100 x
    XTRIM s NOMKSTREAM MAXLEN 100
    XTRIM s MAXLEN ~ 100 LIMIT 3
    XTRIM s MAXLEN ~ 100 LIMIT -3
    XTRIM s MAXLEN = x
    XTRIM s MINID = x
    XTRIM s MINID 1 MAXLEN 4
    XTRIM string MAXLEN x
    XTRIM string MAXLEN 5
    XTRIM none MAXLEN 5
    XTRIM none x 5
    XTRIM s MAXLEN 5
    XTRIM s MINID 2
    XRANGE s - +
    XRANGE s + -
    XRANGE s 2 4
    XRANGE s (2 (4
    XRANGE s (2-0 (4-0
    XRANGE s ( +
    XRANGE s (- +
    XRANGE s - (+
    XRANGE s (18446744073709551615-18446744073709551615 +
    XRANGE s - (0-0
    XRANGE s - + COUNT
    XRANGE s - + COUNT 2
    XRANGE s - + COUNT 0
    XRANGE s - + COUNT -5
    XRANGE s - + COUNT x
    XRANGE s - + COUNT 1 COUNT 3
    XRANGE s - + LIMIT 1
    XRANGE s - + COUNT 2 x
    XRANGE none - + COUNT 0
    XRANGE none - x
    XRANGE string - +
    XRANGE string x +
    XREVRANGE s + -
    XREVRANGE s - +
    XREVRANGE s 4 2 COUNT 2
    XREVRANGE s (4 (2 count 1
    XREVRANGE s + - COUNT 0
    XREVRANGE s + (18446744073709551615-18446744073709551615
    XREVRANGE none + -
    XREAD STREAMS s 0
    XREAD STREAMS s
    XREAD STREAMS s none 0 0
    XREAD STREAMS none s 0 3
    XREAD STREAMS none 0
    XREAD STREAMS s $
    XREAD STREAMS s +
    XREAD STREAMS s -
    XREAD STREAMS s x
    XREAD STREAMS s >
    XREAD STREAMS string 0
    XREAD STREAMS string x
    XREAD STREAMS s string x 0
    XREAD COUNT 2 STREAMS s s 0 3
    XREAD COUNT 0 STREAMS s 4
    XREAD COUNT -3 STREAMS s 4
    XREAD COUNT x STREAMS s 0
    XREAD COUNT 2 COUNT 1 STREAMS s 0
    XREAD BLOCK x STREAMS s 0
    XREAD BLOCK -1 STREAMS s 0
    XREAD BLOCK 1.5 STREAMS s 0
    XREAD BLOCK 0 STREAMS s 0
    XREAD COUNT 1 BLOCK
    XREAD COUNT 1 STREAMS
    XREAD GROUP g c STREAMS s 0
    XREAD NOACK STREAMS s 0
    XREAD x STREAMS s 0
    XREAD COUNT 1 BLOCK 1 COUNT
    XREADGROUP GROUP g alice STREAMS s 0
    XREADGROUP GROUP g alice STREAMS s 1-1
    XREADGROUP GROUP g alice COUNT 1 STREAMS s 0
    XREADGROUP GROUP g bob STREAMS s s 0 >
    XREADGROUP GROUP g bob STREAMS s s > >
    XREADGROUP GROUP g bob STREAMS s >
    XREADGROUP GROUP g bob STREAMS s $
    XREADGROUP GROUP g bob STREAMS s +
    XREADGROUP GROUP g bob STREAMS s x
    XREADGROUP GROUP none bob STREAMS s x
    XREADGROUP GROUP g bob STREAMS none >
    XREADGROUP GROUP g bob STREAMS string >
    XREADGROUP GROUP g bob STREAMS s none 0 0
    XREADGROUP GROUP g bob NOACK COUNT 1 STREAMS s >
    XREADGROUP COUNT 1 NOACK STREAMS s s 0 0
    XREADGROUP NOACK NOACK NOACK NOACK NOACK NOACK
    XREADGROUP GROUP g bob COUNT 1 STREAMS
    XREADGROUP STREAMS s s s s s s
    XREADGROUP GROUP g bob COUNT x STREAMS s >
    XREADGROUP GROUP g bob BLOCK x STREAMS s >
    XREADGROUP GROUP g bob STREAMS s 18446744073709551615-18446744073709551615
    XREADGROUP GROUP g bob STREAMS s 18446744073709551615-18446744073709551614
    XPENDING s
    XPENDING s g
    XPENDING s h
    XPENDING s none
    XPENDING none g
    XPENDING string g
    XPENDING string g - + x
    XPENDING s g -
    XPENDING s g - +
    XPENDING s g - + 10
    XPENDING s g - + 10 bob
    XPENDING s g - + 10 nobody
    XPENDING s g - + 10 bob more
    XPENDING s g - + 10 bob more more
    XPENDING s g - + 10 bob more more more
    XPENDING s g - + 0
    XPENDING s g - + -1
    XPENDING s g - + x
    XPENDING s g x + x
    XPENDING s g x + 1
    XPENDING s g - x 1
    XPENDING s g (1-1 (3 5
    XPENDING s g (18446744073709551615-18446744073709551615 + 5
    XPENDING s g - (0-0 5
    XPENDING s g IDLE 0 - + 10
    XPENDING s g IDLE -5 - + 10
    XPENDING s g IDLE 1000000000 - + 10
    XPENDING s g idle 0 - + 10 bob
    XPENDING s g IDLE x - + 10
    XPENDING s g IDLE 0 -
    XPENDING s g IDLE 0 - +
    XCLAIM none g bob 0 1-1
    XCLAIM s none bob 0 1-1
    XCLAIM string g bob 0 1-1
    XCLAIM none g bob x 1-1
    XCLAIM s g bob x 1-1
    XCLAIM s g bob -1 1-1
    XCLAIM s g bob 0 1-1 1-2 9-9
    XCLAIM s g bob 0 x
    XCLAIM s g bob 0 1-1 x 2-0
    XCLAIM s g bob 0 1-1 - 2-0
    XCLAIM s g bob 1000000000 1-1
    XCLAIM s g alice 0 1-1 JUSTID
    XCLAIM s g alice 0 1-1 IDLE x
    XCLAIM s g alice 0 1-1 IDLE
    XCLAIM s g alice 0 1-1 TIME x
    XCLAIM s g alice 0 1-1 RETRYCOUNT x
    XCLAIM s g alice 0 1-1 LASTID x
    XCLAIM s g alice 0 1-1 IDLE 1000 TIME -1 RETRYCOUNT 7 FORCE JUSTID LASTID 3-0
    XCLAIM s g alice 0 1-1 RETRYCOUNT -2
    XPENDING s g - + 10
    XCLAIM s h alice 0 1-1 FORCE
    XCLAIM s h alice 0 1-1 FORCE JUSTID
    XCLAIM s h alice 0 9-9 FORCE
    XCLAIM s h alice 0 JUSTID
    XPENDING s h - + 10
    XAUTOCLAIM none g bob 0 0
    XAUTOCLAIM s none bob 0 0
    XAUTOCLAIM string g bob 0 0
    XAUTOCLAIM string g bob x 0
    XAUTOCLAIM s g bob x 0
    XAUTOCLAIM s g bob -1 x
    XAUTOCLAIM s g bob 0 x
    XAUTOCLAIM s g bob 0 (18446744073709551615-18446744073709551615
    XAUTOCLAIM s g bob 0 0 COUNT
    XAUTOCLAIM s g bob 0 0 COUNT 0
    XAUTOCLAIM s g bob 0 0 COUNT -1
    XAUTOCLAIM s g bob 0 0 COUNT x
    XAUTOCLAIM s g bob 0 0 COUNT 9223372036854775807
    XAUTOCLAIM s g bob 0 0 x
    XAUTOCLAIM s g bob 0 0 COUNT 1
    XAUTOCLAIM s g bob 0 (1-1 COUNT 1 JUSTID
    XAUTOCLAIM s g bob 1000000000 - COUNT 1
    XAUTOCLAIM s g alice 0 -
    XPENDING s g
    XACK s g 1-1 1-1 9-9
    XACK s g x
    XACK s none x
    XACK none g x
    XACK string g x
    XACK s g 2-0 x
    XACK s g
    XINFO STREAM s
    XINFO STREAM s FULL
    XINFO STREAM s FULL COUNT 1
    XINFO STREAM s FULL COUNT 0
    XINFO STREAM s FULL COUNT -1
    XINFO STREAM s FULL COUNT x
    XINFO STREAM s FULL COUNT
    XINFO STREAM s x
    XINFO STREAM s FULL x 1
    XINFO STREAM s FULL COUNT 1 x
    XINFO STREAM none x
    XINFO STREAM string x
    XINFO STREAM
    XINFO GROUPS s
    XINFO GROUPS none
    XINFO GROUPS string
    XINFO GROUPS s x
    XINFO CONSUMERS s g
    XINFO CONSUMERS s none
    XINFO CONSUMERS none g
    XINFO CONSUMERS s
    XINFO x s
    XINFO x
    XINFO HELP
    XINFO HELP x
    XINFO
    XGROUP HELP
    XGROUP HELP x
    XGROUP x
    XGROUP
    XGROUP CREATE
    XGROUP CREATE s g
    XGROUP CREATE s g 0
    XGROUP CREATE s g x
    XGROUP CREATE s i x
    XGROUP CREATE s i -
    XGROUP CREATE s i + MKSTREAM
    XGROUP CREATE s i 0 x
    XGROUP CREATE s i 0 ENTRIESREAD
    XGROUP CREATE s i 0 ENTRIESREAD x
    XGROUP CREATE s i 0 ENTRIESREAD -2
    XGROUP CREATE s i 0 ENTRIESREAD -1
    XGROUP CREATE s j 0 MKSTREAM ENTRIESREAD 3
    XGROUP CREATE s k 0 MKSTREAM ENTRIESREAD 3 MKSTREAM
    XGROUP CREATE none g 0
    XGROUP CREATE none g x
    XGROUP CREATE none g x MKSTREAM
    XGROUP CREATE string g 0 MKSTREAM
    XGROUP CREATE string g 0 x
    XGROUP CREATE made g $ MKSTREAM
    XINFO STREAM made
    XINFO GROUPS made
    XGROUP SETID s g
    XGROUP SETID s none 0
    XGROUP SETID none g 0
    XGROUP SETID string g 0
    XGROUP SETID s g x
    XGROUP SETID s none x
    XGROUP SETID s g +
    XGROUP SETID s g -
    XGROUP SETID s g 0 MKSTREAM
    XGROUP SETID s g 0 ENTRIESREAD 7
    XGROUP SETID s g 0 ENTRIESREAD 7 ENTRIESREAD 8
    XGROUP SETID s g $
    XINFO GROUPS s
    XGROUP DESTROY s
    XGROUP DESTROY s none
    XGROUP DESTROY none g
    XGROUP DESTROY string g
    XGROUP DESTROY s j
    XGROUP CREATECONSUMER s g
    XGROUP CREATECONSUMER s g carol
    XGROUP CREATECONSUMER s g carol
    XGROUP CREATECONSUMER s none carol
    XGROUP CREATECONSUMER none g carol
    XGROUP DELCONSUMER s g carol
    XGROUP DELCONSUMER s g carol
    XGROUP DELCONSUMER s g bob
    XGROUP DELCONSUMER s none bob
    XGROUP DELCONSUMER none g bob
    XGROUP DELCONSUMER string g bob
    XDEL s x
    XDEL s 9-9 x
    XDEL s 4-0 4-0 9-9
    XDEL none x
    XDEL string x
    XDEL string 1-1
    XDEL s
    XSETID s
    XSETID s x
    XSETID s 100-5
    XSETID s 100-5 ENTRIESADDED 1
    XSETID s 100-5 ENTRIESADDED -1
    XSETID s 100-5 ENTRIESADDED x
    XSETID s 100-5 ENTRIESADDED 50 MAXDELETEDID 100-6
    XSETID s 100-5 ENTRIESADDED 50 MAXDELETEDID 4-9
    XSETID s 100-5 MAXDELETEDID x
    XSETID s 100-5 MAXDELETEDID
    XSETID s 100-5 x 1
    XSETID none 1
    XSETID none x
    XSETID string 1
    XSETID string 1 x
    XINFO STREAM s
    XSETID s 18446744073709551615-18446744073709551615
    XADD s * a b
    XADD s 1-1 a b
    XTRIM s MAXLEN 0
    XINFO STREAM s
    XADD made 18446744073709551615-18446744073709551615 a b
    XREAD STREAMS made 18446744073709551615-18446744073709551614
    XREAD STREAMS made 18446744073709551615-18446744073709551615
    XREADGROUP GROUP g c STREAMS made >
    XADD made * a b";

/// Lines on the prepared stream to which Redis 7.2 replies otherwise than the server of version 7.0
/// beside which the tests run.
const NEWER: [(&str, &str); 4] = [
    ("XSETID s 1", "-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"),
    ("XREAD BLOCK 9223372036854775807 STREAMS s 0", "-ERR timeout is out of range"),
    ("XREADGROUP GROUP h new STREAMS s >", "*-1"),
    ("XINFO CONSUMERS s h", ":-1"),
];

#[test]
fn newer_replies_are_those_of_redis_7_2() {
    let mut local = Local::with_shards(3);
    for line in PREPARED.lines().map(str::trim).filter(|line| !line.is_empty()) {
        local.line(line);
    }
    for (line, expected) in NEWER {
        let reply = String::from_utf8(local.line(line)).expect("replies are texts");
        assert!(reply.trim_end().ends_with(expected), "{line}: {reply}");
    }
    // A consumer is made also if there is nothing to read.
    assert!(
        matches!(parsed(&local.line("XINFO CONSUMERS s h")), Value::Array(all) if all.len() == 2)
    );
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(|word| if word == "~~" { &b""[..] } else { word.as_bytes() }).collect()
}

#[test]
#[ignore = "long: needs redis-server"]
fn odd_arguments_have_the_replies_of_redis() {
    for version in [Version::Two, Version::Three] {
        Compared::once(|compared| {
            compared.use_version(version);
            let lines = PREPARED.lines().chain(TABLE.lines()).map(str::trim);
            let mut count = 0;
            for line in lines.filter(|line| !line.is_empty()) {
                same_but_times(compared, &words(line));
                count += 1;
            }
            assert!(count > 300, "{count} lines");
        });
    }
}
