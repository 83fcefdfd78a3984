// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random commands on a stream of the crate and on a real server, whose replies must agree.

mod command;

use super::server::{Reply, Server};
use super::with_server;
use fastrand::Rng;
use freeport_kv_types::{Limits, Stream};
use freeport_testbed::usual_or_long;

const GROUPS: [&str; 2] = ["g", "h"];
const CONSUMERS: [&str; 3] = ["alice", "bob", "c"];

fn text(text: &str) -> Reply {
    Reply::Text(text.into())
}

fn run(server: &mut Server, command: &[String]) -> Reply {
    let parts: Vec<&dyn AsRef<[u8]>> = command.iter().map(|part| part as _).collect();
    server.call(&parts)
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_string).collect()
}

/// Draws commands on the key `s`.
struct Generator {
    random: Rng,
    /// Whether commands use groups. Without groups a stream stays packed for a time, and its nodes
    /// are not those of the server.
    has_groups: bool,
    /// Whether trims are approximate, which shows where nodes begin. Trims to an exact id are then
    /// left out: a server keeps the last node after such a trim removed all its entries, and
    /// continues to fill it.
    is_approximate: bool,
    /// Time of the latest entries.
    ms: u64,
}

impl Generator {
    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.random.usize(..choices.len())]
    }

    /// An id near those of the stream, also in incomplete and wrong forms.
    fn id(&mut self) -> String {
        let ms = self.ms.saturating_sub(self.random.u64(0..12));
        match self.random.u8(0..12) {
            0 => ms.to_string(),
            1 => self.pick(&["0", "0-1", "18446744073709551615-18446744073709551615"]).into(),
            2 => self.pick(&["007-1", "x", "1-x", "5--1", "", "-1", "18446744073709551616"]).into(),
            _ => format!("{ms}-{}", self.random.u64(0..3)),
        }
    }

    /// An id without wrong forms, as arguments behind which options follow.
    fn plain_id(&mut self) -> String {
        format!("{}-{}", self.ms.saturating_sub(self.random.u64(0..12)), self.random.u64(0..3))
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

    fn option(&mut self, text: &str) -> String {
        if self.random.u8(0..3) == 0 { format!(" {text}") } else { String::new() }
    }

    fn command(&mut self) -> Vec<String> {
        let (group, consumer) = (self.pick(&GROUPS), self.pick(&CONSUMERS));
        let (id, other, count) = (self.plain_id(), self.plain_id(), self.random.u64(1..6));
        let kind = self.random.u8(0..32);
        match if self.has_groups || !(14..27).contains(&kind) { kind } else { 0 } {
            0..10 => self.add(),
            10 | 11 => vec!["XDEL".into(), "s".into(), self.id(), self.plain_id()],
            12 => words(&format!("XTRIM s {}", self.trim())),
            13 => self.set_id(),
            14 => words(&format!("XGROUP CREATE s {group} {}", self.start())),
            15 => words(&format!("XGROUP SETID s {group} {}", self.start())),
            16 => match self.random.u8(0..4) {
                0 => words(&format!("XGROUP DESTROY s {group}")),
                1 => words(&format!("XGROUP DELCONSUMER s {group} {consumer}")),
                _ => words(&format!("XGROUP CREATECONSUMER s {group} {consumer}")),
            },
            17 => vec!["XACK".into(), "s".into(), group.into(), self.id(), other],
            18..22 => {
                let from = if self.random.bool() { ">".into() } else { id };
                let count = format!("{count}{}", self.option("NOACK"));
                let group = format!("{group} {consumer}");
                words(&format!("XREADGROUP GROUP {group} COUNT {count} STREAMS s {from}"))
            }
            22 => words(&format!("XPENDING s {group}")),
            23 => {
                let mut parts = words(&format!("XPENDING s {group}"));
                parts.extend([self.bound(), self.bound(), count.to_string()]);
                parts.extend(self.random.bool().then(|| consumer.to_string()));
                parts
            }
            24 | 25 => self.claim(group, consumer),
            26 => {
                let idle = self.pick(&["0", "1000000000"]);
                let just_id = self.option("JUSTID");
                let start = format!("{}{id}", self.pick(&["", "", "("]));
                words(&format!(
                    "XAUTOCLAIM s {group} {consumer} {idle} {start} COUNT {count}{just_id}"
                ))
            }
            27 => vec!["XRANGE".into(), "s".into(), self.bound(), self.bound()],
            28 => {
                let mut parts = vec!["XREVRANGE".into(), "s".into(), self.bound(), self.bound()];
                parts.extend(words(&format!("COUNT {}", count - 1)));
                parts
            }
            29 => {
                let id = if self.random.u8(0..4) == 0 { "$".into() } else { self.id() };
                let mut parts = words(&format!("XREAD COUNT {count} STREAMS s"));
                parts.push(id);
                parts
            }
            30 if self.random.bool() => words("XINFO STREAM s FULL"),
            30 => words("XINFO STREAM s"),
            _ => words("XINFO GROUPS s"),
        }
    }

    fn add(&mut self) -> Vec<String> {
        self.ms += self.random.u64(0..2);
        let mut parts = words("XADD s");
        if self.random.u8(0..6) == 0 {
            parts.extend(words(&self.trim()));
        }
        parts.push(match self.random.u8(0..4) {
            // The largest id would end the stream.
            0 => Some(self.id()).filter(|id| !id.contains("615-")).unwrap_or("0-0".into()),
            1 => format!("{}-{}", self.ms, self.random.u64(0..6)),
            _ => format!("{}-*", self.ms),
        });
        parts.extend(words(self.pick(&[
            "a 1 b 2",
            "a 12345 b text",
            "c -7",
            "a 1 a 1",
            "b x c y",
        ])));
        parts
    }

    fn trim(&mut self) -> String {
        let limit = self.random.u64(0..12);
        let rule = if self.random.bool() {
            format!("MAXLEN = {}", self.random.u64(0..24))
        } else {
            format!("MINID = {}", self.plain_id())
        };
        let is_exact = rule.starts_with("MAXLEN") && self.random.bool();
        match self.random.u8(0..2) {
            _ if !self.is_approximate || is_exact => rule,
            0 => rule.replace('=', "~") + &format!(" LIMIT {limit}"),
            _ => rule.replace('=', "~") + " LIMIT 0",
        }
    }

    fn set_id(&mut self) -> Vec<String> {
        let ms = self.ms + self.random.u64(0..2);
        let added = self.random.u64(0..200);
        let deleted = self.plain_id();
        let options = [
            self.option(&format!("ENTRIESADDED {added}")),
            self.option(&format!("MAXDELETEDID {deleted}")),
        ];
        let id = if self.random.u8(0..4) == 0 { self.plain_id() } else { format!("{ms}-3") };
        words(&format!("XSETID s {id}{}{}", options[0], options[1]))
    }

    /// The start of a group, and the number of entries read before.
    fn start(&mut self) -> String {
        let id = if self.random.bool() { "$".into() } else { self.plain_id() };
        let read = self.random.u64(0..9);
        id + &self.option(&format!("ENTRIESREAD {read}"))
    }

    fn claim(&mut self, group: &str, consumer: &str) -> Vec<String> {
        let idle = self.pick(&["0", "0", "0", "1000000000"]);
        let (first, second) = (self.plain_id(), self.plain_id());
        let deliveries = self.random.u64(0..9);
        let options = [
            self.option("TIME 1000"),
            self.option(&format!("RETRYCOUNT {deliveries}")),
            self.option("FORCE"),
            self.option("JUSTID"),
            self.option(&format!("LASTID {}", self.ms.saturating_sub(3))),
        ];
        words(&format!("XCLAIM s {group} {consumer} {idle} {first} {second}{}", options.concat()))
    }
}

/// Reads and claims create their consumer. Redis 7.0 does so only if there is an entry to return,
/// Redis 7.2 always: the consumer is created before, so that both agree.
fn prelude(command: &[String]) -> Option<Vec<String>> {
    let creates = matches!(command[0].as_str(), "XREADGROUP" | "XCLAIM" | "XAUTOCLAIM");
    let create = || words(&format!("XGROUP CREATECONSUMER s {} {}", command[2], command[3]));
    creates.then(create)
}

/// Redis 7.2 refuses an `XSETID` that Redis 7.0 accepts.
fn is_new_error(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text.ends_with("current max_deleted_entry_id"))
}

/// Replaces what depends on the clock, or on the server's tree.
fn without_times(command: &[String], reply: Reply) -> Reply {
    match (command[0].as_str(), reply) {
        ("XPENDING", Reply::Array(mut entries)) if command.len() > 3 => {
            for entry in &mut entries {
                let Reply::Array(parts) = entry else { continue };
                parts[2] = text("time");
            }
            Reply::Array(entries)
        }
        ("XINFO", Reply::Array(parts)) if command.len() == 4 => full_info(parts),
        ("XINFO", Reply::Array(mut parts)) if command[1] == "STREAM" => {
            // The server keeps a node whose entries were all trimmed one by one.
            parts[3] = text("nodes");
            parts[5] = text("tree");
            Reply::Array(parts)
        }
        (_, Reply::Error(text)) if text.starts_with("NOGROUP") => {
            Reply::Error("NOGROUP No such consumer group".into())
        }
        (_, reply) => reply,
    }
}

/// Reduces a reply to `XINFO STREAM` with `FULL` to the values of entries and groups.
fn full_info(parts: Vec<Reply>) -> Reply {
    let values = |reply: Reply| -> Vec<Reply> {
        let Reply::Array(parts) = reply else { panic!("{reply:?} is no array") };
        parts.into_iter().skip(1).step_by(2).collect()
    };
    let each = |reply: Reply, change: &dyn Fn(Reply) -> Reply| match reply {
        Reply::Array(parts) => Reply::Array(parts.into_iter().map(change).collect()),
        other => panic!("{other:?} is no array"),
    };
    let without_time = |at: usize| {
        move |reply: Reply| {
            let Reply::Array(mut parts) = reply else { panic!("{reply:?} is no array") };
            parts[at] = text("time");
            Reply::Array(parts)
        }
    };
    let consumer = |reply| {
        let [name, _, count, pending] = values(reply).try_into().expect("four values");
        Reply::Array(vec![name, count, each(pending, &without_time(1))])
    };
    let group = |reply| {
        let mut parts = values(reply);
        let consumers = parts.pop().expect("consumers are the last value");
        let pending = parts.pop().expect("pending entries come before the consumers");
        parts.extend([each(pending, &without_time(2)), each(consumers, &consumer)]);
        Reply::Array(parts)
    };
    let mut parts = values(Reply::Array(parts));
    let groups = parts.pop().expect("groups are the last value");
    let entries = parts.pop().expect("entries come before the groups");
    Reply::Array(vec![entries, each(groups, &group)])
}

/// Compares the replies to random commands on a new stream.
fn compare(server: &mut Server, random: &mut Rng, limits: &Limits, has_groups: bool) {
    server.call(&[&"DEL", &"s"]);
    let mut stream = Stream::default();
    // A group makes the stream large at once, so that its nodes are those of the server.
    let first = if has_groups { "XGROUP CREATE s g $ MKSTREAM" } else { "XADD s 1-1 a b" };
    let expected = run(server, &words(first));
    let first = words(first.trim_end_matches(" MKSTREAM"));
    assert_eq!(command::run(&mut stream, &first, limits), expected);
    let is_approximate = has_groups && random.bool();
    let random = random.fork();
    let mut generator = Generator { random, has_groups, is_approximate, ms: 20 };
    for step in 0..usual_or_long(1_000, 3_000) {
        let command = generator.command();
        for command in prelude(&command).into_iter().chain([command]) {
            let found = command::run(&mut stream, &command, limits);
            if is_new_error(&found) {
                continue;
            }
            let expected = without_times(&command, run(server, &command));
            assert_eq!(found, expected, "step {step}: {command:?}");
        }
    }
}

fn compare_in_nodes(server: &mut Server, random: &mut Rng) {
    for stream_node_entries in [4, 100] {
        for setting in [format!("max-entries {stream_node_entries}"), "max-bytes 0".into()] {
            let command = words(&format!("CONFIG SET stream-node-{setting}"));
            assert_eq!(run(server, &command), text("OK"));
        }
        let limits = Limits { stream_node_entries, stream_node_bytes: 0, ..Limits::default() };
        compare(server, random, &limits, true);
        compare(server, random, &limits, false);
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn streams_agree() {
    with_server(usual_or_long(10, 100), compare_in_nodes);
}
