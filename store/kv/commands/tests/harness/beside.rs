// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands on both sides with all that is seen of them: replies, and keyspace events.

use freeport_kv_protocol::resp::{Value, Version};

use super::numbers::are_equal;
use super::{Compared, Listener, Local, parsed, shown};

/// Commands whose replies have an order that Redis does not promise.
const UNORDERED: &[&str] = &[
    "hgetall",
    "hkeys",
    "hvals",
    "hscan",
    "hrandfield",
    "smembers",
    "sinter",
    "sunion",
    "sdiff",
    "sscan",
    "spop",
    "srandmember",
];

/// Both sides, and a listener to one of them.
pub struct Beside<'a> {
    compared: &'a mut Compared,
    listener: Listener,
    /// Commands since events were last compared.
    recent: Vec<String>,
}

impl<'a> Beside<'a> {
    /// Begins to listen.
    pub fn new(compared: &'a mut Compared) -> Self {
        let listener = compared.listener();
        Self { compared, listener, recent: vec![] }
    }

    /// As [`Beside::empty`], and executes lines in both versions of the protocol; see
    /// [`Beside::lines`].
    #[track_caller]
    pub fn table(&mut self, lines: &str) {
        for version in [Version::Two, Version::Three] {
            self.empty(version);
            self.lines(lines);
        }
    }

    /// Empties both sides; ours has three shards.
    pub fn empty(&mut self, version: Version) {
        self.compared.ours = Local::with_shards(3);
        self.compared.redis.call(&[b"FLUSHALL"]);
        self.listener = self.compared.listener();
        self.compared.use_version(version);
    }

    /// Executes lines, whose words are separated by single spaces. All replies and events are the
    /// same. Lines that begin with `#` are comments.
    #[track_caller]
    pub fn lines(&mut self, lines: &str) {
        let lines = lines.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            self.same(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
    }

    /// Replies and events of a command are the same.
    #[track_caller]
    pub fn same(&mut self, arguments: &[&[u8]]) {
        self.call(arguments);
        self.same_events();
    }

    /// The replies to a command are the same.
    #[track_caller]
    pub fn call(&mut self, arguments: &[&[u8]]) {
        self.recent.push(shown(arguments));
        let (ours, theirs) = match arguments[0].to_ascii_lowercase().starts_with(b"b") {
            true => (self.without_waiting(arguments), self.in_transaction(arguments)),
            false => self.compared.both(arguments),
        };
        // Redis 7.0 takes an infinite timeout for a negative one.
        let is_infinite = ours.ends_with(b"timeout is out of range\r\n");
        assert!(
            is_infinite || are_same(arguments, &ours, &theirs),
            "{:#?}\n ours:  {}\n redis: {}",
            self.recent,
            ours.escape_ascii(),
            theirs.escape_ascii()
        );
    }

    /// Events since the last call are the same.
    #[track_caller]
    pub fn same_events(&mut self) {
        let theirs = self.listener.events();
        assert_eq!(self.compared.ours.events(), theirs, "{:#?}", self.recent);
        self.recent.clear();
    }

    fn without_waiting(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        self.compared.ours.session.may_block = false;
        let reply = self.compared.ours.call(arguments);
        self.compared.ours.session.may_block = true;
        reply
    }

    fn in_transaction(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        let redis = &mut self.compared.redis;
        redis.call(&[b"MULTI"]);
        let queued = redis.call(arguments);
        if queued.starts_with(b"-") {
            redis.call(&[b"DISCARD"]);
            return queued;
        }
        let replies = redis.call(&[b"EXEC"]);
        replies.strip_prefix(b"*1\r\n").expect("one command was queued").to_vec()
    }
}

/// Two replies to a command are the same, up to an order that Redis does not promise and to digits
/// of scores, distances and places.
pub fn are_same(arguments: &[&[u8]], one: &[u8], other: &[u8]) -> bool {
    let is_unordered =
        UNORDERED.iter().any(|name| arguments[0].eq_ignore_ascii_case(name.as_bytes()));
    let has_doubles =
        matches!(arguments[0], [b'z' | b'Z' | b'g' | b'G', ..] | [_, b'z' | b'Z', ..]);
    one == other
        || is_unordered && settled(&parsed(one)) == settled(&parsed(other))
        || has_doubles && are_equal(&parsed(one), &parsed(other))
}

/// A reply whose parts are in an order that depends on them alone.
fn settled(value: &Value) -> String {
    let all = |values: &[Value]| {
        let mut texts: Vec<String> = values.iter().map(settled).collect();
        texts.sort();
        format!("{texts:?}")
    };
    match value {
        Value::Array(values) => all(values),
        Value::Set(values) => format!("set {}", all(values)),
        Value::Map(entries) => {
            let pairs: Vec<Value> = entries
                .iter()
                .map(|(key, value)| Value::Array(vec![key.clone(), value.clone()]))
                .collect();
            format!("map {}", all(&pairs))
        }
        other => format!("{other:?}"),
    }
}
