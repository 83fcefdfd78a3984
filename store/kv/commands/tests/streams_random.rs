// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random stream commands beside redis-server.

use freeport_kv_protocol::resp::Version;
use freeport_testbed::usual_or_long;

use crate::harness::{Compared, Local};
use crate::streams_table::same_but_times;

pub const KEYS: [&str; 3] = ["a", "b", "{c}"];
const GROUPS: [&str; 2] = ["g", "h"];
const CONSUMERS: [&str; 3] = ["alice", "bob", "c"];

/// Draws commands.
pub struct Generator<'r> {
    pub random: &'r mut fastrand::Rng,
    /// Time of the latest entries.
    pub ms: u64,
}

impl Generator<'_> {
    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.random.usize(..choices.len())]
    }

    fn number(&mut self) -> String {
        match self.random.u8(0..20) {
            0 => self.pick(&["-1", "x", "", "9223372036854775808", "1.5"]).into(),
            1 => "0".into(),
            _ => self.random.u64(1..8).to_string(),
        }
    }

    /// An id near those of the streams, rarely incomplete or wrong.
    fn id(&mut self) -> String {
        let ms = self.ms.saturating_sub(self.random.u64(0..12));
        match self.random.u8(0..40) {
            0 => ms.to_string(),
            1 => self.pick(&["0", "0-1", "18446744073709551615-18446744073709551615"]).into(),
            2 => self.pick(&["007-1", "x", "1-x", "5--1", "", "-1", "18446744073709551616"]).into(),
            _ => format!("{ms}-{}", self.random.u64(0..3)),
        }
    }

    fn bound(&mut self) -> String {
        let id = self.id();
        match self.random.u8(0..8) {
            0 => "-".into(),
            1 => "+".into(),
            2 => format!("({id}"),
            _ => id,
        }
    }

    /// Words, in one of three cases.
    fn option(&mut self, words: &str) -> String {
        if self.random.u8(0..3) == 0 { format!(" {words}") } else { String::new() }
    }

    pub fn line(&mut self) -> String {
        let key = self.pick(&KEYS);
        let (group, consumer) = (self.pick(&GROUPS), self.pick(&CONSUMERS));
        // A value of another type stays for a time, and streams grow in between.
        match self.random.u16(0..600) {
            0 => return format!("SET {key} value"),
            1..7 => return format!("DEL {key}"),
            _ => {}
        }
        match self.random.u8(0..40) {
            0..12 => self.add(key),
            12 => format!("XDEL {key} {} {}", self.id(), self.id()),
            13 => format!("XTRIM {key} {}", self.trim()),
            14 => self.set_id(key),
            15 | 16 => {
                let options = self.option("MKSTREAM") + &self.entries_read();
                format!("XGROUP CREATE {key} {group} {}{options}", self.start())
            }
            17 => format!("XGROUP SETID {key} {group} {}{}", self.start(), self.entries_read()),
            18 => match self.random.u8(0..6) {
                0 => format!("XGROUP DESTROY {key} {group}"),
                1 => format!("XGROUP DELCONSUMER {key} {group} {consumer}"),
                _ => format!("XGROUP CREATECONSUMER {key} {group} {consumer}"),
            },
            19 => format!("XACK {key} {group} {} {}", self.id(), self.id()),
            20..26 => self.read_group(group, consumer),
            26 => format!("XPENDING {key} {group}"),
            27 => self.pending(key, group, consumer),
            28 | 29 => self.claim(key, group, consumer),
            30 => {
                let idle = self.pick(&["0", "1000000000", "-1"]);
                let options = format!("{}{}", self.count(), self.option("JUSTID"));
                format!("XAUTOCLAIM {key} {group} {consumer} {idle} {}{options}", self.bound())
            }
            31 | 32 => format!("XRANGE {key} {} {}{}", self.bound(), self.bound(), self.count()),
            33 => format!("XREVRANGE {key} {} {}{}", self.bound(), self.bound(), self.count()),
            34 | 35 => self.read(),
            36 => format!("XLEN {key}"),
            37 => format!("XINFO STREAM {key}{}", self.option("FULL")),
            38 => format!("XINFO GROUPS {key}"),
            _ => format!("XINFO CONSUMERS {key} {group}"),
        }
    }

    fn count(&mut self) -> String {
        let count = self.number();
        self.option(&format!("COUNT {count}"))
    }

    fn add(&mut self, key: &str) -> String {
        self.ms += self.random.u64(0..2);
        let mut options = self.option("NOMKSTREAM");
        if self.random.u8(0..6) == 0 {
            options += &format!(" {}", self.trim());
        }
        let id = match self.random.u8(0..4) {
            // The largest id would end the stream.
            0 => Some(self.id()).filter(|id| !id.contains("615-")).unwrap_or("0-0".into()),
            1 => format!("{}-{}", self.ms, self.random.u64(0..6)),
            _ => format!("{}-*", self.ms),
        };
        let fields = self.pick(&[
            "a 1 b 2",
            "a 12345 b text",
            "c -7",
            "a 1 a 1",
            "b x c y",
            "a",
            "name 4611686018427387904",
        ]);
        format!("XADD {key}{options} {id} {fields}")
    }

    /// An exact trim: an approximate one shows where nodes begin, which differs.
    fn trim(&mut self) -> String {
        let exact = self.pick(&["", " ="]);
        let length = self.random.u64(0..24);
        match self.random.u8(0..20) {
            0 => format!("MAXLEN{exact} {}", self.number()),
            1 => format!("MINID{exact} {} LIMIT {}", self.id(), self.number()),
            2..11 => format!("MAXLEN{exact} {length}"),
            _ => format!("MINID{exact} {}", self.id()),
        }
    }

    fn set_id(&mut self, key: &str) -> String {
        let ms = self.ms + self.random.u64(0..2);
        let (added, deleted) = (self.random.u64(0..200), self.id());
        let id = if self.random.u8(0..4) == 0 { self.id() } else { format!("{ms}-3") };
        // The largest id would end the stream.
        let id = if id.contains("615-") { "x".into() } else { id };
        let added = self.option(&format!("ENTRIESADDED {added}"));
        let deleted = self.option(&format!("MAXDELETEDID {deleted}"));
        format!("XSETID {key} {id}{added}{deleted}")
    }

    /// The start of a group.
    fn start(&mut self) -> String {
        if self.random.bool() { "$".into() } else { self.id() }
    }

    fn entries_read(&mut self) -> String {
        let read = self.number();
        self.option(&format!("ENTRIESREAD {read}"))
    }

    fn read(&mut self) -> String {
        let count = self.count();
        let id = |it: &mut Self| if it.random.u8(0..6) == 0 { "$".into() } else { it.id() };
        match self.random.bool() {
            true => format!("XREAD{count} STREAMS {} {}", self.pick(&KEYS), id(self)),
            false => {
                let (one, other) = (self.pick(&KEYS), self.pick(&KEYS));
                format!("XREAD{count} STREAMS {one} {other} {} {}", id(self), id(self))
            }
        }
    }

    fn read_group(&mut self, group: &str, consumer: &str) -> String {
        let options = format!("{}{}", self.count(), self.option("NOACK"));
        let id = |it: &mut Self| if it.random.bool() { ">".into() } else { it.id() };
        let member = format!("XREADGROUP GROUP {group} {consumer}{options} STREAMS");
        if self.random.u8(0..4) > 0 {
            return format!("{member} {} {}", self.pick(&KEYS), id(self));
        }
        let (one, other) = (self.pick(&KEYS), self.pick(&KEYS));
        format!("{member} {one} {other} {} {}", id(self), id(self))
    }

    fn pending(&mut self, key: &str, group: &str, consumer: &str) -> String {
        let idle = self.pick(&["IDLE 0", "IDLE 100000000"]);
        let idle = self.option(idle);
        let consumer = self.option(consumer);
        let (first, last, count) = (self.bound(), self.bound(), self.number());
        format!("XPENDING {key} {group}{idle} {first} {last} {count}{consumer}")
    }

    fn claim(&mut self, key: &str, group: &str, consumer: &str) -> String {
        let idle = self.pick(&["0", "0", "0", "1000000000"]);
        let deliveries = self.number();
        let options = [
            self.option("TIME 1000"),
            self.option(&format!("RETRYCOUNT {deliveries}")),
            self.option("FORCE"),
            self.option("JUSTID"),
            self.option(&format!("LASTID {}-1", self.ms.saturating_sub(3))),
        ];
        let (first, second) = (self.id(), self.id());
        format!("XCLAIM {key} {group} {consumer} {idle} {first} {second}{}", options.concat())
    }
}

/// The commands of a line. Reads and claims make their consumer; Redis 7.0 does so only if there is
/// an entry to return, Redis 7.2 always. Consumers are made before, so that both agree.
pub fn commands(line: &str) -> Vec<Vec<&[u8]>> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let is_key = |word: &&&[u8]| KEYS.iter().any(|key| key.as_bytes() == **word);
    let keys: Vec<&[u8]> = match words[0] {
        b"XCLAIM" | b"XAUTOCLAIM" | b"XREADGROUP" => words.iter().filter(is_key).copied().collect(),
        _ => vec![],
    };
    let create = |key| vec![&b"XGROUP"[..], b"CREATECONSUMER", key, words[2], words[3]];
    let mut commands: Vec<_> = keys.into_iter().map(create).collect();
    commands.push(words);
    commands
}

fn run(compared: &mut Compared, words: &[&[u8]]) {
    match words[0] {
        b"DEL" => {
            compared.redis.call(words);
            let shard = compared.ours.store.shard_of(words[1]);
            if let Some(keyspace) = compared.ours.store.shard_mut(shard).database_mut(0) {
                keyspace.remove(words[1], 0);
            }
        }
        b"XSETID" => {
            // Redis 7.2 refuses one that Redis 7.0 accepts.
            let ours = compared.ours.call(words);
            if !ours.ends_with(b"current max_deleted_entry_id\r\n") {
                let theirs = compared.redis.call(words);
                let text = |reply: &[u8]| reply.escape_ascii().to_string();
                assert_eq!(text(&ours), text(&theirs));
            }
        }
        _ => same_but_times(compared, words),
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn random_commands_have_the_replies_of_redis() {
    Compared::for_seeds(usual_or_long(10, 40), |compared, random| {
        let version = if random.bool() { Version::Two } else { Version::Three };
        compared.ours = Local::with_shards(random.usize(1..4));
        compared.use_version(version);
        let mut generator = Generator { random, ms: 20 };
        for _ in 0..10_000 {
            let line = generator.line();
            commands(&line).iter().for_each(|words| run(compared, words));
        }
    });
}

/// Approximate trims show where nodes begin. A stream with a group has the nodes that Redis gives
/// it, as long as no exact trim leaves a node without entries.
#[test]
#[ignore = "long: needs redis-server"]
fn approximate_trims_are_those_of_redis() {
    Compared::for_seeds(usual_or_long(4, 20), |compared, random| {
        compared.same("XGROUP CREATE s g 0 MKSTREAM");
        for entry in 1..=2_000 {
            let mut limit = |most| match random.u8(0..3) {
                0 => String::new(),
                _ => format!(" LIMIT {}", random.u32(0..most)),
            };
            let (limit, all) = (limit(250), limit(2));
            let bound = random.u32(0..entry + 50);
            match random.u8(0..12) {
                0 => compared.same(&format!("XTRIM s MAXLEN ~ {}{limit}", bound % 600)),
                1 => compared.same(&format!("XTRIM s MINID ~ {bound}{limit}")),
                2 => compared.same(&format!("XADD s MAXLEN ~ {}{all} {entry} a 1", bound % 900)),
                3 => compared.same(&format!("XDEL s {bound}")),
                _ => compared.same(&format!("XADD s {entry} a 1")),
            };
            compared.same("XLEN s");
        }
    });
}
