// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of clients. Each key is written by one client alone, so its value is known exactly;
//! counters that all clients increase are the exception.

use std::collections::BTreeSet;

use fastrand::Rng;

use crate::client::script;

/// Keys of a client of one type.
const KEYS: u32 = 2;
/// Counters that all clients increase.
pub const COUNTERS: usize = 3;
/// Databases that have keys.
pub const DATABASES: usize = 2;
/// Entries that a stream keeps.
pub const STREAM_ENTRIES: usize = 20;

/// A command. Texts are unique.
#[derive(Clone, Debug)]
pub enum Step {
    Set {
        key: String,
        text: String,
    },
    SetPair {
        keys: [String; 2],
        text: String,
    },
    /// With an expiry that no test waits for, unless it is brief.
    SetExpiring {
        key: String,
        text: String,
        ms: u64,
    },
    Append {
        key: String,
        text: String,
    },
    /// Changes all letters, by a function of a user.
    Mix {
        key: String,
        by: u8,
    },
    Increase {
        key: String,
    },
    Push {
        key: String,
        text: String,
    },
    Pop {
        key: String,
    },
    SetField {
        key: String,
        field: String,
        text: String,
    },
    RemoveField {
        key: String,
        field: String,
    },
    Add {
        key: String,
        member: String,
    },
    /// Removes a member that the server chooses.
    TakeAny {
        key: String,
    },
    Score {
        key: String,
        member: String,
        by: i64,
    },
    /// Adds an entry to a stream with an identifier that the server chooses.
    Entry {
        key: String,
        text: String,
    },
    Delete {
        key: String,
    },
    Rename {
        from: String,
        to: String,
    },
    /// Moves the last element of a list to the front of another one.
    Move {
        from: String,
        to: String,
    },
    /// Increases a counter of all clients.
    Count {
        counter: usize,
    },
    /// Reads a counter: what other clients have added is then seen, and may not be lost.
    Look {
        counter: usize,
    },
}

/// A request that takes effect as a whole.
#[derive(Clone, Debug)]
pub enum Request {
    One(Step),
    Exec(Vec<Step>),
    Script(Vec<Step>),
}

/// The key of a counter of all clients.
pub fn counter(number: usize) -> String {
    format!("shared:{number}")
}

impl Step {
    /// The command's words.
    pub fn words(&self) -> Vec<String> {
        let entries = STREAM_ENTRIES.to_string();
        let words: &[&str] = match self {
            Self::Set { key, text } => &["SET", key, text],
            Self::SetPair { keys: [one, other], text } => &["MSET", one, text, other, text],
            Self::SetExpiring { key, text, ms } => &["PSETEX", key, &ms.to_string(), text],
            Self::Append { key, text } => &["APPEND", key, text],
            Self::Mix { key, by } => &["KV.UPDATEV", key, "mix", "u8", "DELTA", &by.to_string()],
            Self::Increase { key } => &["INCR", key],
            Self::Push { key, text } => &["LPUSH", key, text],
            Self::Pop { key } => &["RPOP", key],
            Self::SetField { key, field, text } => &["HSET", key, field, text],
            Self::RemoveField { key, field } => &["HDEL", key, field],
            Self::Add { key, member } => &["SADD", key, member],
            Self::TakeAny { key } => &["SPOP", key],
            Self::Score { key, member, by } => &["ZINCRBY", key, &by.to_string(), member],
            Self::Entry { key, text } => &["XADD", key, "MAXLEN", &entries, "*", "f", text],
            Self::Delete { key } => &["DEL", key],
            Self::Rename { from, to } => &["RENAME", from, to],
            Self::Move { from, to } => &["LMOVE", from, to, "RIGHT", "LEFT"],
            Self::Look { counter: number } => &["GET", &counter(*number)],
            Self::Count { counter: number } => &["INCR", &counter(*number)],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// The keys of this client that it may change.
    pub fn keys(&self) -> Vec<&String> {
        match self {
            Self::SetPair { keys, .. } => keys.iter().collect(),
            Self::Rename { from, to } | Self::Move { from, to } => vec![from, to],
            Self::Count { .. } | Self::Look { .. } => vec![],
            Self::Set { key, .. }
            | Self::SetExpiring { key, .. }
            | Self::Append { key, .. }
            | Self::Mix { key, .. }
            | Self::Increase { key }
            | Self::Push { key, .. }
            | Self::Pop { key }
            | Self::SetField { key, .. }
            | Self::RemoveField { key, .. }
            | Self::Add { key, .. }
            | Self::TakeAny { key }
            | Self::Score { key, .. }
            | Self::Entry { key, .. }
            | Self::Delete { key } => vec![key],
        }
    }
}

impl Request {
    pub fn steps(&self) -> &[Step] {
        match self {
            Self::One(step) => std::slice::from_ref(step),
            Self::Exec(steps) | Self::Script(steps) => steps,
        }
    }

    /// The commands to send; the last reply is that of the request.
    pub fn commands(&self) -> Vec<Vec<String>> {
        let word = |word: &str| vec![word.to_owned()];
        match self {
            Self::One(step) => vec![step.words()],
            Self::Exec(steps) => {
                let steps = steps.iter().map(Step::words);
                [word("MULTI")].into_iter().chain(steps).chain([word("EXEC")]).collect()
            }
            Self::Script(steps) => {
                let keys: BTreeSet<&String> = steps.iter().flat_map(Step::keys).collect();
                let keys: Vec<&String> = keys.into_iter().collect();
                vec![script(&keys, steps.iter().map(Step::words))]
            }
        }
    }
}

/// Makes the requests of a client.
pub struct Maker {
    /// Number of the client.
    pub client: usize,
    /// The beginning of its keys.
    prefix: String,
    /// Number of texts that it has made, all different.
    texts: usize,
    /// The server has functions of a user.
    has_functions: bool,
    /// It also increases the counters of all clients.
    counts: bool,
}

impl Maker {
    pub fn new(client: usize, has_functions: bool) -> Self {
        let counts = database(client) == 0;
        Self { client, prefix: prefix(client), texts: 0, has_functions, counts }
    }

    /// Requests on keys with this beginning alone, which may be keys of one hash slot.
    pub fn with_prefix(client: usize, prefix: String, has_functions: bool) -> Self {
        Self { client, prefix, texts: 0, has_functions, counts: false }
    }

    pub fn request(&mut self, random: &mut Rng) -> Request {
        let steps = |maker: &mut Self, random: &mut Rng| {
            (0..random.usize(2..4)).map(|_| maker.step(random)).collect()
        };
        match random.u32(..10) {
            0 => Request::Exec(steps(self, random)),
            1 => Request::Script(steps(self, random)),
            _ => Request::One(self.step(random)),
        }
    }

    fn step(&mut self, random: &mut Rng) -> Step {
        let key = |kind: &str, random: &mut Rng| self.key(kind, random.u32(..KEYS));
        let [small, by] = [random.u32(..8).to_string(), random.u32(1..9).to_string()];
        match random.u32(..26) {
            0..3 => Step::Set { key: key("text", random), text: self.text(random) },
            3 => Step::SetPair {
                keys: [self.key("text", 0), self.key("text", 1)],
                text: self.text(random),
            },
            4 => {
                let (key, ms) = (key("text", random), 100_000_000);
                Step::SetExpiring { key, text: self.text(random), ms }
            }
            5 => {
                let text = self.short();
                let key = self.key("brief", 0) + &text;
                Step::SetExpiring { key, text, ms: random.u64(1..80) }
            }
            6 if self.has_functions => Step::Mix { key: key("text", random), by: random.u8(..9) },
            6..8 => Step::Append { key: key("text", random), text: self.short() },
            8..10 => Step::Increase { key: key("number", random) },
            10..12 => Step::Push { key: key("list", random), text: self.text(random) },
            12 => Step::Pop { key: key("list", random) },
            13 => {
                Step::SetField { key: key("hash", random), field: small, text: self.text(random) }
            }
            14 => Step::RemoveField { key: key("hash", random), field: small },
            15..17 => Step::Add { key: key("set", random), member: self.short() },
            17 => Step::TakeAny { key: key("set", random) },
            18 => {
                let by = by.parse().expect("a number");
                Step::Score { key: key("sorted", random), member: small, by }
            }
            19 => Step::Entry { key: key("stream", random), text: self.short() },
            20..23 if !self.counts => Step::Increase { key: key("number", random) },
            20..22 => Step::Count { counter: random.usize(..COUNTERS) },
            22 => Step::Look { counter: random.usize(..COUNTERS) },
            23 => {
                let [from, to] = self.pair("list", random);
                Step::Move { from, to }
            }
            24 => Step::Delete { key: key(kind(random), random) },
            _ => {
                let [from, to] = self.pair(kind(random), random);
                Step::Rename { from, to }
            }
        }
    }

    /// Two keys of one type.
    fn pair(&self, kind: &str, random: &mut Rng) -> [String; 2] {
        let first = random.u32(..KEYS);
        [first, (first + 1) % KEYS].map(|number| self.key(kind, number))
    }

    fn key(&self, kind: &str, number: u32) -> String {
        format!("{}{kind}:{number}", self.prefix)
    }

    fn short(&mut self) -> String {
        self.texts += 1;
        format!("{}.{};", self.client, self.texts)
    }

    /// A text that is sometimes long: a kill may then come in the middle of a write to the disk.
    fn text(&mut self, random: &mut Rng) -> String {
        let length = match random.u32(..60) {
            0 => random.usize(100_000..400_000),
            1..10 => random.usize(100..5000),
            _ => 0,
        };
        self.short() + &"-".repeat(length)
    }
}

/// The database that a client uses. The counters of all clients are in the first one.
pub fn database(client: usize) -> usize {
    client % DATABASES
}

/// The beginning of a client's keys.
pub fn prefix(client: usize) -> String {
    format!("c{client}:")
}

fn kind(random: &mut Rng) -> &'static str {
    const KINDS: [&str; 7] = ["text", "number", "list", "hash", "set", "sorted", "stream"];
    KINDS[random.usize(..KINDS.len())]
}
