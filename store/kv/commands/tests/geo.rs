// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places in this process, their keys in three shards.

use freeport_kv_protocol::resp::Version;

use crate::harness::Local;

/// A store with two places.
fn sicily() -> Local {
    let mut local = Local::with_shards(3);
    let line = "GEOADD sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania";
    assert_eq!(local.line(line), b":2\r\n");
    local
}

#[track_caller]
fn check(local: &mut Local, cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        let reply = String::from_utf8(local.line(line)).expect("these are ASCII");
        assert_eq!(reply.replace("\r\n", "|"), *expected, "{line}");
    }
}

#[test]
fn places_are_found() {
    let mut local = sicily();
    check(
        &mut local,
        &[
            ("GEODIST sicily Palermo Catania km", "$8|166.2742|"),
            ("GEOHASH sicily Palermo x", "*2|$11|sqc8b49rny0|$-1|"),
            (
                "GEOPOS sicily Palermo x",
                "*2|*2|$20|13.36138933897018433|$20|38.11555639549629859|*-1|",
            ),
            ("GEOSEARCH sicily fromlonlat 15 37 byradius 100 km", "*1|$7|Catania|"),
            (
                "GEOSEARCH sicily frommember Palermo bybox 400 400 km desc withdist withhash",
                "*2|*3|$7|Catania|$8|166.2742|:3479447370796909|*3|$7|Palermo|$6|0.0000|\
                 :3479099956230698|",
            ),
            ("GEORADIUS_RO sicily 15 37 200 km count 1 asc", "*1|$7|Catania|"),
            ("GEORADIUSBYMEMBER sicily Palermo 1 km", "*1|$7|Palermo|"),
            ("GEOADD sicily 181 0 x", "-ERR invalid longitude,latitude pair 181.000000,0.000000|"),
        ],
    );
    local.session.version = Version::Three;
    check(
        &mut local,
        &[("GEOPOS sicily Palermo", "*1|*2|,13.36138933897018433|,38.11555639549629859|")],
    );
}

#[test]
fn results_are_stored_in_other_shards_with_their_events() {
    let mut local = sicily();
    local.line("SET a text");
    for (line, reply, events) in [
        ("GEOSEARCHSTORE a sicily fromlonlat 15 37 byradius 200 km", 2, &["geosearchstore a"][..]),
        ("GEORADIUS sicily 15 37 200 km store b", 2, &["georadiusstore b"]),
        ("GEORADIUSBYMEMBER sicily Palermo 1 m storedist c", 1, &["georadiusstore c"]),
        ("GEOSEARCHSTORE a sicily fromlonlat 0 0 byradius 1 km", 0, &["del a"]),
        ("GEOSEARCHSTORE a sicily fromlonlat 0 0 byradius 1 km", 0, &[]),
        ("GEORADIUS none 15 37 200 km store b", 0, &["del b"]),
        ("GEOADD sicily 13.361389 38.115556 Palermo", 0, &[]),
        ("GEOADD sicily nx ch 1 1 Palermo 2 2 new", 1, &["zadd sicily"]),
    ] {
        local.events();
        assert_eq!(local.line(line), format!(":{reply}\r\n").into_bytes(), "{line}");
        assert_eq!(local.events(), events, "{line}");
    }
    check(&mut local, &[("ZRANGE c 0 -1 withscores", "*2|$7|Palermo|$1|0|")]);
}
